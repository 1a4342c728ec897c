"""The figures of heads and of the block in a browser."""

from __future__ import annotations

import re

import pytest
import torch
from playwright.sync_api import Page, expect
from stage import (
    PHONE,
    TOUCH,
    WIDE,
    Stage,
    box_of,
    in_middle,
    middle,
    pick,
    readings,
    slide,
    swipe,
)

from attention_book.figures import (
    BlockFigure,
    HeadsFigure,
)


@pytest.mark.parametrize("num_heads", [1, 2, 8])
def test_arrows_on_the_ring_end_at_their_keys_and_are_as_wide_as_their_weights(
    num_heads: int, stage: Stage
) -> None:
    page = stage.show(HeadsFigure(num_heads=num_heads), reduced_motion="reduce")
    for query in (0, 5, 2, 7):
        slide(page, "query position", query)
        arrows = page.locator('[data-key^="arrow"]:visible').evaluate_all(
            """(arrows) => {
                const middle = (node) => {
                    const box = node.getBoundingClientRect();
                    return [box.x + box.width / 2, box.y + box.height / 2];
                };
                const ring = arrows[0].closest("svg");
                return arrows.map((arrow) => {
                    const key = arrow.dataset.key.split(" ")[2];
                    const [x, y] = middle(arrow.lastChild);
                    const places = [...ring.querySelectorAll(".af-place circle")].map((circle) => {
                        const [a, b] = middle(circle);
                        return Math.hypot(x - a, y - b);
                    });
                    return [Number(key), places.indexOf(Math.min(...places)),
                        Number(arrow.dataset.value),
                        Number(arrow.firstChild.getAttribute("stroke-width"))];
                });
            }"""
        )
        maps = torch.tensor(HeadsFigure().data["maps"][str(num_heads)])
        least = 0.2 if num_heads > 2 else 0.02  # of more heads the large weights alone are drawn
        assert len(arrows) == int((maps[:, query] >= least).sum())
        assert all(key == nearest for key, nearest, _, _ in arrows)
        assert all(abs(width - 7 * weight) < 0.01 for _, _, weight, width in arrows)
        assert (
            page.locator('.af-place[aria-pressed="true"]:visible').text_content()
            == "ABCDEFGH"[query]
        )


def test_a_position_is_chosen_on_the_ring_by_click_and_by_keyboard(stage: Stage) -> None:
    page = stage.show(HeadsFigure(torch.full((2, 3, 3), 1 / 3), tokens=["a", "b", "c"]))
    value = page.locator('.af-slider:has-text("query position") .af-value')
    page.locator('[data-key="place 2"]').click()
    expect(value).to_have_text("c")
    page.locator('[data-key="place 2"]').focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(value).to_have_text("a")


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_the_sliders_stay_where_they_are_for_any_number_of_heads(
    size: dict[str, int], stage: Stage
) -> None:
    page = stage.show(HeadsFigure(), viewport=size)
    slider = page.get_by_role("slider", name="query position", exact=True)
    within = "(node) => node.getBoundingClientRect().y - node.form.getBoundingClientRect().y"
    seen = set()
    for count in ("1", "2", "4", "8"):
        pick(page, "num_heads", count)
        seen.add(slider.evaluate(within))
    page.get_by_role("button", name="Head 7").click()
    assert seen == {slider.evaluate(within)}


def test_one_head_is_kept_with_its_map_and_its_arrows(stage: Stage) -> None:
    page = stage.show(HeadsFigure(num_heads=8))
    arrows = page.locator('[data-key^="arrow"]:visible')
    strips, shown = page.locator(".af-strip:visible"), page.get_by_role("grid")
    kept = "(all) => [...new Set(all.map((node) => node.dataset.key.split(' ')[1]))]"
    every = readings(page)
    assert strips.count() == 8
    for head in (3, 6):
        page.get_by_role("button", name=f"Head {head}", exact=True).click()
        expect(shown).to_have_attribute("aria-label", f"map of head {head}")
        assert strips.count() == 0
        assert arrows.evaluate_all(kept) == [str(head)]
        expect(page.locator(".af-now")).to_have_text(re.compile(rf"^In head {head}, position E "))
    page.locator('[data-key="weight 6 2 0"]').click()  # a row of the map that is kept
    expect(page.locator(".af-now")).to_have_text(re.compile("^In head 6, position C "))
    slide(page, "query position", 4)
    page.get_by_role("button", name="all", exact=True).click()
    assert readings(page) == every
    strips.nth(5).click()
    assert arrows.evaluate_all(kept) == ["5"]
    expect(shown).to_have_attribute("aria-label", "map of head 5")
    pick(page, "num_heads", "2")  # another model has other heads
    assert strips.count() == 2


