"""What all figures share in a browser: the prediction, the sentence, the link, typing, playing."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from browser import stop_the_clock
from playwright.sync_api import Locator, Page, expect
from stage import (
    FIGURES,
    PHONE,
    WIDE,
    Stage,
    pick,
    readings,
    slide,
    switch_off,
    type_into,
    unfold,
    value_of,
)
from torch import Tensor

from attention_book.figures import (
    AdditiveFigure,
    BlockFigure,
    HeadsFigure,
    LookupFigure,
    MaskingFigure,
    MatmulFigure,
    RegressionFigure,
    ScaleFigure,
    ScoringFigure,
    TilingFigure,
    language_model,
)
from attention_book.figures.additive import surface
from attention_book.figures.base import example
from attention_book.figures.scoring import five_scores

# For each figure: a move that shows nothing of the question, the moves that answer it, and those
# that meet the challenge.
LESSONS: dict[str, tuple[Any, Any, Any]] = {
    "regression": (
        lambda p: slide(p, "query", 3),
        lambda p: slide(p, "width w", 11),
        lambda p: (slide(p, "query", 0), slide(p, "width w", 0)),
    ),
    "lookup": (
        lambda p: slide(p, "query", 40),
        lambda p: slide(p, "query", 0),
        lambda p: slide(p, "query", 55),
    ),
    "scoring": (
        lambda p: slide(p, "query, feature 1", 17),
        lambda p: (slide(p, "query, feature 1", 20), slide(p, "query, feature 2", 20)),
        lambda p: (slide(p, "query, feature 1", 8), slide(p, "query, feature 2", 20)),
    ),
    "masking": (
        lambda p: slide(p, "example 1", 3),
        lambda p: pick(p, "fill", "after"),
        lambda p: pick(p, "fill", "1e-6"),
    ),
    "matmul": (
        lambda p: slide(p, "entry", 3),
        lambda p: type_into(p, "k 1 2", "5"),
        lambda p: type_into(p, "k 0 3", "-1"),
    ),
    "additive": (
        lambda p: slide(p, "scale of W_q, W_k", 2),
        lambda p: slide(p, "hidden units", 1),
        lambda p: (slide(p, "hidden units", 1), slide(p, "scale of W_q, W_k", 0)),
    ),
    "scale": (
        lambda p: slide(p, "d_k", 5),
        lambda p: slide(p, "d_k", 10),
        lambda p: slide(p, "d_k", 9),
    ),
    "heads": (
        lambda p: slide(p, "query position", 1),
        lambda p: slide(p, "heads", 1),
        lambda p: (slide(p, "heads", 3), p.get_by_role("button", name="Head 2").click()),
    ),
    "block": (
        lambda p: pick(p, "order", "as written"),
        lambda p: (pick(p, "order", "reversed"), pick(p, "positions", "false")),
        lambda p: slide(p, "dropout rate", 1),
    ),
    "language_model": (
        lambda p: (unfold(p), slide(p, "seed", 3)),
        lambda p: switch_off(p, language_model.shipped()["back"]),
        lambda p: switch_off(p, [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]),
    ),
    "live": (
        lambda p: slide(p, "tokens written", 2),
        lambda p: (
            p.get_by_role("checkbox", name="positions").uncheck(),
            p.get_by_role("textbox").fill("evil"),
            p.get_by_role("textbox").fill("live"),
        ),
        lambda p: p.get_by_role("textbox").fill("hippopotamus"),
    ),
    "tiling": (
        lambda p: slide(p, "tiles read", 3),
        lambda p: (slide(p, "tile size", 1), slide(p, "tiles read", 16)),
        lambda p: (slide(p, "tile size", 0), slide(p, "tiles read", 64)),
    ),
}


@pytest.mark.parametrize("kind", LESSONS)
def test_a_prediction_is_judged_when_its_answer_was_seen_and_reset_forgets_it(
    kind: str, stage: Stage
) -> None:
    page = stage.show(FIGURES[kind](), reduced_motion="reduce")
    opened = readings(page)
    idle, telling, _ = LESSONS[kind]
    verdict = page.locator(".af-verdict")
    page.locator(".af-predict input").nth(1).check()
    expect(verdict).to_have_text(re.compile(r"^Noted\. Now .*\.$"))
    idle(page)
    expect(verdict).to_have_text(re.compile(r"^Noted\. Now .*\.$"))
    telling(page)
    expect(verdict).to_have_text(
        re.compile(r"^(Your prediction was right|It turns out differently)\.")
    )
    assert readings(page) != opened
    idle(page)  # what was seen stays seen
    expect(verdict).not_to_have_text(re.compile("Noted"))
    page.get_by_role("button", name="Reset").click()
    assert readings(page) == opened
    assert verdict.text_content() == ""
    assert page.locator(".af-predict input:checked").count() == 0
    assert stage.errors == []


@pytest.mark.parametrize("kind", [kind for kind, lesson in LESSONS.items() if lesson[2]])
def test_a_challenge_stands_open_until_it_is_met(kind: str, stage: Stage) -> None:
    page = stage.show(FIGURES[kind]())
    goal = page.locator(".af-challenge")
    expect(goal).to_have_text(re.compile(r"^Challenge: .*\.$"))
    idle, telling, meeting = LESSONS[kind]
    idle(page)
    expect(goal).to_have_text(re.compile("^Challenge: "))
    if kind == "block":
        telling(page)
    meeting(page)
    expect(goal).to_have_text(re.compile("^Challenge met: "))
    page.get_by_role("button", name="Reset").click()
    expect(goal).to_have_text(re.compile("^Challenge: "))


def test_a_challenge_that_is_met_and_remembered_has_one_tick(stage: Stage) -> None:
    look = Path("book/_static/attention.css").resolve().as_uri()
    page = stage.show(LookupFigure(), before=f'<link rel="stylesheet" href="{look}">')
    ticks = """(goal) => ["::before", "::after"].map((part) =>
        getComputedStyle(goal, part).content).filter((text) => text.includes("✓")).length"""
    goal, figure = page.locator(".af-challenge"), page.locator("attention-figure")
    assert goal.evaluate(ticks) == 0
    figure.evaluate("(node) => { node.dataset.done = 'challenge'; }")  # on an earlier visit
    assert goal.evaluate(ticks) == 1
    LESSONS["lookup"][2](page)
    expect(goal).to_have_text(re.compile("^Challenge met: "))
    assert goal.evaluate(ticks) == 1


@pytest.mark.parametrize("kind", ["lookup", "regression", "scoring", "live"])
def test_to_answer_moves_nothing_where_there_is_room(kind: str, stage: Stage) -> None:
    page = stage.show(FIGURES[kind](), viewport={"width": 760, "height": 900})
    before = page.locator(".af-stage").bounding_box()
    for option in page.locator(".af-predict input").all():
        option.check()
        assert page.locator(".af-stage").bounding_box() == before
    LESSONS[kind][1](page)
    expect(page.locator(".af-verdict")).not_to_have_text(re.compile("Noted"))
    assert page.locator(".af-stage").bounding_box() == before


@pytest.mark.parametrize("kind", LESSONS)
def test_a_verdict_on_a_phone_moves_nothing(kind: str, stage: Stage) -> None:
    page = stage.show(FIGURES[kind](), viewport=PHONE)
    drawing, options = page.locator(".af-stage"), page.locator(".af-predict label")
    options.last.locator("input").check()
    before = drawing.bounding_box()
    LESSONS[kind][1](page)
    expect(page.locator(".af-right")).to_have_count(1)
    after = drawing.bounding_box()
    assert before
    assert after
    assert after["y"] + page.evaluate("scrollY") == pytest.approx(before["y"], abs=0.5)


def test_a_challenge_that_the_readers_own_numbers_meet_is_not_set(stage: Stage) -> None:
    page = stage.show(MatmulFigure(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])))
    assert not page.locator(".af-challenge").is_visible()


def test_a_challenge_is_met_where_the_pointer_lets_go_and_not_on_the_way(stage: Stage) -> None:
    page = stage.show(LookupFigure(), reduced_motion="reduce")
    goal = page.locator(".af-challenge")
    opened = goal.text_content()
    for at in range(50, -1, -1):  # to the left, as the prediction asks
        slide(page, "query", at)
        assert goal.text_content() == opened
    page.get_by_role("button", name="Reset").click()
    start = middle(page.locator('[data-key="answer"]'))
    plot = page.locator(".af-plot").first.bounding_box()
    assert plot
    step = (plot["width"] * 614 / 640) / 9  # pixels for a query larger by 1
    for end, met in ((1.5, False), (-1.0, False), (0.5, True)):
        page.mouse.move(*start)
        page.mouse.down()
        page.mouse.move(start[0] + step * 0.5, start[1])
        assert 33 <= value_of(page, "answer") <= 37
        assert goal.text_content() == opened
        page.mouse.move(start[0] + step * end, start[1])
        page.mouse.up()
        assert str(goal.text_content()).startswith("Challenge met: ") is met
        page.get_by_role("button", name="Reset").click()
    assert stage.errors == []


@pytest.mark.parametrize(
    ("keys", "values"),
    [(None, None), (torch.tensor([2.0, 0.0, 1.0]), torch.tensor([-3.0, 5.0, 1.0]))],
    ids=["stored", "negative"],
)
def test_the_products_of_a_lookup_end_at_its_answer_and_its_sentence_is_true(
    keys: Any, values: Any, stage: Stage
) -> None:
    page = stage.show(LookupFigure(keys, values), reduced_motion="reduce")
    least, most = (0.0, 40.0) if keys is None else (-3.0, 5.0)
    for at in range(0, 91, 3):
        slide(page, "query", at)
        answer = value_of(page, "answer")
        places, end, box = page.locator(".af-plot").last.evaluate(
            """(plot) => [[...plot.querySelectorAll(".af-product")].map((rect) =>
                ["x", "width"].map((name) => Number(rect.getAttribute(name)))),
                Number(plot.querySelector(".af-end").getAttribute("transform").match(/[-.\\d]+/)[0]),
                [14, Number(plot.getAttribute("viewBox").split(" ")[2]) - 12]]"""
        )
        unit = (box[1] - box[0]) / (most - least)
        reached = box[0] - least * unit
        for k, (x, width) in enumerate(places):
            product = value_of(page, f"product {k}")
            assert min(reached, reached + product * unit) == pytest.approx(x, abs=0.02)
            assert width == pytest.approx(abs(product) * unit, abs=0.02)
            reached += product * unit
        assert reached == pytest.approx(end, abs=0.02)
        terms, said = re.fullmatch(
            r"The query \S+ gets (.*) ≈ (\S+)\.",
            str(page.locator(".af-now").text_content()).replace("−", "-"),
        ).groups()  # type: ignore[union-attr]
        total = 0.0
        for term in terms.split(" + "):
            weight, value = map(float, term.split("·"))
            total += weight * value
        assert total == pytest.approx(answer, abs=0.006)
        assert float(said) == pytest.approx(answer, abs=0.0051)
    assert stage.errors == []


@pytest.mark.parametrize("kind", LESSONS)
def test_one_polite_region_speaks_the_sentence_and_nothing_else_is_live(
    kind: str, stage: Stage
) -> None:
    page = stage.show(FIGURES[kind]())
    picture = page.get_by_role("group", name="picture of this figure")
    name = picture.get_attribute("aria-label")
    assert page.locator("[role=status], [aria-live], output").count() == 1
    spoken = page.get_by_role("status")
    assert spoken.text_content() == ""
    LESSONS[kind][1](page)
    sentence = page.locator(".af-now").text_content() or ""
    assert sentence.endswith(".")
    expect(spoken).to_have_text(re.compile(re.escape(sentence)))
    assert picture.get_attribute("aria-label") == name
    assert page.locator(f"#{picture.get_attribute('aria-describedby')}").text_content() == sentence


@pytest.mark.parametrize("kind", LESSONS)
def test_a_link_brings_the_state_back(kind: str, stage: Stage) -> None:
    page = stage.show(FIGURES[kind](), permissions=["clipboard-read", "clipboard-write"])
    LESSONS[kind][1](page)
    moved = readings(page)
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator(".af-note")).to_have_text(re.compile("link|address"))
    assert f"#figure={kind}&" in page.url
    there = page.context.new_page()
    there.goto(page.url)
    there.locator(".af-form").wait_for()
    assert readings(there) == moved
    assert there.locator(".af-note").text_content() == ""


BROKEN = {
    "no such value": "#figure=masking&fill=%22after%22&valid_lens=[9,9]",
    "wrong type": "#figure=masking&valid_lens=%22many%22",
    "no such trait": "#figure=masking&fill=%22after%22&colour=1",
    "inherited name": "#figure=masking&constructor=1",
    "not JSON": "#figure=masking&fill=after",
    "endless": "#figure=masking&scores=" + "[" * 4000,
    "ragged scores": "#figure=masking&scores=[[[1,2,3,4],[1]],[[1,2,3,4],[1,2,3,4]]]",
    "huge scores": "#figure=masking&scores=[[[1e99,2,3,4],[1,2,3,4]],[[1,2,3,4],[1,2,3,4]]]",
    "another figure": "#figure=tiling&tile=2",
    "markup": "#figure=%3Cimg%20src=x%20onerror=alert(1)%3E",
}


@pytest.mark.parametrize("at", BROKEN.values(), ids=BROKEN.keys())
def test_an_address_that_cannot_be_shown_gets_one_sentence_and_the_opening_state(
    at: str, stage: Stage
) -> None:
    opened = readings(stage.show(MaskingFigure()))
    page = stage.show(MaskingFigure(), at=at)
    note = page.locator(".af-note").text_content() or ""
    assert re.fullmatch(r"The address .{10,200}\.", note)
    assert readings(page) == opened
    assert stage.errors == []


@pytest.mark.parametrize("at", ["", "#a-heading", "#figure", "#fill=%22after%22"])
def test_other_addresses_are_none_of_a_figures_business(at: str, stage: Stage) -> None:
    page = stage.show(MaskingFigure(), at=at)
    note = page.locator(".af-note")
    if at != "#figure":
        assert note.text_content() == ""
    assert stage.errors == []


def test_an_address_reaches_the_second_figure_of_a_kind_alone_and_follows_links(
    stage: Stage,
) -> None:
    page = stage.show(MaskingFigure(), MaskingFigure(), at="#figure=masking-2&fill=%22after%22")
    chosen = page.locator("select[name=fill]")
    assert [chosen.nth(i).input_value() for i in range(2)] == ["-inf", "after"]
    page.evaluate("location.hash = '#figure=masking&fill=%221e-6%22'")
    expect(chosen.first).to_have_value("1e-6")


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


@pytest.mark.parametrize(
    ("typed", "shown"), [("5", "5"), ("−2,5", "−2.5"), (" 0 ", "0"), ("1.23456", "1.235")]
)
def test_a_typed_number_takes_part(typed: str, shown: str, stage: Stage) -> None:
    page = stage.show(MatmulFigure())
    type_into(page, "q 1 1", typed)
    cell = page.locator('[data-key="q 1 1"]')
    expect(cell).to_have_text(shown)
    expect(cell).to_be_focused()
    number = float(shown.replace("−", "-"))
    entry = page.locator('[data-key="entry 1 1"]')
    assert float(entry.get_attribute("data-value") or "nan") == pytest.approx(number + 2)


@pytest.mark.parametrize("typed", ["", "abc", "1e9", "NaN", "<b>1</b>", "9" * 400])
def test_what_is_not_a_number_leaves_the_old_one_and_says_so(typed: str, stage: Stage) -> None:
    page = stage.show(MatmulFigure())
    opened = readings(page)
    type_into(page, "q 1 1", typed)
    assert readings(page) == opened
    note = page.locator(".af-note").text_content() or ""
    assert re.fullmatch(
        r"“.{0,21}” is not a number from −1000 to 1000; the old number stays\.", note
    )
    assert stage.errors == []


def test_escape_leaves_a_number_as_it_was_and_the_keyboard_can_type(stage: Stage) -> None:
    page = stage.show(MaskingFigure())
    opened = readings(page)
    cell = page.locator('[data-key="score 0 0 0"]')
    cell.focus()
    page.keyboard.press("Enter")
    page.keyboard.type("7")
    page.keyboard.press("ArrowRight")  # within the field
    page.keyboard.press("Escape")
    assert readings(page) == opened
    expect(cell).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.type("7")
    page.keyboard.press("Enter")
    expect(cell).to_have_text("7.0")


def test_home_end_and_arrows_walk_a_grid(stage: Stage) -> None:
    page = stage.show(MaskingFigure())
    page.locator('[data-key="score 0 0 1"]').focus()
    focused = page.locator(":focus")
    for press, key in [
        ("End", "score 0 0 3"),
        ("Home", "score 0 0 0"),
        ("ArrowDown", "score 0 1 0"),
        ("Control+End", "score 0 1 3"),
        ("ArrowRight", "score 0 1 3"),
        ("Control+Home", "score 0 0 0"),
    ]:
        page.keyboard.press(press)
        assert focused.get_attribute("data-key") == key


def test_memory_at_each_real_length_is_shown_as_python_says_it_and_spoken(stage: Stage) -> None:
    page = stage.show(TilingFigure())
    panel = page.locator(".af-panel", has_text="At real lengths")
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


def test_boxes_and_areas_of_memory_are_to_scale(stage: Stage) -> None:
    page = stage.show(TilingFigure(), reduced_motion="reduce")
    count = "(paths) => paths.map((path) => path.getAttribute('d').split('z').length - 1)"
    held = page.locator('[data-key^="held"]')
    for i, tile in enumerate((1, 2, 4, 8)):
        slide(page, "tile size", i)
        whole, filled = page.locator(".af-boxes").evaluate_all(count)
        assert [whole, filled] == [64, tile**2 + 3 * tile]
        assert held.all_inner_texts() == [
            f"{n} numbers" if n > 1 else "1 number" for n in (tile**2, filled, whole)
        ]
    sides = "(rects) => rects.map((rect) => Number(rect.getAttribute('width')))"
    for i in range(8):
        slide(page, "positions n", i)
        whole, tile = page.locator(".af-whole, .af-part").evaluate_all(sides)
        bytes_of = [
            page.locator(f'[data-key="memory {i}"]').get_attribute("data-value") for i in (0, 1)
        ]
        assert (tile / whole) ** 2 == pytest.approx(float(bytes_of[1]) / float(bytes_of[0]))


def test_a_tile_too_small_to_be_seen_is_enlarged_to_scale(stage: Stage) -> None:
    page = stage.show(TilingFigure(), reduced_motion="reduce")
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
            cell.getAttribute("aria-label").split(", ").at(-1)])"""
    )
    assert len(looks) == 64
    for (row, column), text, is_grey, state in looks:
        tile = row // 2 * 4 + column // 2
        gone = tile < 6
        assert is_grey == gone
        assert (text == "") == gone
        expected = "read before and no longer in memory" if gone else "held now"
        assert state == (expected if tile <= 6 else "not read yet")


