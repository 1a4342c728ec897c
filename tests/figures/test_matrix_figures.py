"""The figures of matrices in a browser: masks, products, tiles."""

from __future__ import annotations

import re
from itertools import pairwise, product

import computed
import pytest
import torch
from browser import stop_the_clock
from playwright.sync_api import expect
from stage import (
    PHONES,
    TOUCH,
    Stage,
    box_of,
    lines_said,
    pick,
    slide,
    type_into,
    value_of,
)

from attention_book.figures import (
    MaskingFigure,
    MatmulFigure,
    TilingFigure,
)

KEYS = "(nodes) => nodes.map((node) => node.dataset.key)"


def test_every_masked_key_that_keeps_weight_is_outlined(stage: Stage) -> None:
    page = stage.show(MaskingFigure())
    for fill, lens in [("-inf", 0), ("-1e6", 0), ("1e-6", 0), ("after", 0), ("1e-6", 3)]:
        pick(page, "fill", fill)
        slide(page, "example 2", lens)
        cells = page.locator('[data-key^="weight"]').evaluate_all(
            """(cells) => cells.map((cell) => [
                cell.classList.contains("af-off") && cell.dataset.value !== "0",
                cell.classList.contains("af-leak"),
                cell.getAttribute("aria-label").includes("a leak"),
            ])"""
        )
        assert len(cells) == 16
        assert all(leaks == shown == said for leaks, shown, said in cells)
        assert any(leaks for leaks, _, _ in cells) is (fill in ("-1e6", "1e-6"))


def test_memory_at_each_real_length_is_shown_as_python_says_it_and_spoken(stage: Stage) -> None:
    page = stage.show(TilingFigure())
    panel = page.locator(".af-inside")
    panel.locator("summary").click()
    spoken = page.get_by_role("status")
    for i in [*range(8), 0]:
        slide(page, "positions n", i)
        sentence = panel.get_by_text("At n = ").text_content() or ""
        assert f". {sentence} " in TilingFigure(n=1024 * 2**i).alt
        values = panel.locator(".af-fact").all_inner_texts()
        assert f"takes {values[0]}, about " in sentence
        assert f" times the {values[1]} of one tile" in sentence
    expect(spoken).to_have_text(re.compile(re.escape(sentence)))
    slide(page, "tiles read", 3)  # what did not change is not said again
    expect(spoken).not_to_have_text(re.compile("At n"))
    expect(spoken).to_have_text(re.compile("^With tiles"))


def test_held_numbers_and_areas_of_memory_are_to_scale(stage: Stage) -> None:
    page = stage.show(TilingFigure(), reduced_motion="reduce")
    held, bar = page.locator('[data-key^="held"]'), page.locator(".af-holds")
    for tile in (1, 2, 4, 8):
        pick(page, "tile", str(tile))
        for step, numbers in ((0, [0, 0]), (1, [tile**2, tile**2 + 3 * tile])):
            slide(page, "tiles read", step)  # before the first tile nothing is held
            assert page.locator(".af-tiled .af-cursor:visible").count() == step
            assert page.locator(".af-held").count() == numbers[0]
            shown = [*(numbers if step else (0, 0)), 64]
            assert held.all_inner_texts() == [str(number) for number in shown]
            drawn = bar.evaluate(
                """({ style }) => ["--scores", "--all", "--whole"].map((name) =>
                    Number(style.getPropertyValue(name)))"""
            )
            assert [88 * share for share in drawn] == pytest.approx(shown)
    page.locator(".af-inside > summary").click()
    sides = "(rects) => rects.map((rect) => Number(rect.getAttribute('width')))"
    for i in range(8):
        slide(page, "positions n", i)
        whole, tile = page.locator(".af-whole, .af-part").evaluate_all(sides)
        share = value_of(page, "memory 1") / value_of(page, "memory 0")
        assert (tile / whole) ** 2 == pytest.approx(share)