def test_a_strip_has_the_colour_of_its_head_and_its_weights_as_numbers(stage: Stage) -> None:
    of_heads: dict[str, int] = {}
    for size, counts in ((WIDE, (1, 2, 4, 8)), (PHONE, (1, 2, 8))):
        for count in counts:
            page = stage.show(HeadsFigure(num_heads=count), viewport=size)
            colour = """(all, [part, what]) => all.map((one) =>
                getComputedStyle(one.querySelector(part) ?? one)[what].split(" ").at(-1))"""
            strips = page.locator(".af-strip:visible")
            shades = strips.evaluate_all(colour, [".af-square", "fill"])
            chips = page.locator('.af-chip:not([value="all"]):visible')
            assert chips.evaluate_all(colour, ["b", "borderBottomColor"]) == shades
            assert len(set(shades)) == count
            assert of_heads.setdefault(shades[-1], count - 1) == count - 1
            assert shades[0] == next(iter(of_heads))  # the same head has the same colour everywhere
            for _ in range(2):  # the strips, then a map
                numbers = page.locator(".af-inset:visible").evaluate_all(
                    """(all) => all.filter((one) => one.textContent).map((one) => [one.textContent,
                        parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().a])"""
                )
                rows = page.locator('[data-key^="weight"][data-pair*=" 4 "]:visible')
                row = rows.evaluate_all("(all) => all.map((one) => Number(one.dataset.value))")
                large = [weight for weight in row if weight >= 0.02 and size is WIDE]
                assert len(numbers) == len(large)
                assert large or size is PHONE  # there the squares have no room for them
                for (text, height), weight in zip(numbers, large, strict=True):
                    assert abs(float(text) - weight) <= 0.0051
                    assert height >= 12
                page.get_by_role("button", name="Head 0", exact=True).click()


def test_the_error_is_a_bar_and_the_sentence_says_where_both_neighbours_are_read(
    stage: Stage,
) -> None:
    page = stage.show(HeadsFigure())
    now, bar = page.locator(".af-now"), page.locator(".af-error")
    hint = page.locator(".af-headhint")
    for count, error in zip(
        *(HeadsFigure().data[name] for name in ("counts", "errors")), strict=True
    ):
        pick(page, "num_heads", str(count))
        share = bar.evaluate("(bar) => Number(bar.style.getPropertyValue('--share'))")
        assert share == pytest.approx(error / 0.5, abs=1e-6)
    maps = {count: torch.tensor(HeadsFigure().data["maps"][count]) for count in "12"}
    for query in range(8):
        after, before = (query + 1) % 8, (query - 1) % 8
        assert set(maps["1"][0, query].topk(2).indices.tolist()) == {before, after}
        assert set(maps["2"][:, query].argmax(-1).tolist()) == {before, after}
    pick(page, "num_heads", "1")
    expect(now).to_have_text(
        "One head mixes both neighbours of E, D (0.74) and F (0.23): error 0.500."
    )
    pick(page, "num_heads", "2")
    expect(now).to_have_text(
        "From E one head looks before, one after: the error falls from 0.500 to 0.000."
    )
    expect(hint).to_contain_text("Click a strip for its map.")
    page.get_by_role("button", name="Head 1", exact=True).click()
    expect(hint).not_to_contain_text("strip")  # the map is shown


def test_what_a_map_says_does_not_cover_it(stage: Stage) -> None:
    page = stage.show(HeadsFigure(num_heads=2))
    for head, place in enumerate(("0 0", "1 7")):
        page.get_by_role("button", name=f"Head {head}", exact=True).click()
        cell = page.locator(f'[data-key="weight {head} {place}"]:visible')
        cell.hover()
        whole = box_of(cell.locator("xpath=ancestor::*[@role='grid']"))
        said = box_of(page.locator(".af-reading"))
        assert said.y >= whole.bottom


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_the_axes_of_the_maps_are_named_alike_for_any_number_of_heads(
    count: int, stage: Stage
) -> None:
    for options in ({}, {"viewport": PHONE}):
        page = stage.show(HeadsFigure(num_heads=count), **options)
        names = page.locator(".af-headside .af-dim:visible")
        for rows in ("heads", "queries"):
            assert names.all_inner_texts() == [f"{rows} ↓", "keys →"]
            for name in names.all():
                size = float(name.evaluate("(node) => parseFloat(getComputedStyle(node).fontSize)"))
                assert 12 <= size <= 17
            page.get_by_role("button", name="Head 0", exact=True).click()


