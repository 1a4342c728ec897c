"""The question before a figure, its verdict, its challenge, and the one sentence that is spoken."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import expect
from stage import (
    FIGURES,
    PHONE,
    Stage,
    box_of,
    middle,
    pick,
    readings,
    slide,
    sort_heads,
    switch_off,
    tap_heads,
    type_into,
    unfold,
    value_of,
)

from attention_book.figures import (
    LookupFigure,
    MatmulFigure,
    RegressionFigure,
    language_model,
)

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
        lambda p: (slide(p, "hidden units", 1), slide(p, "scale of W_q, W_k", 6)),
    ),
    "scale": (
        lambda p: slide(p, "d_k", 5),
        lambda p: slide(p, "d_k", 10),
        lambda p: slide(p, "d_k", 9),
    ),
    "heads": (
        lambda p: slide(p, "query position", 1),
        lambda p: pick(p, "num_heads", "2"),
        lambda p: (pick(p, "num_heads", "8"), p.get_by_role("button", name="Head 2").click()),
    ),
    "block": (
        lambda p: pick(p, "order", "as written"),
        lambda p: (pick(p, "order", "reversed"), pick(p, "positions", "false")),
        lambda p: slide(p, "dropout rate", 1),
    ),
    "rotation": (
        lambda p: slide(p, "query at", 2),
        lambda p: (slide(p, "both, from", 0), slide(p, "both, from", 3)),
        lambda p: (slide(p, "query at", 11), pick(p, "stretch", "2"), pick(p, "pairs", "slow")),
    ),
    "kv_cache": (
        lambda p: slide(p, "step", 5),
        lambda p: p.get_by_role("checkbox", name="causal mask").uncheck(),
        lambda p: pick(p, "kv_heads", "2"),
    ),
    "language_model": (
        lambda p: (unfold(p), slide(p, "seed", 3)),
        lambda p: switch_off(p, language_model.shipped()["back"]),
        lambda p: switch_off(p, [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]),
    ),
    "story": (
        lambda p: slide(p, "top-p", 3),
        lambda p: (sort_heads(p, "matters"), sort_heads(p, "layer"), tap_heads(p, (2, 1))),
        lambda p: tap_heads(p, (4, 4)),
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
        lambda p: (pick(p, "tile", "2"), slide(p, "tiles read", 16)),
        lambda p: (
            pick(p, "tile", "2"),
            slide(p, "tiles read", 7),
            p.locator('[data-key="l 3"]').hover(),
        ),
    ),
}


@pytest.mark.parametrize("kind", LESSONS)
def test_a_prediction_is_judged_when_its_answer_was_seen_and_reset_forgets_it(
    kind: str, stage: Stage
) -> None:
    """And one polite region speaks the sentence, which describes the picture, too."""
    page = stage.show(FIGURES[kind](), reduced_motion="reduce")
    opened = readings(page)
    picture = page.get_by_role("group", name="picture of this figure")
    name = picture.get_attribute("aria-label")
    assert page.locator("[role=status], [aria-live], output").count() == 1
    spoken = page.get_by_role("status")
    assert spoken.text_content() == ""
    idle, telling, _ = LESSONS[kind]
    verdict = page.locator(".af-verdict")
    page.locator(".af-predict input").nth(1).check()
    expect(verdict).to_have_text(re.compile(r"^Noted\. Now .*\.$"))
    idle(page)
    expect(verdict).to_have_text(re.compile(r"^Noted\. Now .*\.$"))
    telling(page)
    expect(verdict).to_have_text(
        re.compile(r"^(✓ You said: .*\. That is right|✗ You said: .*\. Right is: .*)\.")
    )
    assert readings(page) != opened
    sentence = page.locator(".af-now").text_content() or ""
    assert sentence.endswith(".")
    expect(spoken).to_have_text(re.compile(re.escape(sentence)))
    assert picture.get_attribute("aria-label") == name
    assert page.locator(f"#{picture.get_attribute('aria-describedby')}").text_content() == sentence
    idle(page)  # what was seen stays seen
    expect(verdict).not_to_have_text(re.compile("Noted"))
    page.get_by_role("button", name="Reset").click()
    assert readings(page) == opened
    assert verdict.text_content() == ""
    assert page.locator(".af-predict input:checked").count() == 0


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
    expect(goal.locator("b")).to_have_text("Challenge met:")
    expect(goal).to_have_css("font-weight", "400")  # it takes no more room than before
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
    before = box_of(page.locator(".af-stage"))
    parts = [box_of(page.locator(f".af-predict {part}")).y for part in ("legend", ".af-question")]
    assert parts == sorted(parts)
    for option in page.locator(".af-predict input").all():
        option.check()
        assert box_of(page.locator(".af-stage")) == before
    LESSONS[kind][1](page)
    expect(page.locator(".af-verdict")).not_to_have_text(re.compile("Noted"))
    assert box_of(page.locator(".af-stage")) == before


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
    plot = box_of(page.locator(".af-plot").first)
    step = (plot.width * 614 / 640) / 9  # pixels for a query larger by 1
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


@pytest.mark.parametrize("kind", LESSONS)
@pytest.mark.parametrize("is_phone", [True, False])
def test_no_control_is_under_the_drawing_wherever_the_page_is_scrolled(
    kind: str, is_phone: bool, stage: Stage
) -> None:
    size = {"width": 390, "height": 844} if is_phone else {"width": 1280, "height": 720}
    page = stage.show(FIGURES[kind](), viewport=size, has_touch=is_phone, is_mobile=is_phone)
    page.add_style_tag(content="body { padding-bottom: 900px }")
    hidden = page.evaluate(
        """() => {
            const found = [];
            for (let y = 0; y < document.body.scrollHeight - innerHeight; y += 50) {
                scrollTo(0, y);
                const stage = document.querySelector(".af-stage");
                for (const one of document.querySelectorAll(
                    ".af-controls :is(input, select, button), .af-now")) {
                    const box = one.getBoundingClientRect();
                    const [x, at] = [box.left + box.width / 2, box.top + box.height / 2];
                    if (!box.width || at < 0 || at > innerHeight) continue;
                    const top = document.elementFromPoint(x, at); // controls may stand in the stage
                    if (stage.contains(top) && !top.closest(".af-controls"))
                        found.push([y, one.name || one.type || "sentence"]);
                }
            }
            return found;
        }"""
    )
    assert hidden == []


@pytest.mark.parametrize("width", [PHONE["width"], 1000])
def test_question_answer_and_what_is_right_stay_in_sight(width: int, stage: Stage) -> None:
    page = stage.show(RegressionFigure(), viewport={"width": width, "height": 800})
    asked = page.locator(".af-question, .af-asked").filter(visible=True)
    option = page.locator(".af-predict label").nth(2)
    option.locator("input").check()
    expect(asked).to_have_count(1)
    LESSONS["regression"][1](page)
    expect(asked).to_have_text(re.compile("^Make the width very large"))
    expect(page.locator(".af-verdict")).to_have_text(
        re.compile("^✗ You said: 0. Right is: the mean of all values. With a large width")
    )
    assert not option.is_visible()
    page.get_by_role("button", name="Reset").click()
    expect(option).to_be_visible()
    expect(asked).to_have_count(1)