@pytest.mark.parametrize("tile", [1, 4, 8])
def test_before_the_first_tile_nothing_is_held(tile: int, stage: Stage) -> None:
    page = stage.show(TilingFigure(tile=tile, step=0))
    assert page.locator(".af-tiled .af-cursor:visible").count() == 0
    assert page.locator(".af-filled").get_attribute("d") == ""
    assert [value_of(page, f"held {i}") for i in range(3)] == [0, 0, 64]
    expect(page.locator(".af-now")).to_have_text(re.compile("no score is held"))
    slide(page, "tiles read", 1)
    assert value_of(page, "held 0") == tile**2


def test_a_row_flashes_when_a_larger_score_rescales_it(stage: Stage) -> None:
    scores = torch.tensor([[0.0, 1.0], [2.0, 1.0]])
    flashing = "(all) => all.map((flash) => flash.getAnimations().length)"
    for motion, expected in (("no-preference", [1, 0]), ("reduce", [0, 0])):
        page = stage.show(TilingFigure(scores, tile=1, step=1), reduced_motion=motion)
        warm = page.locator(".af-rescaled")
        assert warm.count() == 0
        slide(page, "tiles read", 2)
        assert page.locator(".af-flash").evaluate_all(flashing) == expected
        assert warm.get_attribute("data-key") == "factor 0"
        assert warm.get_attribute("aria-label") == (
            "q1: with the last tile, l and o were multiplied by exp(old m − new m) = 0.37"
        )
        slide(page, "tiles read", 4)  # no larger score, and not the next tile
        assert page.locator(".af-flash").evaluate_all(flashing) == expected


def best_scores(size: int, name: str, query: int) -> tuple[Tensor, int]:
    """The scores of one query of the example figure, and its best key."""
    q, k = example(200, 1024, seed=1)[:, :size], example(10, 1024, seed=2)[:, :size]
    row = k @ q[query] / (size**0.5 if name == "scaled" else 1)
    return row, int(row.argmax())


