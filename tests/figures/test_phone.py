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


#: What shows the answer to each figure's question.
SHOWS: dict[str, Callable[[Page], None]] = {
    "additive": lambda page: page.get_by_role("button", name="Add a unit").tap(),
    "block": lambda page: pick(page, "order", "reversed"),
    "live": without_positions,
    "lookup": lambda page: slide(page, "query", 0),
    "masking": lambda page: pick(page, "fill", "after"),
    "matmul": lambda page: type_into(page, "k 1 0", "5"),
    "regression": lambda page: slide(page, "width w", 40),
}


@pytest.mark.parametrize(("width", "height"), PHONES)
@pytest.mark.parametrize("kind", SHOWS)
def test_all_is_in_one_screen_and_no_answer_moves_it(
    kind: str, width: int, height: int, stage: Stage
) -> None:
    page = stage.phone(FIGURES[kind](), width, height)
    stays = one_screen(page, "label, button, select, summary")
    for answer in page.locator(".af-predict input").all():
        answer.check()
        stays()
    SHOWS[kind](page)
    expect(page.locator(".af-judged.af-answer")).to_have_count(1)
    stays()
    said = page.locator(".af-verdict").inner_text()
    for option in page.locator(".af-predict label").all():  # under the verdict
        page.touchscreen.tap(*box_of(option).middle)
    assert page.locator(".af-verdict").inner_text() == said


@pytest.mark.parametrize(("width", "height"), PHONES)
def test_a_story_its_heads_and_its_beginnings_share_one_screen(
    width: int, height: int, stage: Stage
) -> None:
    one_screen(stage.phone(FIGURES["story"](), width, height), "label, button, summary")


def test_the_smallest_type_of_a_long_word_can_be_read(stage: Stage) -> None:
    page = stage.phone(FIGURES["live"](word="transformer"), *PHONES[0])
    page.get_by_label("causal mask").uncheck()
    one_screen(page, "label, button")


def test_how_to_read_a_figure_is_folded_until_it_is_asked_for(stage: Stage) -> None:
    figure = FIGURES["lookup"]()
    caption = stage.phone(figure, *PHONES[0]).locator(".af-caption")
    assert figure.caption not in caption.inner_text()
    caption.locator("summary").tap()
    expect(caption).to_contain_text(figure.caption)
    expect(stage.show(figure).locator("p.af-caption")).to_have_text(figure.caption)


def test_the_sentence_keeps_the_room_that_it_has_needed(stage: Stage) -> None:
    page = stage.phone(FIGURES["masking"](), *PHONES[0])
    now = page.locator(".af-now")
    opened = box_of(now).height
    pick(page, "compare", "after")
    grown = box_of(now).height
    assert grown > 2 * opened - 1
    kept = (
        "(room) => document.querySelector('.af-now').style.getPropertyValue('--room') >= room - 1"
    )
    page.wait_for_function(kept, arg=grown)
    pick(page, "compare", "none")
    assert box_of(now).height >= grown - 1
    page.set_viewport_size({"width": 500, "height": 640})
    page.wait_for_function("document.querySelector('.af-now').offsetHeight < 30")