def test_a_tile_too_small_to_be_seen_is_enlarged_to_scale(stage: Stage) -> None:
    page = stage.show(TilingFigure(), reduced_motion="reduce")
    page.locator(".af-inside > summary").click()
    widths = "(rects) => rects.map((rect) => rect.getBoundingClientRect().width)"
    sides = set()
    for i in range(8):
        slide(page, "positions n", i)
        whole, tile = page.locator(".af-whole, .af-part").evaluate_all(widths)
        lens = page.locator(".af-areas :is(.af-lens, .af-enlarged, .af-corner):visible")
        assert lens.count() == (3 if tile / whole < 1 / 32 else 0)
        seen = tile
        if lens.count():
            corner, glass, seen = lens.evaluate_all(widths)
            # Without the width of its border, which the browser counts in, the corner is 1/32.
            assert corner == pytest.approx(whole / 32, abs=1.5)
            assert seen / glass == pytest.approx(32 * tile / whole, abs=0.02)
            assert seen / tile == pytest.approx(24, rel=0.01)
            assert page.locator(".af-areas").get_by_text("corner × 24").is_visible()
        assert seen >= 3  # pixels
        sides.add(round(seen, 2))
    assert len(sides) == 8  # each length has a picture of its own


def test_only_the_scores_of_the_outlined_tile_are_seen(stage: Stage) -> None:
    page = stage.show(TilingFigure(tile=2, step=7))
    looks = page.locator('[data-key^="score"]').evaluate_all(
        """(cells) => cells.map((cell) => [cell.dataset.key.split(" ").slice(1).map(Number),
            cell.textContent, cell.classList.contains("af-forgotten"),
            cell.classList.contains("af-held"),
            cell.getAttribute("aria-label").split(", ").at(-1)])"""
    )
    assert len(looks) == 64
    for (row, column), text, is_grey, is_held, state in looks:
        tile = row // 2 * 4 + column // 2
        gone = tile < 6
        assert is_grey == gone
        assert is_held == (tile == 6) == (text != "")
        expected = "read before and no longer in memory" if gone else "held now"
        assert state == (expected if tile <= 6 else "not read yet")


def test_the_sum_so_far_shrinks_when_a_larger_score_rescales_it(stage: Stage) -> None:
    scores = torch.tensor([[0.0, 1.0], [2.0, 1.0]])
    watch = """() => {
        const { animate } = Element.prototype;
        window.animated = [];
        Element.prototype.animate = function (...how) {
            animated.push(this.parentNode.dataset.key);
            return animate.apply(this, how);
        };
    }"""
    widths = "(all) => all.map((bar) => Number(bar.getAttribute('width')))"
    for motion, expected in (("no-preference", ["l 0"]), ("reduce", [])):
        page = stage.show(TilingFigure(scores, tile=1, step=1), reduced_motion=motion)
        page.evaluate(watch)
        warm = page.locator(".af-rescaled")
        kept, shrunk = page.locator(".af-kept"), page.locator(".af-shrunk")
        assert warm.count() == page.locator(".af-top").count() == 0
        slide(page, "tiles read", 2)
        assert page.evaluate("animated") == expected
        assert {key.split()[1] for key in warm.evaluate_all(KEYS)} == {"0"}
        assert page.locator(".af-top").evaluate_all(KEYS) == ["score 0 1"]
        [new, _], [old, _] = kept.evaluate_all(widths), shrunk.evaluate_all(widths)
        factor = page.locator('[data-key="factor 0"]')
        assert new / old == pytest.approx(value_of(page, "factor 0"), abs=1e-3)
        said = "multiplied by exp(old m − new m) = 0.37"
        assert said in str(factor.get_attribute("aria-label"))
        assert said in str(page.locator('[data-key="l 0"]').get_attribute("aria-label"))
        slide(page, "tiles read", 4)  # no larger score, and not the next tile
        assert page.evaluate("animated") == expected
        assert shrunk.evaluate_all(widths) == [0, 0]