def test_the_curve_of_the_scale_figure_is_the_weight_of_the_best_key(stage: Stage) -> None:
    figure = ScaleFigure()
    curve = stage.show(figure).locator(".af-sigmoid").get_attribute("d") or ""
    points = [[*map(float, point.split(","))] for point in curve[1:].split("L")]
    x, y = torch.tensor(points, dtype=torch.float64).T
    for size, name in ((4, "plain"), (64, "plain"), (1024, "scaled")):
        scores, best = best_scores(size, name, figure.data["query"])
        others = torch.cat([scores[:best], scores[best + 1 :]])
        leads = torch.linspace(-8, 8, 161, dtype=torch.float64)
        assert torch.allclose((x - x[0]) / (x[-1] - x[0]), (leads + 8) / 16, atol=1e-4)
        rows = others.repeat(161, 1)  # the other keys keep their scores
        raised = torch.cat([leads[:, None] + others.logsumexp(dim=0), rows], dim=1)
        weights = torch.softmax(raised, dim=-1)[:, 0]
        height = (y[0] - y) / (y[0] - y[-1]) * (weights[-1] - weights[0]) + weights[0]
        assert torch.allclose(height, weights, atol=2e-4)


@pytest.mark.parametrize("width", [1000, 390])
def test_the_dots_on_the_curve_are_as_high_as_their_bars(width: int, stage: Stage) -> None:
    figure = ScaleFigure()
    page = stage.show(figure, viewport={"width": width, "height": 900})
    for i, size in enumerate(figure.data["stops"]):
        slide(page, "d_k", i)
        for name in ("plain", "scaled"):
            scores, best = best_scores(size, name, figure.data["query"])
            weight = torch.softmax(scores, dim=-1)[best].item()
            dot = page.locator(f'[data-key="{name} slope"]')
            bar = page.locator(f'[data-key="{name} weight {best}"]')
            assert dot.get_attribute("data-pair") == bar.get_attribute("data-pair")
            x, y = (float(dot.get_attribute(part) or "nan") for part in ("cx", "cy"))
            # The axes of the curve are 138 units high, those of the bars 68.
            assert (150 - y) / 138 == pytest.approx(weight, abs=1e-5)
            height = float(bar.get_attribute("height") or "nan")
            assert height / 68 == pytest.approx(weight, abs=1e-5)
            lead = torch.logit(torch.tensor(weight, dtype=torch.float64)).clamp(-8, 8).item()
            assert x == pytest.approx(52 + (lead + 8) / 16 * 336, abs=1e-2)
            stroke = page.locator(f".af-tangent.af-{name}").get_attribute("d") or ""
            (x_1, y_1), (x_2, y_2) = (map(float, end.split(",")) for end in stroke[1:].split("L"))
            assert x_1 < x <= x_2 <= 388
            rise = (y_1 - y_2) / 138 / ((x_2 - x_1) / 336 * 16)
            assert rise == pytest.approx(weight * (1 - weight), abs=2e-3)
    bar.hover()
    linked = page.locator(".af-linked").evaluate_all("(all) => all.map((one) => one.dataset.key)")
    assert sorted(linked) == ["scaled slope", f"scaled weight {best}"]


def test_no_reading_covers_the_rise_of_the_curve(stage: Stage) -> None:
    for size in (WIDE, PHONE):
        page = stage.show(ScaleFigure(), viewport=size)
        for i, name in ((2, "plain"), (2, "scaled"), (10, "plain"), (10, "scaled")):
            slide(page, "d_k", i)
            page.locator(f'[data-key="{name} slope"]').hover()
            reading = page.locator(".af-reading").bounding_box()
            curve = page.locator(".af-sigmoid").bounding_box()
            assert reading
            assert curve
            assert reading["y"] >= curve["y"] + curve["height"]


def test_on_a_phone_the_gradient_is_seen_beside_the_slider(stage: Stage) -> None:
    page = stage.show(ScaleFigure(), viewport=PHONE)
    nodes = [page.locator(f'[data-key="plain {key}"]') for key in ("gradient 0", "variance 0")]
    slider = page.get_by_role("slider", name="d_k")
    gradient, variance, d_k = (node.bounding_box() for node in (*nodes, slider))
    assert gradient
    assert variance
    assert d_k
    assert 0 < d_k["y"] - gradient["y"] < 120
    assert variance["y"] > d_k["y"]


def test_the_scale_figure_says_how_few_numbers_its_variance_is_of(stage: Stage) -> None:
    for figure, sample in (
        (ScaleFigure(), "200 queries and 10 keys"),
        (ScaleFigure(torch.randn(6, 8), torch.randn(3, 8)), "6 queries and 3 keys"),
    ):
        note = stage.show(figure).locator(".af-small-print")
        expect(note).to_have_text(re.compile(f"^The variance is measured on {sample}[.]"))


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
        assert len(arrows) >= num_heads
        assert all(key == nearest for key, nearest, _, _ in arrows)
        assert all(abs(width - 7 * weight) < 0.01 for _, _, weight, width in arrows)
        assert page.locator('.af-place[aria-pressed="true"]:visible').text_content() == str(query)


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
    assert stage.errors == []


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_the_sliders_stay_where_they_are_for_any_number_of_heads(
    size: dict[str, int], stage: Stage
) -> None:
    page = stage.show(HeadsFigure(), viewport=size)
    slider = page.get_by_role("slider", name="heads", exact=True)
    within = "(node) => node.getBoundingClientRect().y - node.form.getBoundingClientRect().y"
    seen = set()
    for i in range(4):
        slide(page, "heads", i)
        seen.add(slider.evaluate(within))
    page.get_by_role("button", name="Head 7").click()
    assert seen == {slider.evaluate(within)}


def test_one_head_is_kept_with_its_map_and_its_arrows(stage: Stage) -> None:
    page = stage.show(HeadsFigure(num_heads=8))
    arrows = page.locator('[data-key^="arrow"]:visible')
    shown = page.locator(".af-headmap:visible .af-title")
    kept = "(all) => [...new Set(all.map((node) => node.dataset.key.split(' ')[1]))]"
    every = readings(page)
    assert shown.count() == 8
    for head in (3, 6):
        page.get_by_role("button", name=f"Head {head}", exact=True).click()
        assert shown.all_text_contents() == [f"Head {head}"]
        assert arrows.evaluate_all(kept) == [str(head)]
        expect(page.locator(".af-now")).to_have_text(re.compile(rf"^In head {head}, position 4 "))
    page.locator('[data-key="weight 6 2 0"]').click()  # a row of the map that is kept
    expect(page.locator(".af-now")).to_have_text(re.compile("^In head 6, position 2 "))
    slide(page, "query position", 4)
    page.get_by_role("button", name="all heads").click()
    assert readings(page) == every
    page.locator(".af-headmap:visible .af-title").nth(5).click()
    assert arrows.evaluate_all(kept) == ["5"]
    slide(page, "heads", 1)  # another model has other heads
    assert shown.all_text_contents() == ["Head 0", "Head 1"]
    assert stage.errors == []


@pytest.mark.parametrize("head", ["3", "-1", '"none"', "true", "null"])
def test_an_address_cannot_keep_a_head_that_the_model_lacks(head: str, stage: Stage) -> None:
    page = stage.show(HeadsFigure(), at=f"#figure=heads&num_heads=2&head={head}")
    assert "cannot show" in (page.locator(".af-note").text_content() or "")
    assert page.locator(".af-headmap:visible").count() == 1


def test_a_map_has_the_colour_of_its_head_and_large_numbers_in_the_chosen_row(stage: Stage) -> None:
    for size, counts in ((WIDE, (1, 2, 4, 8)), (PHONE, (1, 2, 8))):
        for count in counts:
            page = stage.show(HeadsFigure(num_heads=count), viewport=size)
            looks = page.locator(".af-headmap:visible").evaluate_all(
                """(maps) => maps.map((map) => {
                    const colour = (name, what) =>
                        getComputedStyle(map.querySelector(name))[what].split(" ").at(-1);
                    return [colour(".af-square", "fill"), colour(".af-swatch", "background-color")];
                })"""
            )
            assert all(of_map == of_head for of_map, of_head in looks)
            assert len({of_map for of_map, _ in looks}) == count
            if count == 8:
                page.get_by_role("button", name="Head 2", exact=True).click()
            numbers = page.locator(".af-inset:visible").evaluate_all(
                """(all) => all.filter((one) => one.textContent).map((one) => [one.textContent,
                    parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().a])"""
            )
            assert numbers
            assert all(size >= 10 for _, size in numbers), (count, numbers)
            rows = page.locator('.af-headmap:visible [data-key^="weight"][data-pair*=" 4 "]')
            row = rows.evaluate_all("(all) => all.map((one) => Number(one.dataset.value))")
            large = [weight for weight in row if weight >= 0.05]
            assert len(numbers) == len(large)
            for (text, _), weight in zip(numbers, large, strict=True):
                assert abs(float(text) - weight) <= 0.0051


def test_what_a_map_says_does_not_cover_it(stage: Stage) -> None:
    page = stage.show(HeadsFigure(num_heads=2))
    for key in ("weight 0 0 0", "weight 1 1 7"):
        cell = page.locator(f'[data-key="{key}"]:visible')
        cell.hover()
        whole = cell.locator("xpath=ancestor::*[@role='grid']").bounding_box()
        said = page.locator(".af-reading").bounding_box()
        assert whole
        assert said
        assert said["y"] >= whole["y"] + whole["height"]


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_the_axes_of_the_maps_are_named_alike_for_any_number_of_heads(
    count: int, stage: Stage
) -> None:
    for options in ({}, {"viewport": PHONE}):
        page = stage.show(HeadsFigure(num_heads=count), **options)
        names = page.locator(".af-headside:visible .af-dim")
        assert names.all_inner_texts() == ["queries ↓", "keys →"]
        for name in names.all():
            size = float(name.evaluate("(node) => parseFloat(getComputedStyle(node).fontSize)"))
            assert 11 <= size <= 17
        said = page.get_by_text("written: weights from 0.05 on").filter(visible=True)
        assert said.count() == (1 if page.locator(".af-inset:visible").count() else 0)


def test_the_challenge_of_the_heads_asks_for_one_head_over_all_positions(stage: Stage) -> None:
    data = HeadsFigure().data
    page = stage.show(HeadsFigure(), reduced_motion="reduce")
    goal = page.locator(".af-challenge")
    met = set()
    for index, count in enumerate(data["counts"]):
        slide(page, "heads", index)
        assert str(goal.text_content()).startswith("Challenge: ")
        for head in range(count if count > 1 else 0):
            page.get_by_role("button", name="Reset").click()
            slide(page, "heads", index)
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