def test_the_challenge_of_the_heads_asks_for_one_head_over_all_positions(stage: Stage) -> None:
    data = HeadsFigure().data
    page = stage.show(HeadsFigure(), reduced_motion="reduce")
    goal = page.locator(".af-challenge")
    met = set()
    for count in data["counts"]:
        pick(page, "num_heads", str(count))
        assert str(goal.text_content()).startswith("Challenge: ")
        for head in range(count):
            page.get_by_role("button", name="Reset").click()
            pick(page, "num_heads", str(count))
            page.get_by_role("button", name=f"Head {head}", exact=True).click()
            if str(goal.text_content()).startswith("Challenge met: "):
                met.add((count, head))
        page.get_by_role("button", name="Reset").click()
    maps = HeadsFigure().data["maps"]
    even = {
        (count, head)
        for count in data["counts"]
        for head, map_ in enumerate(maps[count] if count in maps else maps[str(count)])
        if sum(max(row) > 0.5 for row in map_) <= 1
    }
    assert met == even
    assert len(met) == 1


def test_a_tap_on_a_word_reads_it_and_moves_nothing(stage: Stage) -> None:
    page = stage.show(BlockFigure(), reduced_motion="reduce", **TOUCH)
    for i in (0, 1):
        page.locator(f'[data-key="token {i}"]').tap()
        expect(page.locator(".af-reading")).to_contain_text(f"place {i + 1}")
        assert page.locator('.af-card[aria-pressed="true"]').count() == 0
    assert words(page) == ["the", "dog", "bit", "a", "man"]
    assert page.locator(".af-note").text_content() == ""


def words(page: Page) -> list[str]:
    """The words of the block figure from left to right, as they are seen."""
    return page.locator(".af-card").evaluate_all(
        """(cards) => cards.sort((a, b) =>
            a.getBoundingClientRect().x - b.getBoundingClientRect().x)
            .map((card) => card.textContent)"""
    )


@pytest.mark.parametrize("touch", [False, True])
def test_a_word_is_dragged_to_another_place_and_its_output_travels_with_it(
    touch: bool, stage: Stage
) -> None:
    page = stage.show(
        BlockFigure(positions=False), reduced_motion="reduce", **(TOUCH if touch else {})
    )
    in_middle(page.locator(".af-order .af-plot"))
    numbers = "(cells) => cells.map((cell) => Number(cell.dataset.value))"
    output = page.locator('[data-key^="output 1 "]').evaluate_all(numbers)
    x, y = middle(page.locator('[data-key="token 1"]'))
    to, _ = middle(page.locator('[data-key="token 4"]'))
    if touch:
        swipe(page, (x, y), (20, 0), (to - x, 0))
    else:
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(to + 15, y, steps=8)
        assert words(page) == ["the", "bit", "a", "man", "dog"]
        page.mouse.up()
    assert words(page) == ["the", "bit", "a", "man", "dog"]
    moved = page.locator('[data-key^="output 4 "]').evaluate_all(numbers)
    assert moved == pytest.approx(output)
    card, change = (middle(page.locator(f'[data-key="{name} 4"]')) for name in ("token", "change"))
    assert card[0] == pytest.approx(change[0], abs=2)
    expect(page.locator(".af-now")).to_have_text(
        re.compile("“the bit a man dog”.*moves along with its word")
    )
    assert page.locator("input[name=order]:checked").count() == 0
    page.get_by_role("button", name="Reset").click()
    assert words(page) == ["the", "dog", "bit", "a", "man"]


def test_a_dragged_word_passes_over_the_others_and_no_reading_covers_threads(stage: Stage) -> None:
    page = stage.show(BlockFigure(), reduced_motion="reduce")
    x, y = middle(page.locator('[data-key="token 1"]'))
    to, _ = middle(page.locator('[data-key="token 2"]'))
    on_top = "([x, y]) => document.elementFromPoint(x, y).closest('.af-card').textContent"
    said = page.locator(".af-reading")
    woven = box_of(page.locator(".af-threads"))
    page.mouse.move(x, y)
    assert box_of(said).bottom <= woven.y + 1
    page.mouse.down()
    for by in (20, 26, 32):  # over its neighbour, but not yet in its place
        page.mouse.move(x + by, y)
        assert words(page) == ["the", "dog", "bit", "a", "man"]
        assert page.evaluate(on_top, [to - 36, y]) == "dog"
        assert not said.is_visible()
    page.mouse.move(to, y)
    page.mouse.up()
    assert words(page) == ["the", "bit", "dog", "a", "man"]
    page.locator('[data-key="output 2 3"]').hover()
    assert box_of(said).y >= woven.bottom - 1