def test_the_challenge_is_met_by_pointing_at_a_sum_that_has_become_smaller(stage: Stage) -> None:
    page = stage.show(TilingFigure(), reduced_motion="reduce")
    goal, row = page.locator(".af-challenge"), page.locator('[data-key="l 3"]')
    pick(page, "tile", "2")
    for step in range(1, 17):  # passing by it finds nothing
        slide(page, "tiles read", step)
    sums = []
    for step in (6, 8, 7):
        slide(page, "tiles read", step)
        sums.append(value_of(page, "l 3"))
        expect(goal).to_have_text(re.compile("^Challenge: "))
        page.mouse.move(0, 0)
        row.hover()
        page.locator('[data-key="m 3"]').hover()
    assert sums[2] < sums[0] < sums[1]
    expect(goal).to_have_text(re.compile("^Challenge met: "))
    own = stage.show(TilingFigure(torch.tensor([[0.0, 1.0], [2.0, 1.0]])))  # no sum ever does
    assert own.locator(".af-challenge").inner_text() == ""


@pytest.mark.parametrize(("width", "height"), PHONES)
def test_max_and_sum_do_not_read_as_one(width: int, height: int, stage: Stage) -> None:
    page = stage.phone(TilingFigure(), width, height)
    heads = [box_of(page.get_by_text(word, exact=True)) for word in ("max", "sum", "output")]
    for left, right in pairwise(heads):
        assert right.x - left.right >= 7