TOUCH = {"viewport": PHONE, "has_touch": True, "is_mobile": True}


def test_a_tap_on_a_word_reads_it_and_moves_nothing(stage: Stage) -> None:
    page = stage.show(BlockFigure(), reduced_motion="reduce", **TOUCH)
    for i in (0, 1):
        page.locator(f'[data-key="token {i}"]').tap()
        expect(page.locator(".af-reading")).to_contain_text(f"place {i + 1}")
        assert page.locator('.af-card[aria-pressed="true"]').count() == 0
    assert words(page) == ["the", "dog", "bit", "a", "man"]
    assert page.locator(".af-note").text_content() == ""


def test_hints_speak_of_what_the_reader_points_with(stage: Stage) -> None:
    for options, is_touch in ((TOUCH, True), ({}, False)):
        page = stage.show(FIGURES["language_model"](), **options)
        summary = page.locator(".af-vocabulary summary").first
        expect(summary).to_have_text(re.compile("^Tap words" if is_touch else "^Click words"))
        hops = page.locator(".af-hops")
        expect(hops).to_have_text(re.compile("^Tap a word" if is_touch else "^Point at a word"))


def test_the_verdict_stands_beside_the_sentence_on_a_phone(stage: Stage) -> None:
    for options, is_seen in (({"viewport": PHONE}, True), ({}, False)):
        page = stage.show(HeadsFigure(), reduced_motion="reduce", **options)
        page.locator(".af-predict input").nth(0).check()
        echo = page.locator(".af-echo")
        assert not echo.is_visible()
        LESSONS["heads"][1](page)
        assert echo.is_visible() is is_seen
        assert echo.text_content() == "✗ It turns out differently."
        page.locator(".af-predict input").nth(1).check()
        assert echo.text_content() == "✓ Your prediction was right."
        page.get_by_role("button", name="Reset").click()
        assert echo.text_content() == ""


def test_what_folds_away_has_no_border_of_another_figure(stage: Stage) -> None:
    page = stage.show(FIGURES["language_model"]())
    unfold(page)
    into = page.locator(".af-choosing")
    assert into.evaluate("(node) => getComputedStyle(node).borderTopStyle") == "none"
    whole, last = into.bounding_box(), into.locator(".af-slider").last.bounding_box()
    assert whole
    assert last
    assert last["y"] + last["height"] <= whole["y"] + whole["height"] + 1


def test_rows_that_a_tile_has_left_are_done(stage: Stage) -> None:
    page = stage.show(TilingFigure(), reduced_motion="reduce")
    strips = page.get_by_role("slider", name="tiles read").get_attribute("max")
    slide(page, "tiles read", int(str(strips)))
    for r, is_done in ((0, True), (7, False)):
        for name in ("m", "l", "factor"):
            cell = page.locator(f'[data-key="{name} {r}"]')
            kinds = str(cell.get_attribute("class"))
            assert ("af-forgotten" in kinds) is is_done
            assert not (is_done and "af-rescaled" in kinds)
            assert ("no longer in memory" in str(cell.get_attribute("aria-label"))) is is_done
        written = str(page.locator(f'[data-key="o {r}"]').get_attribute("aria-label"))
        assert ("written out" in written) is is_done


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
    options = {"viewport": PHONE, "has_touch": True, "is_mobile": True} if touch else {}
    page = stage.show(BlockFigure(positions=False), reduced_motion="reduce", **options)
    page.locator(".af-card").first.scroll_into_view_if_needed()
    page.locator(".af-order .af-plot").evaluate("(node) => node.scrollIntoView({block: 'center'})")
    outputs = [
        page.locator(f'[data-key="output 1 {c}"]').get_attribute("data-value") for c in range(8)
    ]
    x, y = middle(page.locator('[data-key="token 1"]'))
    to, _ = middle(page.locator('[data-key="token 4"]'))
    if touch:
        session = page.context.new_cdp_session(page)
        for event, at in [("touchStart", x), ("touchMove", x + 20), ("touchMove", to)]:
            points = [{"x": at, "y": y}]
            session.send("Input.dispatchTouchEvent", {"type": event, "touchPoints": points})
        session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    else:
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(to + 15, y, steps=8)
        assert words(page) == ["the", "bit", "a", "man", "dog"]
        page.mouse.up()
    assert words(page) == ["the", "bit", "a", "man", "dog"]
    moved = [
        page.locator(f'[data-key="output 4 {c}"]').get_attribute("data-value") for c in range(8)
    ]
    assert [float(n or "nan") for n in moved] == pytest.approx([float(n or "nan") for n in outputs])
    card, output = page.locator('[data-key="token 4"]'), page.locator('[data-key="change 4"]')
    assert middle(card)[0] == pytest.approx(middle(output)[0], abs=2)
    expect(page.locator(".af-now")).to_have_text(re.compile("“the bit a man dog”.*no output"))
    assert page.locator("input[name=order]:checked").count() == 0
    page.get_by_role("button", name="Reset").click()
    assert words(page) == ["the", "dog", "bit", "a", "man"]
    assert stage.errors == []


def test_a_dragged_word_passes_over_the_others_and_no_reading_covers_threads(stage: Stage) -> None:
    page = stage.show(BlockFigure(), reduced_motion="reduce")
    x, y = middle(page.locator('[data-key="token 1"]'))
    to, _ = middle(page.locator('[data-key="token 2"]'))
    on_top = "([x, y]) => document.elementFromPoint(x, y).closest('.af-card').textContent"
    said = page.locator(".af-reading")
    woven = page.locator(".af-threads").bounding_box()
    assert woven
    page.mouse.move(x, y)
    box = said.bounding_box()
    assert box
    assert box["y"] + box["height"] <= woven["y"] + 1
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
    box = said.bounding_box()
    assert box
    assert box["y"] >= woven["y"] + woven["height"] - 1
    assert stage.errors == []


def test_reversing_the_words_and_nothing_else_answers_the_question(stage: Stage) -> None:
    page = stage.show(BlockFigure())
    page.locator(".af-predict input").nth(1).check()
    pick(page, "order", "reversed")
    expect(page.locator(".af-verdict")).to_have_text(re.compile("^Your prediction was right"))
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
    assert stage.errors == []


@pytest.mark.parametrize("order", ["[0,1]", "[0,1,2,3,3]", '"reversed"', "[0,1,2,3,null]", "{}"])
def test_an_address_cannot_lose_a_word(order: str, stage: Stage) -> None:
    page = stage.show(BlockFigure(), at=f"#figure=block&order={order}")
    assert "cannot show" in (page.locator(".af-note").text_content() or "")
    assert words(page) == ["the", "dog", "bit", "a", "man"]


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


def test_play_steps_to_the_end_stops_and_starts_again(stage: Stage) -> None:
    page = stage.show(TilingFigure())
    stop_the_clock(page)
    page.locator(".af-form").wait_for()
    read = page.locator('.af-slider:has-text("tiles read") .af-value')
    expect(read).to_have_text("2 of 4")
    page.clock.run_for(10_000)
    expect(read).to_have_text("2 of 4")  # nothing plays by itself
    button = page.get_by_role("button", name="Play")
    button.click()
    expect(read).to_have_text("3 of 4")
    page.clock.run_for(900)
    expect(read).to_have_text("4 of 4")
    expect(button).to_be_visible()  # not "Pause": at the end it has stopped
    button.click()  # and begins again
    expect(read).to_have_text("0 of 4")
    page.get_by_role("button", name="Pause").click()
    page.clock.run_for(10_000)
    expect(read).to_have_text("0 of 4")


def test_where_motion_is_unwelcome_each_press_is_one_step(stage: Stage) -> None:
    page = stage.show(TilingFigure(tile=2, step=3), reduced_motion="reduce")
    stop_the_clock(page)
    read = page.locator('.af-slider:has-text("tiles read") .af-value')
    page.get_by_role("button", name="Next step").click()
    page.clock.run_for(10_000)
    expect(read).to_have_text("4 of 16")


def test_a_slider_with_one_stop_is_not_shown(stage: Stage) -> None:
    page = stage.show(HeadsFigure(torch.full((2, 3, 3), 1 / 3)))
    assert page.locator(".af-slider:visible > span:first-child").all_text_contents() == [
        "query position"
    ]
    assert page.locator(".af-predict").count() == 0  # nothing is asked about a reader's own maps


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
    assert stage.errors == []


def test_no_bar_of_weights_reaches_the_number_above_it_and_each_row_names_its_fill(
    stage: Stage,
) -> None:
    page = stage.show(MaskingFigure(fill="1e-6", compare="-inf"))
    rows = page.locator(".af-sentence .af-line:visible .af-side").all_inner_texts()
    named = ["query 1\nscore 10⁻⁶", "score −∞", "query 2\nscore 10⁻⁶", "score −∞"]
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


@pytest.mark.parametrize("width", [360, 677, 1000])
def test_each_row_of_scores_has_an_edge_at_its_own_length(width: int, stage: Stage) -> None:
    page = stage.show(MaskingFigure(), viewport={"width": width, "height": 900})
    scores = page.locator(".af-edged").first
    slide(page, "example 1, query 2", 3)
    assert (
        page.locator(".af-tensor").text_content() == "valid_lens = [[2, 3], [3, 3]], one per query"
    )
    edges = scores.locator(".af-edge[style] input")
    lengths = edges.evaluate_all("(all) => all.map((one) => Number(one.value))")
    assert lengths == [2, 3]
    for row, edge in enumerate(edges.all()):
        at, cell = (
            one.bounding_box()
            for one in (edge, page.locator(f'[data-key="score 0 {row} {lengths[row] - 1}"]'))
        )
        assert at
        assert cell
        middle_of_thumb = at["x"] + 12 + (at["width"] - 24) * lengths[row] / 4
        assert middle_of_thumb == pytest.approx(cell["x"] + cell["width"], abs=1.5)
        assert at["y"] == pytest.approx(cell["y"], abs=1.5)
        assert at["height"] == pytest.approx(cell["height"], abs=1.5)
    # What moves all rows reaches through none of them.
    whole = page.get_by_role("slider", name="example 1", exact=True)
    assert whole.get_attribute("aria-valuetext") == "from 2 to 3 of 4 keys"
    box, last = whole.bounding_box(), page.locator('[data-key="score 0 1 0"]').bounding_box()
    assert box
    assert last
    assert box["y"] >= last["y"] + last["height"] - 1
    slide(page, "example 1", 1)
    assert whole.get_attribute("aria-valuetext") == "1 of 4 keys"
    assert not edges.first.is_visible()
    # An edge in the scores is dragged through the length of the other row and keeps going.
    slide(page, "example 1, query 2", 2)
    at = edges.last.bounding_box()
    assert at
    place = [at["x"] + 12 + (at["width"] - 24) * n / 4 for n in range(5)]
    page.mouse.move(place[2], at["y"] + at["height"] / 2)
    page.mouse.down()
    for n in (1, 0, 4):
        page.mouse.move(place[n], at["y"] + at["height"] / 2, steps=3)
    page.mouse.up()
    assert "[[1, 4], [3, 3]]" in str(page.locator(".af-tensor").text_content())
    assert stage.errors == []


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
    height = 1.4 * 16
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
        box = edge.bounding_box()
        assert box
        heads = edge.locator("xpath=ancestor::div[@class='af-edged']").locator(".af-head").all()
        assert heads
        for head in heads:
            word = head.bounding_box()
            assert word
            assert word["y"] + word["height"] <= box["y"] + 1


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
    drawing, scene = (
        page.locator(".af-ell").bounding_box(),
        page.locator(".af-scene").bounding_box(),
    )
    assert drawing
    assert scene
    assert drawing["width"] + 7 <= scene["width"]  # with the sheet behind
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
    phone = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
    page = stage.show(MatmulFigure(), **phone)
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