def test_reversing_the_words_and_nothing_else_answers_the_question(stage: Stage) -> None:
    page = stage.show(BlockFigure())
    page.locator(".af-predict input").nth(1).check()
    pick(page, "order", "reversed")
    expect(page.locator(".af-verdict")).to_have_text(re.compile("^✓ You said: "))
    changes = page.locator('[data-key^="change"]')
    assert changes.all_text_contents() == ["0.00"] * 5


def test_each_component_that_changed_is_marked(stage: Stage) -> None:
    page = stage.show(BlockFigure(), reduced_motion="reduce")
    compare = """(results) => results.map((result) => [
        [...result.querySelectorAll("[data-key^=output]")].map((cell) => {
            const before = cell.getAttribute("aria-label").split("as written ")[1];
            return Math.abs(cell.dataset.value - before.replace("−", "-"));
        }),
        [...result.querySelectorAll(".af-change")].map((mark) => !mark.hasAttribute("hidden")),
    ])"""
    for moves in ([], [("order", "first two swapped")], [("positions", "true")]):
        for name, value in moves:
            pick(page, name, value)
        found = page.locator(".af-result").evaluate_all(compare)
        assert all(len(gaps) == len(marks) == 8 for gaps, marks in found)
        for gaps, marks in found:
            assert all(
                is_marked == (gap >= 0.005)
                for gap, is_marked in zip(gaps, marks, strict=True)
                if abs(gap - 0.005) > 1e-4
            )
        assert any(any(marks) for _, marks in found) is (moves == [("positions", "true")])


def test_a_button_that_does_nothing_now_looks_so(stage: Stage) -> None:
    page = stage.show(BlockFigure())
    again = page.get_by_role("button", name="Draw again")
    style = "(node) => getComputedStyle(node).borderStyle"
    assert again.evaluate(style) == "dashed"
    slide(page, "dropout rate", 1)
    assert again.evaluate(style) == "solid"


def test_a_word_is_moved_by_keyboard_or_by_two_clicks(stage: Stage) -> None:
    page = stage.show(BlockFigure(), reduced_motion="reduce")
    page.locator(".af-card").first.focus()
    page.keyboard.press("ArrowRight")  # to the next word, as in any group of marks
    focused = page.locator(":focus")
    assert focused.text_content() == "dog"
    page.keyboard.press("Enter")
    assert focused.get_attribute("aria-pressed") == "true"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert words(page) == ["the", "bit", "a", "dog", "man"]
    assert focused.text_content() == "dog"
    page.keyboard.press("Escape")
    assert focused.get_attribute("aria-pressed") == "false"
    page.keyboard.press("ArrowLeft")
    assert words(page) == ["the", "bit", "a", "dog", "man"]
    assert focused.text_content() == "a"
    page.locator('[data-key="token 4"]').click()
    page.locator('[data-key="token 0"]').click()
    assert words(page) == ["man", "the", "bit", "a", "dog"]


def test_each_draw_of_dropout_drops_other_weights_and_comes_again(stage: Stage) -> None:
    page = stage.show(BlockFigure(dropout=0.3))
    again = page.get_by_role("button", name="Draw again")
    seen = []
    for _ in range(12):
        again.click()
        pairs = "(all) => all.map((node) => node.dataset.pair)"
        dropped = page.locator(".af-dropped").evaluate_all(pairs)
        off = page.locator('.af-off[data-key^="weight"]').evaluate_all(pairs)
        assert sorted(dropped) == sorted(off)
        seen.append(tuple(off))
        widths = page.locator(".af-order .af-thread").evaluate_all(
            """(all) => all.map((thread) => {
                const cell = document.querySelector(`.af-cell[data-pair="${thread.dataset.pair}"]`);
                return [Number(thread.getAttribute("stroke-width")), 9 * cell.dataset.value];
            })"""
        )
        assert all(abs(width - weight) < 1e-3 for width, weight in widths)
    assert len(set(seen)) == 12
    again.click()
    off = page.locator('.af-off[data-key^="weight"]').count()
    assert off == len(seen[0])
    slide(page, "dropout rate", 0)
    expect(again).to_be_disabled()