def test_bars_and_dots_are_to_scale_and_every_dot_ends_in_its_ring(stage: Stage) -> None:
    page = stage.show(TilingFigure(tile=2, step=0), reduced_motion="reduce")
    drawn = """(rows) => rows.map((row) => {
        const at = (part, name) => Number(row.querySelector(part).getAttribute(name));
        return [at(".af-kept", "width") + at(".af-added", "width"), at(".af-so-far", "cx"),
            at(".af-exact", "cx"), at(".af-so-far", "r") / at(".af-exact", "r"),
            ...row.querySelector(".af-guide").getAttribute("d")
                .match(/[\\d.]+/g).map(Number)];
    })"""
    scales = set()
    for step in range(1, 17):
        slide(page, "tiles read", step)
        for r, (bar, dot, ring, full, x, _, track) in enumerate(
            page.locator(".af-tiled [role=row]").evaluate_all(drawn)
        ):
            if r // 2 > (step - 1) // 4:
                continue
            scales.add(round(value_of(page, f"l {r}") / bar, 2 if bar else 0))
            assert dot == pytest.approx(x + track * (value_of(page, f"o {r}") - 1) / 7, abs=0.01)
            assert (dot == ring) == (step >= 4 * (r // 2 + 1)), (step, r)
            assert (full == 1) == (dot == ring)  # it fills the ring, and else does not
    assert len(scales) == 1


def test_on_a_phone_memory_is_folded_with_what_moves_it(stage: Stage) -> None:
    page = stage.phone(TilingFigure(), *PHONES[0])
    assert page.get_by_role("slider", name="positions n").count() == 0
    page.locator(".af-inside > summary").tap()
    expect(page.get_by_role("slider", name="positions n")).to_be_visible()


def test_rows_that_a_tile_has_left_are_done(stage: Stage) -> None:
    page = stage.show(TilingFigure(), reduced_motion="reduce")
    strips = page.get_by_role("slider", name="tiles read").get_attribute("max")
    slide(page, "tiles read", int(str(strips)))
    for r, is_done in ((0, True), (7, False)):
        for name in ("m", "l"):
            cell = page.locator(f'[data-key="{name} {r}"]')
            kinds = str(cell.get_attribute("class"))
            assert ("af-forgotten" in kinds) is is_done
            assert not (is_done and "af-rescaled" in kinds)
            assert ("no longer in memory" in str(cell.get_attribute("aria-label"))) is is_done
        written = str(page.locator(f'[data-key="o {r}"]').get_attribute("aria-label"))
        assert ("written out" in written) is is_done


@pytest.mark.parametrize("fill", ["-inf", "-1e6", "1e-6", "after"])
def test_a_bar_marks_each_weight_that_the_second_fill_changes(fill: str, stage: Stage) -> None:
    page = stage.show(MaskingFigure(fill=fill, valid_lens=[2, 0]))
    bars = page.locator(".af-differs:visible")
    assert bars.count() == 0
    for compare in ("none", "-inf", "-1e6", "1e-6", "after"):
        pick(page, "compare", compare)
        pairs = page.locator('[data-key^="weight"]').evaluate_all(
            """(cells) => cells.map((cell) => {
                const other = document.querySelector(`[data-key="other ${cell.dataset.key}"]`);
                return [Math.abs(cell.dataset.value - other.dataset.value) > 1e-9,
                    other.classList.contains("af-differs"),
                    other.getAttribute("aria-label").includes("differs")];
            })"""
        )
        assert page.locator('[data-key^="other weight"]:visible').count() == 16 * (
            compare != "none"
        )
        if compare != "none":
            assert all(differs == barred == said for differs, barred, said in pairs)
            assert any(differs for differs, _, _ in pairs) is (compare != fill)


def test_no_bar_of_weights_reaches_the_number_above_it_and_each_row_names_its_fill(
    stage: Stage,
) -> None:
    page = stage.show(MaskingFigure(fill="1e-6", compare="-inf"))
    rows = page.locator(".af-sentence .af-line:visible .af-side").all_inner_texts()
    named = ["query 1\n10⁻⁶", "−∞", "query 2\n10⁻⁶", "−∞"]
    assert rows == [*["query 1", "query 2"], *named] * 2
    overlaps = page.locator(".af-poured:visible").evaluate_all(
        """(cells) => cells.map((cell) => {
            const words = document.createRange();
            words.selectNodeContents(cell);
            const [text, box] = [words, cell].map((one) => one.getBoundingClientRect());
            const bar = getComputedStyle(cell).backgroundSize.split(", ")[0].split(" ")[1];
            const height = new DOMMatrix(`translateY(${bar.replace(/^calc/, "")})`).f;
            return box.bottom - height < text.bottom - 3;  // below the digits
        })"""
    )
    assert len(overlaps) == 32
    assert not any(overlaps)


def test_on_a_phone_each_comparison_takes_three_lines_and_the_fills_stand_in_two_rows(
    stage: Stage,
) -> None:
    page = stage.phone(MaskingFigure(), *PHONES[0])
    fills = page.locator('label:has([name="fill"])')
    assert len({round(box_of(fill).y) for fill in fills.all()}) == 2
    assert len({round(box_of(fill).x) for fill in fills.all()}) == 2
    thrown = page.locator(".af-thrown")
    expect(thrown).to_be_hidden()
    for fill, compare in product(("-inf", "-1e6", "1e-6", "after"), repeat=2):
        pick(page, "fill", fill)
        pick(page, "compare", compare)
        assert lines_said(page) <= 3
        assert thrown.is_visible() == ("after" in (fill, compare))


def test_a_score_that_is_struck_through_can_be_read(stage: Stage) -> None:
    for page in (stage.show(MaskingFigure()), stage.phone(MaskingFigure(), *PHONES[0])):
        size = "(all) => all.map((one) => parseFloat(getComputedStyle(one).fontSize))"
        assert min(page.locator(".af-cell[data-instead]").evaluate_all(size)) >= 12


@pytest.mark.parametrize("width", [360, 677, 1000])
def test_each_row_of_scores_has_an_edge_at_its_own_length(width: int, stage: Stage) -> None:
    page = stage.show(MaskingFigure(), viewport={"width": width, "height": 900})
    scores = page.locator(".af-edged").first
    slide(page, "example 1, query 2", 3)
    said = "valid_lens = [[2, 3], [3, 3]]" + (", one per query" if width > 576 else "")
    assert page.locator(".af-tensor > :first-child").text_content() == said
    edges = scores.locator(".af-edge[style] input")
    lengths = edges.evaluate_all("(all) => all.map((one) => Number(one.value))")
    assert lengths == [2, 3]
    for row, edge in enumerate(edges.all()):
        at = box_of(edge)
        cell = box_of(page.locator(f'[data-key="score 0 {row} {lengths[row] - 1}"]'))
        middle_of_thumb = at.x + 12 + (at.width - 24) * lengths[row] / 4
        assert middle_of_thumb == pytest.approx(cell.right, abs=1.5)
        assert at.y == pytest.approx(cell.y, abs=1.5)
        assert at.height == pytest.approx(cell.height, abs=1.5)
    # What moves all rows reaches through none of them.
    whole = page.get_by_role("slider", name="example 1", exact=True)
    assert whole.get_attribute("aria-valuetext") == "from 2 to 3 of 4 keys"
    assert whole.input_value() == "3"  # below the last query's
    box, last = box_of(whole), box_of(page.locator('[data-key="score 0 1 0"]'))
    assert box.y >= last.bottom - 1
    slide(page, "example 1", 1)
    assert whole.get_attribute("aria-valuetext") == "1 of 4 keys"
    assert not edges.first.is_visible()
    # An edge in the scores is dragged through the length of the other row and keeps going.
    slide(page, "example 1, query 2", 2)
    at = box_of(edges.last)
    place = [at.x + 12 + (at.width - 24) * n / 4 for n in range(5)]
    page.mouse.move(place[2], at.y + at.height / 2)
    page.mouse.down()
    for n in (1, 0, 4):
        page.mouse.move(place[n], at.y + at.height / 2, steps=3)
    page.mouse.up()
    assert "[[1, 4], [3, 3]]" in str(page.locator(".af-tensor").text_content())


@pytest.mark.parametrize("width", [325, 677])  # the text column of a phone and of a screen
def test_no_name_of_a_fill_is_cut(width: int, stage: Stage) -> None:
    page = stage.show(
        MaskingFigure(fill="after", compare="after"), viewport={"width": width + 24, "height": 900}
    )
    page.add_style_tag(content=".af-form { font-size: 17px !important }")  # of a wider typeface
    cut = page.locator(".af-side:visible").evaluate_all(
        "(sides) => sides.filter((side) => side.scrollWidth > side.clientWidth).length"
    )
    assert cut == 0
    squeezed = page.locator(".af-select select").evaluate_all(
        """(menus) => menus.filter((menu) => {
            const now = menu.offsetWidth;
            menu.style.maxWidth = menu.style.minWidth = "max-content";
            return menu.offsetWidth > now + 1;
        }).length"""
    )
    assert squeezed == 0


INSTEAD = {"-inf": "−∞", "-1e6": "−10⁶", "1e-6": "10⁻⁶", "after": None}


@pytest.mark.parametrize(("fill", "instead"), INSTEAD.items())
def test_a_masked_score_is_struck_through_above_what_the_softmax_gets(
    fill: str, instead: str | None, stage: Stage
) -> None:
    page = stage.show(MaskingFigure(fill=fill))
    cells = page.locator('[data-key^="score 0 0"]').evaluate_all(
        """(cells) => cells.map((cell) => [getComputedStyle(cell).textDecorationLine,
            getComputedStyle(cell, "::after").content, cell.reading])"""
    )
    shown = "none" if instead is None else f'"{instead}"'
    struck = "none" if instead is None else "line-through"
    assert [cell[:2] for cell in cells] == [["none", "none"]] * 2 + [[struck, shown]] * 2
    replaced = "masked" if instead is None else f"replaced by {instead}"
    assert cells[2][2] == f"query 1, ⟨pad⟩: score 3.000, {replaced}"


def test_what_is_set_to_0_after_the_softmax_stays_as_a_dashed_bar_and_is_missing_in_the_sum(
    stage: Stage,
) -> None:
    page = stage.show(MaskingFigure(fill="after"))
    weights = torch.softmax(torch.tensor(MaskingFigure().scores[0][0]), dim=0)
    cells = page.locator('[data-key^="weight 0 0"]').evaluate_all(
        """(cells) => cells.map((cell) => {
            const ghost = getComputedStyle(cell, "::after");
            return [ghost.borderTopStyle, parseFloat(ghost.height)];
        })"""
    )
    assert [style for style, _ in cells] == ["none", "none", "dashed", "dashed"]
    height = 3.2 * 16
    for (_, drawn), weight in zip(cells[2:], weights[2:].tolist(), strict=True):
        assert drawn == pytest.approx(weight * height, abs=0.5)
    said = page.locator('[data-key="weight 0 0 3"]').get_attribute("aria-label") or ""
    assert said.endswith(f"masked, the softmax gave it {weights[3]:.6f}")
    bar = page.locator('[data-key="sum 0 0"]').evaluate(
        "(n) => n.style.getPropertyValue('--stack')"
    )
    assert bar.endswith(f"transparent {100 * weights[:2].sum():.2f}%)")


@pytest.mark.parametrize("width", [360, 677])
def test_the_edge_of_a_sentence_touches_no_word(width: int, stage: Stage) -> None:
    page = stage.show(MaskingFigure(), viewport={"width": width, "height": 900})
    for edge in page.locator(".af-edge:not([style]) input").all():
        box = box_of(edge)
        heads = edge.locator("xpath=ancestor::div[@class='af-edged']").locator(".af-head").all()
        assert heads
        for head in heads:
            word = box_of(head)
            assert word.bottom <= box.y + 1


def test_no_name_of_a_fill_gives_the_challenge_away(stage: Stage) -> None:
    page = stage.show(MaskingFigure())
    assert "10⁻⁶" in (page.locator(".af-controls").text_content() or "")
    assert "mistake" not in (page.locator(".af-controls").text_content() or "")


def test_pointing_at_an_entry_erases_no_other(stage: Stage) -> None:
    page = stage.show(MatmulFigure())
    queries, keys = (torch.tensor(part[0]) for part in (MatmulFigure().Q, MatmulFigure().K))
    entries = [f"{entry:g}".replace("-", "−") for entry in (queries @ keys.T).flatten().tolist()]
    for key in ("entry 2 3", "entry 0 0"):
        page.locator(f'[data-key="{key}"]').hover()
        assert page.locator('[data-key^="entry"]').all_text_contents() == entries
    assert page.locator('[data-key="entry 0 0"].af-on').count() == 1


@pytest.mark.parametrize(
    ("pointed", "fed"), [("q 1 2", [f"1 {k}" for k in range(4)]), ("k 3 0", ["0 3", "1 3", "2 3"])]
)
def test_pointing_at_a_number_lights_the_entries_that_it_takes_part_in(
    pointed: str, fed: list[str], stage: Stage
) -> None:
    page = stage.show(MatmulFigure())
    lit = page.locator(".af-fed")
    page.locator(f'[data-key="{pointed}"]').hover()
    keys = lit.evaluate_all("(cells) => cells.map((cell) => cell.dataset.key)")
    assert keys == [f"entry {at}" for at in fed]
    page.locator(".af-now").hover()
    assert lit.count() == 0
    page.locator(f'[data-key="{pointed}"]').focus()
    assert lit.count() == len(fed)


@pytest.mark.parametrize("width", [360, 390, 1000])
def test_a_long_number_is_shortened_to_its_cell_and_read_whole(width: int, stage: Stage) -> None:
    page = stage.show(MatmulFigure(step=0), viewport={"width": width, "height": 900})
    page.add_style_tag(content="body { margin: 12px 17px !important }")  # as wide as in the book
    for key, text in {
        **{"k 0 0": "-999.125", "k 0 1": "-12.375", "k 0 3": "0.25"},
        **{"q 0 0": "987.654", "q 0 3": "1.375"},
    }.items():
        type_into(page, key, text)
    cut, apart = page.evaluate(
        """() => {
            const words = document.createRange();
            const box = (node) => (words.selectNodeContents(node), words.getBoundingClientRect());
            return [
                [...document.querySelectorAll(".af-ell .af-cell")]
                    .filter((cell) => box(cell).width > cell.clientWidth)
                    .map((cell) => cell.textContent),
                [...document.querySelectorAll(".af-products span")].map((row) =>
                    box(row.lastChild).left - box(row.firstChild).right),
            ];
        }"""
    )
    assert cut == []
    assert min(apart) >= 4
    drawing, scene = (box_of(page.locator(part)) for part in (".af-ell", ".af-scene"))
    assert drawing.width + 7 <= scene.width  # with the sheet behind
    entry = page.locator('[data-key="entry 0 0"]')
    total = 987.654 * -999.125 + 2 * -12.375 + 1.375 * 0.25
    assert value_of(page, "entry 0 0") == pytest.approx(total, abs=1e-6)
    assert entry.text_content() == "−9.9e5"
    assert f"q1 · k1 = −{-total:.3f}" in str(entry.get_attribute("aria-label"))
    assert f"= −{-total:.3f}." in str(page.locator(".af-now").text_content())
    shown = page.locator('[data-key^="k 0"], [data-key^="q 0"]').all_text_contents()
    for text, number in zip(shown, [-999.125, -12.375, 1, 0.25, 987.654, 2, 0, 1.375], strict=True):
        decimals = len(text.partition(".")[2])
        assert float(text.replace("−", "-")) == pytest.approx(number, abs=0.51 * 10**-decimals)


def test_to_point_at_an_entry_ends_playing(stage: Stage) -> None:
    page = stage.show(MatmulFigure(step=0))
    stop_the_clock(page)
    page.locator(".af-form").wait_for()
    page.get_by_role("button", name="Play").click()
    page.locator('[data-key="entry 2 1"]').hover()
    page.clock.run_for(10_000)
    assert (
        page.locator(".af-product, .af-cell.af-on[data-key^=entry]").get_attribute("data-key")
        == "entry 2 1"
    )
    expect(page.get_by_role("button", name="Play")).to_be_visible()


def test_the_old_number_is_not_read_out_over_the_field_for_a_new_one(stage: Stage) -> None:
    page = stage.show(MatmulFigure(), **TOUCH)
    bubble = page.locator(".af-reading")
    page.locator('[data-key="q 1 1"]').tap()
    page.locator(".af-field").wait_for()
    expect(bubble).to_be_hidden()
    page.locator(".af-field").fill("7")
    page.keyboard.press("Enter")
    expect(bubble).to_have_text("query 2, feature 2: 7")
    page.locator(".af-predict input").first.check()
    expect(page.locator(".af-verdict")).to_have_text(re.compile(r"^Noted\. Now tap a number"))


def test_the_sheet_behind_says_which_it_is(stage: Stage) -> None:
    page = stage.show(MatmulFigure())
    behind = page.locator("[data-behind]").first
    expect(behind).to_have_attribute("data-behind", "sheet 2")
    slide(page, "sheet of the batch", 1)
    expect(behind).to_have_attribute("data-behind", "sheet 1")
    page = stage.show(MatmulFigure(torch.ones(3, 2, 2), torch.ones(3, 2, 2)))
    expect(page.locator("[data-behind]").first).to_have_attribute("data-behind", "2 more sheets")


def test_a_phone_can_type_a_negative_number(stage: Stage) -> None:
    page = stage.show(MatmulFigure())
    page.locator('[data-key="k 0 3"]').click()
    # The decimal keys of some phones have no minus sign.
    assert page.locator(".af-field").get_attribute("inputmode") == "text"


def test_it_is_said_what_can_be_typed_over_and_on_a_phone_an_entry_is_tapped(stage: Stage) -> None:
    wide = stage.show(MatmulFigure())
    hint = "Click a number of Q or Kᵀ to change it. Tab and the arrow keys reach it, too."
    expect(wide.locator(".af-hint")).to_have_text(hint)
    expect(wide.get_by_role("slider", name="entry")).to_be_visible()
    page = stage.phone(MatmulFigure(), *PHONES[0])
    expect(page.locator(".af-hint")).to_have_text("Tap a number of Q or Kᵀ to change it.")
    assert page.get_by_role("slider", name="entry").count() == 0
    page.locator('[data-key="entry 2 3"]').tap()
    expect(page.locator(".af-now")).to_contain_text("q3 · k4 = ")


def test_in_tiles_of_2_a_sum_shrinks_most_in_the_fourth_row_as_the_chapter_says() -> None:
    figure = TilingFigure(tile=2)
    rows: dict[int, list[float]] = {}
    for step in range(1, 17):
        figure.step = step
        found = computed.tiling(figure)
        for row in range(8):
            if f"l {row}" in found:
                rows.setdefault(row, []).append(found[f"l {row}"])
    falls = {row: max(a - b for a, b in pairwise(sums)) for row, sums in rows.items()}
    assert max(falls, key=lambda row: falls[row]) == 3
    assert falls[3] > 10 * max(fall for row, fall in falls.items() if row != 3)