@pytest.mark.parametrize(
    ("kind", "size"), [("matmul", WIDE), ("matmul", PHONE), ("masking", WIDE), ("masking", PHONE)]
)
def test_no_explanation_covers_a_title_or_the_name_of_a_column(
    kind: str, size: dict[str, int], stage: Stage
) -> None:
    page = stage.show(FIGURES[kind](), viewport=size)
    covered = page.evaluate(
        """() => [...document.querySelectorAll(".af-stage [data-at]")].filter((mark) => {
            if (mark.closest("[hidden]")) return false;
            mark.scrollIntoView({ block: "center" });
            mark.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
            const bubble = document.querySelector(".af-reading").getBoundingClientRect();
            return [...document.querySelectorAll(".af-title, .af-head")].some((title) => {
                const at = title.getBoundingClientRect();
                return at.width && bubble.left < at.right && at.left < bubble.right
                    && bubble.top < at.bottom - 4 && at.top < bubble.bottom;
            });
        }).map((mark) => mark.dataset.key)"""
    )
    assert not covered, covered


def test_what_was_tapped_is_explained_until_the_next_tap_or_scroll(stage: Stage) -> None:
    phone = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
    page = stage.show(MatmulFigure(), **phone)
    bubble = page.locator(".af-reading")
    entry = page.locator('[data-key="entry 1 1"]')
    entry.tap()
    expect(bubble).to_be_visible()
    page.evaluate("scrollBy(0, 60)")
    expect(bubble).to_be_hidden()
    entry.tap()
    expect(bubble).to_be_visible()
    page.get_by_role("button", name="Play").tap()
    expect(bubble).to_be_hidden()


def test_a_phone_can_type_a_negative_number(stage: Stage) -> None:
    page = stage.show(MatmulFigure())
    page.locator('[data-key="k 0 3"]').click()
    # The decimal keys of some phones have no minus sign.
    assert page.locator(".af-field").get_attribute("inputmode") == "text"


@pytest.mark.parametrize("kind", LESSONS)
@pytest.mark.parametrize("is_phone", [True, False])
def test_no_control_is_under_the_drawing_wherever_the_page_is_scrolled(
    kind: str, is_phone: bool, stage: Stage
) -> None:
    size = {"width": 390, "height": 844} if is_phone else {"width": 1280, "height": 720}
    page = stage.show(FIGURES[kind](), viewport=size, has_touch=is_phone, is_mobile=is_phone)
    page.add_style_tag(content="body { padding-bottom: 900px }")
    hidden = page.evaluate(
        """async () => {
            const found = [];
            for (let y = 0; y < document.body.scrollHeight - innerHeight; y += 50) {
                scrollTo(0, y);
                await new Promise(requestAnimationFrame);
                const stage = document.querySelector(".af-stage");
                for (const one of document.querySelectorAll(
                    ".af-controls :is(input, select, button), .af-now")) {
                    const box = one.getBoundingClientRect();
                    const [x, at] = [box.left + box.width / 2, box.top + box.height / 2];
                    if (!box.width || at < 0 || at > innerHeight) continue;
                    if (stage.contains(document.elementFromPoint(x, at)))
                        found.push([y, one.name || one.type || "sentence"]);
                }
            }
            return found;
        }"""
    )
    assert hidden == []


def test_keys_that_score_the_same_are_all_named(stage: Stage) -> None:
    figure = FIGURES["additive"]
    for settings, named, best in [
        ({"hidden": 6, "query": 3.0}, "3.00", "at keys −3.00 and 3.00, which score the same."),
        ({"hidden": 2, "query": 1.5}, "1.50", "at key 1.50."),
        (
            {"hidden": 1, "scale": 8.0, "query": 1.875},
            "1.875",
            "at 13 keys from −3.00 to 1.50, which",
        ),
    ]:
        made = figure(**settings)
        page = stage.show(made)
        sentence = page.locator(".af-now").text_content() or ""
        query = f"Query {named} scores highest "
        assert query in sentence
        assert best in sentence
        assert made.describe().endswith(sentence)


def test_the_focus_stays_in_the_figure_when_the_last_unit_was_added(stage: Stage) -> None:
    page = stage.show(FIGURES["additive"](hidden=5))
    page.get_by_role("button", name="Add a unit").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("slider", name="hidden units")).to_be_focused()


@pytest.mark.parametrize("part", [".af-slider-knob", ".af-cursor"])
@pytest.mark.parametrize("side", [3, None])
def test_the_frame_of_a_query_is_dragged_while_the_pointer_moves(
    part: str, side: int | None, stage: Stage
) -> None:
    page = stage.show(FIGURES["additive"]())
    value = page.get_by_role("slider", name="query of the curve")
    box = page.locator(part).bounding_box()
    assert box
    x = box["x"] + (side or box["width"] / 2)
    page.mouse.move(x, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(x + 40, box["y"] + 20, steps=4)
    moved = float(value.get_attribute("aria-valuetext") or "nan")
    assert moved >= 0.75  # before the button is let go
    page.mouse.up()
    assert float(value.get_attribute("aria-valuetext") or "nan") == moved


@pytest.mark.parametrize(
    ("part", "aside"), [(".af-slider-reach", 0), (".af-cursor", 0), (".af-cursor", -16)]
)
def test_a_finger_drags_the_frame_of_a_query(part: str, aside: int, stage: Stage) -> None:
    phone = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
    page = stage.show(FIGURES["additive"](), **phone)
    knob = page.locator(part)
    knob.evaluate("(node) => node.scrollIntoView({ block: 'center' })")
    box, top = knob.bounding_box(), page.evaluate("scrollY")
    assert box
    if part == ".af-slider-reach":
        assert min(box["width"], box["height"]) >= 24
    x, y = box["x"] + box["width"] / 2 + aside, box["y"] + box["height"] / 2
    session = page.context.new_cdp_session(page)
    for event, points in [
        ("touchStart", [{"x": x, "y": y}]),
        ("touchMove", [{"x": x + 30, "y": y}]),
        ("touchMove", [{"x": x + 60, "y": y - 20}]),
        ("touchEnd", []),
    ]:
        session.send("Input.dispatchTouchEvent", {"type": event, "touchPoints": points})
    value = page.get_by_role("slider", name="query of the curve")
    assert float(value.get_attribute("aria-valuetext") or "nan") >= 0.75
    assert page.evaluate("scrollY") == top


def test_a_finger_that_moves_upright_from_the_frame_scrolls_the_page(stage: Stage) -> None:
    phone = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
    page = stage.show(FIGURES["additive"](), **phone)
    frame = page.locator(".af-cursor")
    frame.evaluate("(node) => node.scrollIntoView({ block: 'center' })")
    opened, top = readings(page), page.evaluate("scrollY")
    swipe(page, middle(frame), 120)
    page.wait_for_function("(top) => scrollY > top + 60", arg=top)
    assert readings(page) == opened


def test_a_unit_has_the_colours_of_the_sum(stage: Stage) -> None:
    page = stage.show(FIGURES["additive"]())  # one unit: the sum is that unit
    ends = page.locator(".af-tile stop").evaluate_all(
        """(stops) => [stops[0], stops[24]].map((stop) => {
            const { stopColor, stopOpacity } = stop.style;
            return [stopColor, Number(stopOpacity)];
        })"""
    )
    squares = page.locator(".af-square").evaluate_all(
        """(squares) => squares.map((square) => [Number(square.dataset.value),
            square.classList.contains("af-below"), Number(square.getAttribute("fill-opacity"))])"""
    )
    for (colour, opacity), (score, is_below, shade) in zip(
        ends, (min(squares), max(squares)), strict=True
    ):
        assert abs(score) == pytest.approx(0.5, abs=1e-3)
        assert colour == ("var(--af-negative)" if is_below else "var(--af-weight)")
        assert opacity == pytest.approx(shade, abs=0.002)


def test_a_query_is_the_same_number_in_its_slider_its_sentence_and_its_readings(
    stage: Stage,
) -> None:
    for query, shown in ((-1.125, "−1.125"), (0.75, "0.75"), (0.0, "0.00")):
        page = stage.show(FIGURES["additive"](query=query))
        slider = page.get_by_role("slider", name="query of the curve")
        assert slider.get_attribute("aria-valuetext") == shown
        assert f"Query {shown} scores" in str(page.locator(".af-now").text_content())
        slice_ = page.locator('[data-key="slice 0"]').get_attribute("aria-label")
        assert str(slice_).startswith(f"query {shown}, key −3.00: ")


def test_the_formula_of_a_unit_has_its_signs_between_its_terms(stage: Stage) -> None:
    page = stage.show(FIGURES["additive"](hidden=6))
    said = page.locator(".af-map").evaluate_all("(maps) => maps.map((map) => map.reading)")
    assert said[1] == "unit 2: −0.50 · tanh(2.00 q − 2.00 k − 2.00)"
    assert said[2] == "unit 3: 0.50 · tanh(2.00 q + 2.00 k + 2.00)"
    assert not any("+ −" in text for text in said)


def test_a_unit_and_its_curve_have_one_colour_and_light_up_together(stage: Stage) -> None:
    page = stage.show(FIGURES["additive"](hidden=6))
    hues = "(nodes) => nodes.map((node) => node.style.getPropertyValue('--hue'))"
    names = page.locator(".af-unit-name").evaluate_all(hues)
    assert page.locator(".af-unit").evaluate_all(hues) == names
    assert len(set(names)) == 6
    page.locator('[data-key="unit 3"]').hover()
    linked = page.locator(".af-unit").evaluate_all(
        "(nodes) => nodes.map((node) => node.classList.contains('af-linked'))"
    )
    assert linked == [j == 3 for j in range(6)]


def test_adding_a_unit_leaves_the_colours_of_scores_and_the_title_in_sight(stage: Stage) -> None:
    page = stage.show(FIGURES["additive"](), viewport={"width": 677, "height": 900})
    legend = page.locator(".af-legend").first
    opened = legend.text_content()
    add = page.get_by_role("button", name="Add a unit")
    for _ in range(3):
        add.click()
        assert legend.text_content() == opened
    # The largest score of all is the end of the colours.
    scores = AdditiveFigure()
    most = max(
        surface(scores.data, n, scale).abs().max().item()
        for n in range(1, 7)
        for scale in scores.data["scales"]
    )
    assert opened == f"score −{most:.1f}{most:.1f}"
    page.locator('[data-key="unit 2"]').hover()
    bubble = page.locator(".af-reading").bounding_box()
    title = page.get_by_text("Their sum, all pairs").bounding_box()
    assert bubble
    assert title
    assert bubble["y"] + bubble["height"] <= title["y"]


def values_of(page: Page) -> list[float]:
    return page.locator('[data-key^="value"]').evaluate_all(
        "(nodes) => nodes.map((node) => Number(node.dataset.value))"
    )


def middle(node: Locator) -> tuple[float, float]:
    box = node.bounding_box()
    assert box
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_the_pointer_moves_one_points_value_and_a_link_and_reset_keep_faith(stage: Stage) -> None:
    keys, values = torch.arange(5.0), torch.tensor([1.0, 2.0, 0.0, 1.5, 0.5])
    page = stage.show(RegressionFigure(keys, values, width=0.5))
    opened = readings(page)
    query = page.get_by_role("slider", name="query", exact=True).input_value()
    x, y = middle(page.locator('[data-key="value 3"]'))
    page.mouse.click(x + 2, y)
    assert values_of(page) == values.tolist()  # a click chooses a point and does not move it
    slider = page.get_by_role("slider", name="value at key 3.00")
    assert slider.is_visible()
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 30, y + 25, steps=4)
    page.mouse.up()
    moved = values_of(page)
    assert moved[3] < 1.2
    assert [*moved[:3], moved[4]] == [1.0, 2.0, 0.0, 0.5]
    assert middle(page.locator('[data-key="value 3"]'))[0] == pytest.approx(x, abs=0.1)
    assert page.get_by_role("slider", name="query", exact=True).input_value() == query
    expect(page.locator(".af-now")).to_have_text(re.compile("1 moved point changes"))
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert values_of(page)[3] > moved[3]
    state = readings(page)
    page.get_by_role("button", name="Copy link").click()
    there = page.context.new_page()
    there.goto(page.url)
    there.locator(".af-form").wait_for()
    assert readings(there) == state
    page.get_by_role("button", name="Reset").click()
    assert readings(page) == opened
    assert stage.errors == []


