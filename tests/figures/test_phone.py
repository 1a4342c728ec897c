"""On a phone question, picture, controls and sentence share one screen, also after the prediction
is judged; figures whose moves are their own are tested beside what else they do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from stage import FIGURES, PHONES, Stage, box_of, one_screen, pick, slide, type_into


def without_positions(page: Page) -> None:
    page.get_by_label("positions").uncheck()
    for word in ("evil", "live"):
        page.get_by_label("your word").fill(word)
        slide(page, "tokens written", 5)


def tick(name: str) -> Callable[[Page], None]:
    return lambda page: page.get_by_role("checkbox", name=name, exact=True).tap()


def choose(name: str, *values: str) -> list[Callable[[Page], None]]:
    return [lambda page, value=value: pick(page, name, value) for value in values]


#: What shows the answer to each figure's question, and other moves before and after.
SHOWS: dict[str, list[Callable[[Page], None]]] = {
    "additive": [lambda page: page.get_by_role("button", name="Add a unit").tap()],
    "block": choose("order", "reversed"),
    "heads": choose("num_heads", "2", "8", "4"),
    "kv_cache": [
        lambda page: slide(page, "step", 5),
        *map(tick, ("window of 4", "causal mask", "cache")),
    ],
    "live": [without_positions],
    "lookup": [lambda page: slide(page, "query", 0)],
    "masking": choose("fill", "after"),
    "matmul": [lambda page: type_into(page, "k 1 0", "5")],
    "regression": [lambda page: slide(page, "width w", 40)],
    "tiling": [*choose("tile", "8", "1", "2"), lambda page: slide(page, "tiles read", 16)],
}
#: What else a finger takes hold of.
MARKS = {"kv_cache": "[data-at]", "tiling": "[data-at]", "heads": ".af-strip, .af-place"}


@pytest.mark.parametrize(("width", "height"), PHONES)
@pytest.mark.parametrize("kind", SHOWS)
def test_all_is_in_one_screen_and_no_answer_moves_it(
    kind: str, width: int, height: int, stage: Stage
) -> None:
    page = stage.phone(FIGURES[kind](), width, height)
    stays = one_screen(page, f"label, button, select, summary, {MARKS.get(kind, 'label')}")
    for answer in page.locator(".af-predict input").all():
        answer.check()
        stays()
    for move in SHOWS[kind]:
        move(page)
        stays()
    expect(page.locator(".af-judged.af-answer")).to_have_count(1)
    size = "14px" if height > PHONES[0][1] else "12px"  # a small screen has no room for more
    expect(page.locator(".af-verdict")).to_have_css("font-size", size)
    said = page.locator(".af-verdict").inner_text()
    for option in page.locator(".af-predict label").all():  # under the verdict
        page.touchscreen.tap(*box_of(option).middle)
    assert page.locator(".af-verdict").inner_text() == said


def test_the_smallest_type_of_a_long_word_can_be_read(stage: Stage) -> None:
    page = stage.phone(FIGURES["live"](word="transformer"), *PHONES[0])
    page.get_by_label("causal mask").uncheck()
    one_screen(page, "label, button")


def test_what_a_number_says_covers_no_number(stage: Stage) -> None:
    page = stage.phone(FIGURES["matmul"](), *PHONES[0])
    moves: list[Callable[[], None]] = [
        lambda: type_into(page, "k 1 2", "5"),
        page.locator('[data-key="entry 2 3"]').tap,
    ]
    for move in moves:
        move()
        said = box_of(page.locator(".af-reading"))
        for other in page.locator(".af-stage :is(.af-cell, .af-title, .af-products)").all():
            box = box_of(other)
            assert box.x >= said.right or box.y >= said.bottom


def test_how_to_read_a_figure_is_folded_until_it_is_asked_for(stage: Stage) -> None:
    figure = FIGURES["lookup"]()
    caption = stage.phone(figure, *PHONES[0]).locator(".af-caption")
    assert figure.caption not in caption.inner_text()
    caption.locator("summary").tap()
    expect(caption).to_contain_text(figure.caption)
    expect(stage.show(figure).locator("p.af-caption")).to_have_text(figure.caption)


@pytest.mark.parametrize("narrow", [True, False])
def test_a_second_fill_moves_no_control(narrow: bool, stage: Stage) -> None:
    figure = FIGURES["masking"](fill="after")
    page = stage.phone(figure, *PHONES[0]) if narrow else stage.show(figure)
    controls = page.locator(".af-controls")
    before = box_of(controls).y
    for fill in ("-inf", "1e-6", "none"):
        pick(page, "compare", fill)
        assert box_of(controls).y == pytest.approx(before, abs=0.1)


def test_the_sentence_keeps_the_room_that_it_has_needed(stage: Stage) -> None:
    page = stage.phone(FIGURES["masking"](), *PHONES[0])
    now = page.locator(".af-now")
    opened = box_of(now).height
    pick(page, "compare", "after")
    grown = box_of(now).height
    assert grown > opened + 10
    kept = (
        "(room) => document.querySelector('.af-now').style.getPropertyValue('--room') >= room - 1"
    )
    page.wait_for_function(kept, arg=grown)
    pick(page, "compare", "none")
    assert box_of(now).height >= grown - 1
    page.set_viewport_size({"width": 500, "height": 640})
    page.wait_for_function("document.querySelector('.af-now').offsetHeight < 40")