#: Where the arrow stands in the plot and on the screen, and the points of the bell.
BELL = """() => {
    const arrow = document.querySelector('[data-key="width"]');
    const plot = arrow.closest("svg");
    const middle = (node) => {
        const box = node.getBoundingClientRect();
        return [box.x + box.width / 2, box.y + box.height / 2];
    };
    const bell = plot.querySelector(".af-bell").getAttribute("d").slice(1).split(/L|H/)
        .map((point) => point.split(",").map(Number)).slice(0, 121);
    const [x, y] = arrow.parentNode.getAttribute("transform").match(/[-.\\d]+/g).map(Number);
    return { x, y, bell, screen: middle(arrow) };
}"""


def test_the_arrow_stays_on_the_bell_and_the_axis_of_weights_within_1(stage: Stage) -> None:
    page = stage.show(RegressionFigure(), reduced_motion="reduce")
    for width in range(12):
        for query in range(0, 61, 5):
            slide(page, "width w", width)
            slide(page, "query", query)
            now = page.evaluate(BELL)
            assert 52 < now["x"] <= 628  # clear of the axis and within the plot
            assert min(y for _, y in now["bell"]) == pytest.approx(12, abs=0.01)  # whole
            left, right = sorted(now["bell"], key=lambda point: (abs(point[0] - now["x"]), point))[
                :2
            ]
            low, high = sorted([left[1], right[1]])
            assert low - 2 <= now["y"] <= high + 2
            tallest = max(
                page.locator('.af-bar[data-key^="weight"]').evaluate_all(
                    "(bars) => bars.map((bar) => Number(bar.getAttribute('height')))"
                )
            )
            assert tallest <= 98.01  # the plot's height
            axis = page.locator(".af-plot").last.locator(".af-axes text[text-anchor=end]")
            assert 0 < float(axis.last.text_content() or "nan") <= 1


def test_the_arrow_is_dragged_from_where_it_stands(stage: Stage) -> None:
    for width, by, expected in (
        (10.0, -3, 10.0),
        (10.0, 3, 10.0),
        (10.0, -0.5, 5.0),  # at half its distance from the query, half the width
        (0.5, 3, 0.5),
        (0.5, 1.0, 1.0),
        (2.0, -0.5, 1.0),
        (0.05, -3, 0.05),
    ):
        page = stage.show(RegressionFigure(width=width), reduced_motion="reduce")
        x, y = page.evaluate(BELL)["screen"]
        query = page.locator('[data-key="guess"]').bounding_box()
        assert query
        distance = x - query["x"] - query["width"] / 2
        page.mouse.move(x + 1, y)
        page.mouse.down()
        page.mouse.move(x + 1 + (by * distance if isinstance(by, float) else by), y)
        page.mouse.up()
        shown = page.locator('.af-slider:has-text("width w") .af-value').text_content()
        assert float(shown or "nan") == expected


def test_the_arrow_stays_under_the_pointer_and_then_goes_to_its_width(stage: Stage) -> None:
    page = stage.show(RegressionFigure(), reduced_motion="reduce")
    x, y = page.evaluate(BELL)["screen"]
    page.mouse.move(x, y)
    page.mouse.down()
    for by in (7, 60, 130, 200, 250, 40, -25):
        page.mouse.move(x + by, y)
        now = page.evaluate(BELL)
        assert now["screen"][0] == pytest.approx(x + by, abs=1.5)
        left, right = sorted(now["bell"], key=lambda point: abs(point[0] - now["x"]))[:2]
        low, high = sorted([left[1], right[1]])
        assert low - 2 <= now["y"] <= high + 2  # on the bell, too
    page.mouse.up()
    assert value_of(page, "width") in RegressionFigure().data["widths"]
    shown = page.evaluate(BELL)["x"]
    slide(page, "query", 3)
    slide(page, "query", RegressionFigure().data["queries"].index(RegressionFigure().query))
    assert page.evaluate(BELL)["x"] == pytest.approx(shown, abs=0.01)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_thin_lines_show_where_a_moved_point_was_and_what_was_predicted(
    theme: str, stage: Stage
) -> None:
    style = f"<script>document.documentElement.dataset.theme = '{theme}'</script>"
    page = stage.show(RegressionFigure(), before=style, reduced_motion="reduce")
    lines = page.locator(".af-former")
    assert not lines.get_attribute("d")
    x, y = middle(page.locator('[data-key="value 9"]'))
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y - 50)
    page.mouse.up()
    stroke, width = lines.evaluate(
        "(node) => [getComputedStyle(node).stroke, getComputedStyle(node).strokeWidth]"
    )
    assert stroke.startswith("rgb(")
    assert 0 < float(width.removesuffix("px")) < 2
    curve = page.locator(".af-curve").get_attribute("d")
    path = str(lines.get_attribute("d"))
    assert path.count("M") == 2  # the old curve, and from the old place of the point
    assert path.split("M")[1] != str(curve)[1:]


def test_a_tap_on_a_point_chooses_and_reads_that_point(stage: Stage) -> None:
    phone = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
    page = stage.show(RegressionFigure(), **phone)
    page.locator(".af-stage").evaluate("(node) => node.scrollIntoView({ block: 'center' })")
    points = page.locator(".af-point")
    for k, key in enumerate(RegressionFigure().data["keys"]):
        x, y = middle(points.nth(k))
        page.touchscreen.tap(x, y)
        said = f"key {key:.2f}: value".replace("-", "−")
        expect(page.locator(".af-reading")).to_have_text(re.compile(f"^{re.escape(said)}"))
        chosen = page.locator('[data-key^="value"][aria-pressed="true"]')
        assert chosen.get_attribute("data-key") == f"value {k}"
    # A place between two points belongs to the nearer one.
    assert (
        page.evaluate(
            """() => {
            const middle = (node) => {
                const box = node.getBoundingClientRect();
                return [box.x + box.width / 2, box.y + box.height / 2];
            };
            const points = [...document.querySelectorAll(".af-point")].map(middle);
            const grips = [...document.querySelectorAll(".af-grip")];
            const spots = points.flatMap(([x, y]) => [0, 1, 2, 3, 4, 5].map((i) =>
                [x + 8 * Math.cos(i + 0.3), y + 8 * Math.sin(i + 0.3)]));
            return spots.filter((spot) => {
                const far = points.map(([x, y]) => Math.hypot(x - spot[0], y - spot[1]));
                const found = document.elementFromPoint(...spot);
                const k = Number(found.dataset?.key?.match(/^value (\\d+)$/)?.[1] ?? NaN);
                return grips.includes(found) && far[k] > Math.min(...far) + 0.7;
            }).length;
        }"""
        )
        == 0
    )


def test_the_numbers_in_the_regression_are_those_of_its_sentence(stage: Stage) -> None:
    page = stage.show(RegressionFigure(), reduced_motion="reduce")
    for width, query in ((0, 7), (4, 20), (11, 60), (2, 33)):
        slide(page, "width w", width)
        slide(page, "query", query)
        sentence = str(page.locator(".af-now").text_content())
        number, weight = page.locator(
            ".af-plot text[aria-hidden=true]:not(.af-mean-name)"
        ).all_text_contents()
        assert f"the prediction is {number} and the largest weight is {weight}." in sentence
        assert page.locator(".af-form").inner_text().count("prediction is") == 1
        assert page.locator(".af-fact").count() == 0


@pytest.mark.parametrize("values", ["[1,2]", "[1,2,99]", '[1,2,"3"]', "[1,2,null]", "3"])
def test_an_address_cannot_put_a_point_off_the_axis(values: str, stage: Stage) -> None:
    figure = RegressionFigure(torch.arange(3.0), torch.tensor([0.0, 1.0, 2.0]))
    page = stage.show(figure, at=f"#figure=regression&values={values}")
    assert "cannot show" in (page.locator(".af-note").text_content() or "")
    assert values_of(page) == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("name", ["distance", "dot", "scaled dot", "bilinear", "additive"])
@pytest.mark.parametrize("number", [0, 8])
def test_each_place_lies_in_the_region_of_the_key_that_wins_there(
    name: str, number: int, stage: Stage
) -> None:
    figure = ScoringFigure(example(8, 2, seed=5).clamp(-2.9, 2.9) if number else None)
    page = stage.show(figure)
    plane = page.locator(f'.af-plot:has([data-key="{name} query"])')
    middles = (6 * (torch.arange(50, dtype=torch.float64) + 0.5) / 50 - 3)[1::2]
    places = torch.cartesian_prod(middles, middles)
    scores = five_scores(places, torch.tensor(figure.data["keys"], dtype=torch.float64))[name][0]
    won = plane.evaluate(
        """(plot, places) => {
            const regions = [...plot.querySelectorAll(".af-region")];
            return places.map(([x, y]) => regions.flatMap((region, k) => {
                const at = new DOMPoint(16 + (188 * (x + 3)) / 6, 198 - (186 * (y + 3)) / 6);
                return !region.hasAttribute("hidden") && region.isPointInFill(at) ? [k] : [];
            }));
        }""",
        places.tolist(),
    )
    assert all(len(keys) == 1 for keys in won)  # every place has one colour
    reached = scores.gather(1, torch.tensor(won))[:, 0]
    assert (scores.max(dim=1).values - reached).max() < 1e-8
    # Each region has its key in it, or its name, and a border around it.
    visible = plane.locator(".af-region:visible").evaluate_all("(all) => all.length")
    names = plane.locator(".af-winner").all_text_contents()
    assert visible == len({keys[0] for keys in won})
    homes = five_scores(
        torch.tensor(figure.data["keys"], dtype=torch.float64),
        torch.tensor(figure.data["keys"], dtype=torch.float64),
    )[name][0]
    at_home = {f"k{k + 1}" for k, row in enumerate(homes) if row[k] > row.max() - 1e-9}
    assert {f"k{keys[0] + 1}" for keys in won} <= at_home | {*names}
    assert plane.locator(".af-border").get_attribute("d")
    assert stage.errors == []


def test_the_borders_run_where_two_keys_score_the_same_and_names_stand_clear(stage: Stage) -> None:
    page = stage.show(ScoringFigure(query=[2.0, 2.0]))
    keys = torch.tensor(ScoringFigure().data["keys"], dtype=torch.float64)
    for name in ("distance", "dot", "scaled dot", "bilinear", "additive"):
        plane = page.locator(f'.af-plot:has([data-key="{name} query"])')
        path = str(plane.locator(".af-border").get_attribute("d"))
        points = torch.tensor(
            [
                [float(n) for n in point.split(",")]
                for point in re.findall(r"[-\d.]+,[-\d.]+", path)
            ],
            dtype=torch.float64,
        )
        places = torch.stack([(points[:, 0] - 16) / 188, (198 - points[:, 1]) / 186], 1) * 6 - 3
        best = five_scores(places, keys)[name][0].topk(2).values
        assert (best[:, 0] - best[:, 1]).max() < 0.05, name
        assert len(points) > 20
        for title in plane.locator(".af-winner").all():
            box = [float(title.get_attribute(side) or "nan") for side in ("x", "y")]
            gaps = (points - torch.tensor([box[0], box[1] - 5])).norm(dim=1)
            assert gaps.min() > 9
        # Names are drawn after all that could cover them.
        order = plane.locator(".af-name, .af-winner, .af-thread, .af-point, .af-tip").evaluate_all(
            "(all) => all.map((node) => /af-(name|winner)/.test(node.getAttribute('class')))"
        )
        assert order == sorted(order)


@pytest.mark.parametrize("query", [[0.0, 0.0], [1.0, 1.0], [-2.5, 0.75]])
def test_each_plane_says_the_order_of_its_scores_and_the_sentence_names_no_key_in_a_tie(
    query: list[float], stage: Stage
) -> None:
    figure = ScoringFigure(query=query)
    page = stage.show(figure)
    keys = torch.tensor(figure.data["keys"], dtype=torch.float64)
    ranks = page.locator(".af-ranking").all_text_contents()
    sentence = str(page.locator(".af-now").text_content())
    assert figure.alt.endswith(sentence)
    scores = five_scores(torch.tensor(query, dtype=torch.float64), keys)
    for (name, row), rank in zip(scores.items(), ranks, strict=True):
        found = row.flatten().tolist()
        signs = re.findall(r"[>=]", rank)
        order = [int(k) - 1 for k in re.findall(r"\d+", rank)]
        assert sorted(order) == [0, 1, 2, 3, 4]
        gaps = [found[a] - found[b] for a, b in pairwise(order)]
        assert signs == ["=" if abs(gap) < 1e-9 else ">" for gap in gaps]
        assert min(gaps) > -1e-9
        best = "no key" if signs == ["="] * 4 else f"k{order[0] + 1}"
        assert f"{best} by {name}" in sentence
    assert sentence.count("no key by") == (3 if query == [0.0, 0.0] else 0)


THEMES = {  # background, ink, quiet ink of the book's pages
    "light": ("#ffffff", "#222832", "#48566b"),
    "dark": ("#14181e", "#ced6dd", "#9ca4af"),
}


@pytest.mark.parametrize("theme", THEMES)
def test_marks_on_a_coloured_plane_keep_their_contrast(theme: str, stage: Stage) -> None:
    paper, ink, quiet = THEMES[theme]
    style = (
        f"<style>:root {{ --pst-color-background: {paper}; --pst-color-text-base: {ink};"
        f" --pst-color-text-muted: {quiet} }}</style>"
        f"<script>document.documentElement.dataset.theme = '{theme}'</script>"
    )
    page = stage.show(ScoringFigure(example(8, 2, seed=5).clamp(-2.9, 2.9)), before=style)
    colours = page.locator(".af-planes").evaluate(
        """(plot) => {
            const context = document.createElement("canvas").getContext("2d");
            const rgb = (colour) => {
                context.fillStyle = colour;
                context.fillRect(0, 0, 1, 1);
                return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
            };
            const of = (query, what) => [...plot.querySelectorAll(query)]
                .map((node) => rgb(getComputedStyle(node)[what]));
            return { regions: of(".af-region", "fill"), tip: of(".af-tip", "fill"),
                arrow: of(".af-arrow", "stroke"), point: of(".af-point", "stroke"),
                border: of(".af-border", "stroke"), winner: of(".af-winner", "fill"),
                name: of(".af-name", "fill") };
        }"""
    )

    def light(colour: list[int]) -> float:
        parts = [
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
            for c in (part / 255 for part in colour)
        ]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    regions = colours.pop("regions")
    assert len({tuple(region) for region in regions}) == 8
    for name, found in colours.items():
        assert found, name
        for one in found:
            for region in regions:
                low, high = sorted([light(one), light(region)])
                bound = 4.5 if name in ("winner", "name") else 3
                assert (high + 0.05) / (low + 0.05) >= bound, (name, one, region)


# --- Explained where one points, steps that glide, all in one screen ------------------------------


@pytest.mark.parametrize(
    "kind", ["lookup", "regression", "scoring", "masking", "matmul", "additive"]
)
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_a_mark_is_explained_beside_it_within_the_figure(
    kind: str, size: dict[str, int], stage: Stage
) -> None:
    page = stage.show(FIGURES[kind](), viewport=size)
    found = page.evaluate(
        """() => [...document.querySelectorAll(".af-stage [data-at]")].filter((mark) => {
            const box = mark.getBoundingClientRect();
            return box.width && box.width < 90 && box.height < 90 && !mark.closest("[hidden]");
        }).map((mark) => {
            mark.scrollIntoView({ block: "center" });
            mark.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
            const bubble = document.querySelector(".af-reading");
            const [at, on] = [bubble, mark].map((node) => node.getBoundingClientRect());
            const all = document.querySelector(".af-form").getBoundingClientRect();
            const apart = (a, b) => Math.max(b.left - a.right, a.left - b.right,
                b.top - a.bottom, a.top - b.bottom);
            return [mark.dataset.key, !bubble.hidden && bubble.textContent.length > 5,
                mark.getAttribute("aria-label").includes(bubble.textContent),
                apart(at, on) > -1, apart(at, on) < 80,
                at.left >= all.left - 1 && at.right <= all.right + 1
                && at.top >= all.top - 1 && at.bottom <= all.bottom + 1];
        })"""
    )
    assert len(found) > 3
    assert [one for one in found if not all(one[1:])] == []
    page.keyboard.press("Escape")
    assert page.locator("[role=status], [aria-live]").count() == 1


def test_a_step_glides_a_drag_does_not_and_nothing_moves_where_motion_is_unwelcome(
    stage: Stage,
) -> None:
    count = "document.getAnimations().filter((one) => one.playState === 'running').length"
    page = stage.show(RegressionFigure())
    assert page.evaluate(count) == 0  # it opens where it is
    page.get_by_role("slider", name="query", exact=True).focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate(count) > 3
    ends = page.evaluate("document.getAnimations().map((one) => one.effect.getTiming().duration)")
    assert {150 <= end <= 350 for end in ends} == {True}
    x, y = middle(page.locator('[data-key="guess"]'))
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y, steps=3)
    assert page.evaluate(count) == 0
    page.mouse.up()
    page = stage.show(RegressionFigure(), reduced_motion="reduce")
    page.get_by_role("slider", name="query", exact=True).focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate(count) == 0


def test_the_right_option_is_marked_once_the_answer_was_seen(stage: Stage) -> None:
    page = stage.show(RegressionFigure())
    page.locator(".af-predict input").nth(2).check()
    assert page.locator(".af-right, .af-missed").count() == 0
    LESSONS["regression"][1](page)
    assert page.locator(".af-right").all_text_contents() == ["the mean of all values✓ right"]
    assert page.locator(".af-missed").all_text_contents() == ["0✗ no"]
    page.get_by_role("button", name="Reset").click()
    assert page.locator(".af-right, .af-missed").count() == 0


@pytest.mark.parametrize(
    "kind",
    [
        *["lookup", "regression", "scoring", "masking", "matmul", "additive"],
        *["scale", "heads", "block", "tiling"],
    ],
)
@pytest.mark.parametrize(("width", "height"), [(677, 664), (390, 788)], ids=["wide", "phone"])
def test_stage_and_controls_are_seen_together(
    kind: str, width: int, height: int, stage: Stage
) -> None:
    # The text column of a screen of 1280 × 720 and a phone of 390 × 844, less the page's header.
    page = stage.show(FIGURES[kind](), viewport={"width": width, "height": height})
    top, bottom = (
        page.locator(part).first.bounding_box() for part in (".af-stage", ".af-controls")
    )
    assert top
    assert bottom
    assert bottom["y"] + bottom["height"] - top["y"] <= height


# --- A finger, a small screen, forced colours -----------------------------------------------------


def swipe(page: Page, start: tuple[float, float], by: float) -> None:
    """Move a finger up by `by` pixels from `start`."""
    session = page.context.new_cdp_session(page)
    x, y = start
    point = {"x": x, "y": y}
    session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [point]})
    for part in range(1, 11):
        at = {"x": x, "y": y - by * part / 10}
        session.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [at]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


@pytest.mark.parametrize(
    ("kind", "held"), [("scoring", "disc"), ("regression", "disc"), ("regression", "grip")]
)
def test_a_finger_drags_the_point_and_scrolls_the_page_beside_it(
    kind: str, held: str, stage: Stage
) -> None:
    page = stage.show(FIGURES[kind](), viewport=PHONE, has_touch=True, is_mobile=True)
    plot = page.locator(".af-plot").first
    plot.evaluate("(node) => node.scrollIntoView({ block: 'center' })")
    opened = readings(page)
    top = page.evaluate("scrollY")
    box = plot.bounding_box()
    assert box
    corner = box["x"] + box["width"] - 30, box["y"] + box["height"] - 60
    swipe(page, corner, 120)
    page.wait_for_function("(top) => scrollY > top + 60", arg=top)
    assert readings(page) == opened
    page = stage.show(FIGURES[kind](), viewport=PHONE, has_touch=True, is_mobile=True)
    taken = page.locator(f".af-{held}").last
    taken.evaluate("(node) => node.scrollIntoView({ block: 'center' })")
    top = page.evaluate("scrollY")
    disc = taken.bounding_box()
    assert disc
    # The points of a line are too close for large discs; a slider moves them as well.
    assert min(disc["width"], disc["height"]) >= (44 if held == "disc" else 16)
    session = page.context.new_cdp_session(page)
    aside = disc["width"] / 4
    x, y = disc["x"] + disc["width"] / 2 + aside, disc["y"] + disc["height"] / 2 + aside
    for event, points in [
        ("touchStart", [{"x": x, "y": y}]),
        ("touchMove", [{"x": x + 40, "y": y - 40}]),
        ("touchMove", [{"x": x + 60, "y": y - 60}]),
        ("touchEnd", []),
    ]:
        session.send("Input.dispatchTouchEvent", {"type": event, "touchPoints": points})
    assert readings(page) != opened
    assert page.evaluate("scrollY") == top


@pytest.mark.parametrize(
    ("kind", "key", "starts"),
    [
        ("lookup", "weight 0", "key "),
        ("lookup", "product 2", "weight "),
        ("scoring", "dot key 3", "k4 at "),
        ("scoring", "dot key 1", "k2 at "),  # near the query, whose disc it lies in
        ("additive", "score 3 4", "query −1.875, key −1.50: score "),
    ],
)
def test_a_finger_reads_a_mark_where_it_is_and_a_mouse_moves_what_comes(
    kind: str, key: str, starts: str, stage: Stage
) -> None:
    phone = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
    page = stage.show(FIGURES[kind](), **phone)
    mark = page.locator(f'[data-key="{key}"]')
    mark.evaluate("(node) => node.scrollIntoView({ block: 'center' })")
    opened = readings(page)
    page.touchscreen.tap(*middle(mark))
    expect(page.locator(".af-reading")).to_be_visible()
    assert str(page.locator(".af-reading").text_content()).startswith(starts)
    assert readings(page) == opened
    page.get_by_role("button", name="Reset").click()
    assert readings(page) == opened
    mark.evaluate("(node) => node.scrollIntoView({ block: 'center' })")
    page.mouse.click(*middle(mark))
    assert (readings(page) == opened) is (kind == "lookup" and key.startswith("product"))


def test_a_finger_brings_the_query_to_an_empty_place(stage: Stage) -> None:
    phone = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
    page = stage.show(LookupFigure(), **phone)
    opened = readings(page)
    box = page.locator(".af-plot").first.bounding_box()
    assert box
    page.touchscreen.tap(box["x"] + 30, box["y"] + box["height"] * 0.6)
    assert readings(page) != opened


def test_planes_side_by_side_have_one_height_when_a_title_wraps(stage: Stage) -> None:
    page = stage.show(ScoringFigure(), viewport={"width": 360, "height": 740})
    page.add_style_tag(content=".af-form { font-size: 15.6px !important }")  # of a wider typeface
    titles = page.locator(".af-planes .af-title").evaluate_all(
        "(all) => new Set(all.map((one) => one.offsetHeight)).size"
    )
    assert titles == 2  # one of them wraps
    tops = page.locator(".af-planes .af-plot").evaluate_all(
        "(all) => all.map((one) => one.getBoundingClientRect().top)"
    )
    assert tops[0] == pytest.approx(tops[1], abs=0.5)
    assert tops[2] == pytest.approx(tops[3], abs=0.5)


@pytest.mark.parametrize("kind", LESSONS)
def test_a_narrow_screen_has_room_for_every_control_and_a_finger_hits_it(
    kind: str, stage: Stage
) -> None:
    page = stage.show(FIGURES[kind](), viewport=PHONE, has_touch=True, is_mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    targets = page.locator(
        "label:has(input[type=radio]):visible, button:visible, .af-slider:visible input"
    )
    sizes = [targets.nth(i).bounding_box() for i in range(targets.count())]
    assert sizes
    assert all(box and box["height"] >= 24 and box["width"] >= 24 for box in sizes)


def test_with_forced_colours_the_labels_take_the_systems_ink(stage: Stage) -> None:
    page = stage.show(FIGURES["scoring"](), forced_colors="active", color_scheme="dark")
    ink = "(node) => getComputedStyle(node).fill"
    system = page.evaluate(
        "() => { const p = document.body.appendChild(document.createElement('p'));"
        " p.style.color = 'CanvasText'; return getComputedStyle(p).color; }"
    )
    labels: Locator = page.locator(".af-plot text")
    assert labels.count() > 10
    assert {labels.nth(i).evaluate(ink) for i in range(labels.count())} == {system}


def test_the_state_that_python_stores_is_the_one_that_a_link_names() -> None:
    state = MaskingFigure().state()
    assert json.loads(json.dumps(state["scores"])) == state["scores"]
    assert set(state) == {"compare", "data", "fill", "scores", "valid_lens"}


def test_a_finger_that_scrolls_from_a_slider_moves_nothing(stage: Stage) -> None:
    page = stage.show(
        RegressionFigure(),
        viewport={"width": 390, "height": 500},
        has_touch=True,
        is_mobile=True,
    )
    slider = page.get_by_role("slider", name="width w")
    slider.scroll_into_view_if_needed()
    before, top = slider.input_value(), page.evaluate("scrollY")
    box = slider.bounding_box()
    assert box
    x, y = box["x"] + 0.9 * box["width"], box["y"] + box["height"] / 2
    session = page.context.new_cdp_session(page)
    steps = [("touchStart", y), *[("touchMove", y - 30 * i) for i in range(1, 7)]]
    for event, at in steps:
        points = [{"x": x, "y": at}]
        session.send("Input.dispatchTouchEvent", {"type": event, "touchPoints": points})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.wait_for_function("top => scrollY > top + 50", arg=top)
    assert slider.input_value() == before
    assert value_of(page, "width") == 0.5
    page.touchscreen.tap(*middle(slider))  # a tap moves it as ever
    assert slider.input_value() != before


def test_nothing_lies_on_what_is_dragged_or_pops_up_under_a_pointer_that_rests(
    stage: Stage,
) -> None:
    page = stage.show(RegressionFigure(), reduced_motion="reduce")
    said = page.locator(".af-reading")
    x, y = middle(page.locator('[data-key="guess"]'))
    page.mouse.move(x, y)
    assert said.is_visible()
    page.mouse.down()
    page.mouse.move(x + 40, y, steps=4)
    assert said.is_hidden()
    page.mouse.up()
    page.mouse.move(*middle(page.locator('[data-key="guess"]')))
    assert said.is_visible()
    page = stage.show(AdditiveFigure(), reduced_motion="reduce")
    said, more = page.locator(".af-reading"), page.get_by_role("button", name="add")
    x, y = middle(more)
    page.mouse.click(x, y)
    under = "([x, y]) => Boolean(document.elementFromPoint(x, y).closest('[data-at]'))"
    page.wait_for_function(under, arg=[x, y])  # the new unit is where the button was
    assert said.is_hidden()
    page.mouse.move(x + 3, y)
    assert said.is_visible()


def test_the_arrow_reaches_the_largest_width_and_says_where_it_does_not_fit(stage: Stage) -> None:
    page = stage.show(RegressionFigure(), reduced_motion="reduce")
    page.locator(".af-predict input").nth(1).check()
    x, y = page.evaluate(BELL)["screen"]
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 600, y, steps=8)
    page.mouse.up()
    assert value_of(page, "width") == 10.0
    expect(page.locator(".af-verdict")).to_contain_text("Your prediction was right.")
    arrow = page.locator('[data-key="width"]')
    assert "farther from the query than the picture goes" in str(arrow.get_attribute("aria-label"))
    slide(page, "width w", 4)
    assert "at this distance from the query" in str(arrow.get_attribute("aria-label"))


def test_any_doubling_of_the_query_that_changes_an_order_is_judged(stage: Stage) -> None:
    page = stage.show(ScoringFigure(), reduced_motion="reduce")
    page.locator(".af-predict input").nth(2).check()
    verdict = page.locator(".af-verdict")
    stops = [-3 + i / 4 for i in range(25)]

    def move(first: float, second: float) -> None:
        for axis, value in enumerate((first, second)):
            slide(page, f"query, feature {axis + 1}", stops.index(value))

    move(-0.5, -1.0)
    expect(verdict).to_contain_text("Noted.")
    move(-1.0, -2.0)  # the example of chapter 2's text
    expect(verdict).to_contain_text("Your prediction was right.")
