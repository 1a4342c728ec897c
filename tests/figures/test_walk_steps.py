"""The cards of the shape walk in a browser: to scale, what lies within, by hand and on a phone."""

from __future__ import annotations

import json
import math
import re
from urllib.parse import quote

import pytest
import torch
from bs4 import BeautifulSoup
from playwright.sync_api import Locator, Page, expect
from stage import Stage, box_of
from walked import (
    PHONE,
    bytes_of,
    card_of,
    opened,
    slider,
    within,
)

from attention_book import (
    DotProductAttention,
    LanguageModel,
    SelfAttentionBlock,
    trace,
)
from attention_book.shapes import Shapes
from attention_book.walk.steps import start_of, walk_of

DRAWN = """(root) => [...root.querySelectorAll(".af-step:not([hidden])")].map((card) => {
  const { width, height } = card.querySelector(".af-front").getBBox();
  const bar = card.querySelector(".af-bytes i").getBoundingClientRect().width;
  const whole = card.querySelector(".af-bytes").getBoundingClientRect().width;
  const shape = card.dataset.shape.split(",").map(Number);
  return { name: card.querySelector(".af-step-name").textContent, width, height, shape,
    share: bar / whole, bytes: Number(card.dataset.bytes) };
})"""


@pytest.fixture
def chapter_10(stage: Stage) -> Locator:
    """The walk of chapter 10."""
    x = torch.empty(1, 512, 64, device="meta")
    with trace() as shapes:
        DotProductAttention()(x, x.clone(), x.clone())
    return opened(stage, shapes, nested=True)


@pytest.mark.parametrize("length", [16, 512, 65_536])
def test_blocks_and_bars_are_drawn_to_scale(chapter_10: Locator, length: int) -> None:
    for name in ("queries", "keys"):
        slider(chapter_10, name).evaluate(
            """(input, size) => {
              const value = input.closest(".af-slider").querySelector(".af-value");
              for (let at = 0; at <= Number(input.max); at++) {
                input.value = at;
                input.dispatchEvent(new Event("input", { bubbles: true }));
                if (Number(value.textContent.replaceAll(",", "")) === size) return;
              }
            }""",
            length,
        )
    drawn = chapter_10.evaluate(DRAWN)
    assert len(drawn) == 13
    is_linear = length <= 64
    legend = chapter_10.locator(".af-scale").inner_text()
    assert ("square root" in legend) == (not is_linear)
    top = max(card["bytes"] for card in drawn)
    first = drawn[0]
    true_unit = first["shape"][-1] if is_linear else math.sqrt(first["shape"][-1])
    unit = first["width"] / true_unit
    for card in drawn:
        height, width = card["shape"][-2:]
        power = 1 if is_linear else 0.5
        area = card["width"] * card["height"] / (first["width"] * first["height"])
        true = height * width / (first["shape"][-2] * first["shape"][-1])
        assert card["width"] == pytest.approx(unit * width**power, rel=1e-3)
        assert card["height"] == pytest.approx(unit * height**power, rel=1e-3)
        assert area == pytest.approx(true**power, rel=1e-3)
        assert card["share"] == pytest.approx(card["bytes"] / top, abs=2e-3)
    assert max(max(card["width"], card["height"]) for card in drawn) >= 30


def language_model() -> Shapes:
    """The trace of chapter 11."""
    model = LanguageModel(35, 8, 4, 16, 2, num_kv_heads=2)
    with trace(depth=2) as shapes, torch.no_grad():
        model(torch.zeros(1, 6, dtype=torch.int64))
    return shapes


def test_the_layers_are_counted_where_they_are_made_of_embedded(stage: Stage) -> None:
    root = opened(stage, language_model())
    layers, norm = card_of(root, "2"), card_of(root, "3")
    assert layers.locator(".af-step-name").inner_text() == "2 transformed"
    assert "more inside, 8,064 multiply-adds" in layers.locator(".af-cost").inner_text()
    assert norm.locator(".af-cost").inner_text() == "48 numbers, 192 bytes"
    froms = [card_of(root, step).locator(".af-from").inner_text() for step in "1234"]
    assert froms == ["", "from 1", "from 2", "from 3"]
    assert "Inside transformed: " in root.locator(".af-now").inner_text()


def test_a_tensor_that_two_layers_have_is_named_as_the_one_of_its_layer(stage: Stage) -> None:
    root = opened(stage, language_model(), nested=True)
    for step, made_of in (("2.7", "2.6"), ("2.8", "2.7"), ("2.10", "2.7, 2.9"), ("3", "2")):
        assert card_of(root, step).locator(".af-from").inner_text() == f"from {made_of}"


STOPS = """(root, name) => {
  const label = root.querySelector(`[data-size="${name}"]`).closest(".af-slider");
  const [input, value] = [label.querySelector("input"), label.querySelector(".af-value")];
  const back = input.value;
  const move = (at) => {
    input.value = at;
    input.dispatchEvent(new Event("input", { bubbles: true }));
    return Number(value.textContent.replaceAll(",", ""));
  };
  const stops = [...Array(Number(input.max) + 1).keys()].map(move);
  move(back);
  return stops;
}"""


def test_a_language_model_is_offered_the_heads_that_it_takes(stage: Stage) -> None:
    root = opened(stage, language_model())
    # With eight heads, a head has one component, which cannot be rotated.
    assert root.evaluate(STOPS, "heads") == [2, 4]
    assert root.evaluate(STOPS, "kv_heads") == [1, 2, 4]
    assert "124 steps of calls within these" in root.locator(".af-now").inner_text()
    slider(root, "heads").press("Home")
    assert "120 steps of calls within these" in root.locator(".af-now").inner_text()
    slider(root, "d_model").press("End")
    d_model, kv_heads = 65_536, 2
    offered = root.evaluate(STOPS, "heads")
    assert all(d_model // n % 2 == 0 and n % kv_heads == 0 for n in offered)
    assert offered[-1] == d_model // 2


def test_heads_of_an_odd_size_are_refused_as_the_package_does(stage: Stage) -> None:
    root = opened(stage, language_model())
    root.locator("select[name=broken]").select_option("num_heads")
    own = root.locator(".af-slider:has(.af-own) input")
    refusals = {}
    for _ in range(12):
        text = root.locator(".af-refusal").inner_text()
        refusals[root.locator(".af-slider:has(.af-own) .af-value").inner_text()] = text
        own.press("ArrowRight")
    assert refusals["8"] == (
        "ValueError: MultiHeadAttention: rotary_base pairs the features of a head, but d_k = 1 "
        "is odd"
    )
    assert refusals["6"].startswith("ShapeError: ")
    assert refusals["5"].startswith("ShapeError: ")


def test_a_card_says_that_the_largest_tensor_is_inside_and_draws_it_to_scale(walk: Locator) -> None:
    assert walk.locator(".af-largest").count() == 0
    badges = walk.locator(".af-badge:visible")
    assert badges.all_inner_texts() == ["2.16 kB inside"]
    card = walk.locator(".af-step:has(.af-badge:not(:empty))")
    assert card.locator(".af-step-name").inner_text() == "10 head_outputs"
    sides = (
        """(path) => path.getAttribute("d").match(/h([\\d.]+)v-([\\d.]+)/).slice(1).map(Number)"""
    )
    width, _ = card_of(walk, "1").locator(".af-front").evaluate(sides)
    unit = width / 12  # queries: (2, 5, 12); scores: (2, 3, 5, 7)
    inner = walk.locator(".af-within[d]")
    assert inner.count() == 1
    assert inner.evaluate(sides) == pytest.approx([7 * unit, 5 * unit])
    assert "dashed outline" in walk.locator(".af-scale").inner_text()
    within(walk).check()
    assert inner.count() == 0
    assert "dashed outline" not in walk.locator(".af-scale").inner_text()
    assert set(walk.locator(".af-badge:visible").all_inner_texts()) == {"largest"}


def test_together_counts_what_is_inside_the_calls(stage: Stage) -> None:
    with trace() as shapes:
        SelfAttentionBlock(12, 3)(torch.zeros(2, 5, 12))
    root = opened(stage, shapes)
    walk = walk_of(shapes)
    length = slider(root, "length")
    while "384" not in root.locator(".af-shape").first.inner_text():
        length.press("ArrowRight")
    before, after = (bytes_of(walk["steps"], {**start_of(walk), "length": n}) for n in (256, 384))
    now = root.locator(".af-now").inner_text()
    assert now.startswith("length 256 → 384 (×1.5): ")
    assert f"together ×{after / before:.3g}, to {after / 1e6:.3g} MB in float32" in now
    inside = root.locator(".af-step:not([hidden])").evaluate_all(
        "(cards) => cards.map((card) => Number(card.dataset.inside))"
    )
    assert f"Of these, {sum(inside) / 1e6:.3g} MB are inside " in now


def test_whole_factors_are_exact_and_long_ones_in_words(stage: Stage) -> None:
    with trace() as shapes:
        SelfAttentionBlock(12, 3)(torch.zeros(1, 1, 12))
    root = opened(stage, shapes)
    now = root.locator(".af-now")
    slider(root, "batch").press("End")
    assert now.inner_text().startswith("batch 1 → 65,536 (×65,536): ")
    assert "together ×65,536, to " in now.inner_text()
    assert "multiply-adds ×65,536." in now.inner_text()
    root.get_by_role("button", name="Reset").click()
    slider(root, "length").press("End")
    assert re.search(r"multiply-adds ×[\d.]+ million\.", now.inner_text())


def test_a_step_that_is_pointed_at_lights_what_it_is_made_of(page: Page, walk: Locator) -> None:
    names = walk.locator(".af-step:not([hidden]) .af-step-name")
    names.filter(has_text="head_outputs").hover()

    def with_role(role: str) -> list[str]:
        return walk.locator(f'[data-role="{role}"] .af-step-name').all_inner_texts()

    assert with_role("input") == ["7 head_queries", "8 head_keys", "9 head_values"]
    assert with_role("output") == ["11 merged"]
    assert walk.locator('[data-role="input"] .af-role').all_inner_texts() == ["goes in"] * 3
    assert names.filter(has_text="head_outputs").get_attribute("aria-label") == (
        "10 head_outputs: Made of head_queries, head_keys, head_values. Goes into merged."
    )
    page.mouse.move(0, 0)
    names.filter(has_text="2 keys").focus()
    assert with_role("same") == ["3 values"]
    assert with_role("output") == ["5 projected_keys"]  # though values are the same tensor
    walk.get_by_role("button", name="Reset").focus()
    walk.locator(".af-caption").hover()
    assert walk.locator("[data-role]").count() == 0


def test_each_step_is_made_of_what_its_line_of_code_names(explorer: Locator) -> None:
    explorer.locator("select[name=shown]").select_option("a step with a cache")

    def made_of(step: str) -> str:
        return card_of(explorer, step).locator(".af-from").inner_text()

    # Queries, keys and values are one tensor, but each goes into one projection alone.
    assert [made_of(step) for step in ("1", "4", "5", "6")] == ["", "from 1", "from 2", "from 3"]
    within(explorer).check()
    assert made_of("7.1") == "from 4"  # what the call within was given
    assert made_of("14.4") == "from 14.4.3, 14.4.4"
    assert made_of("14.6") == "from 14.3, 14.5"


def test_cards_of_a_row_are_alike_and_a_phone_has_two_in_a_row(page: Page, walk: Locator) -> None:
    tops = """(root, part) => Object.values(Object.groupBy(
        [...root.querySelectorAll(".af-step:not([hidden])")],
        (card) => card.getBoundingClientRect().top))
      .map((row) => row.map((card) => card.querySelector(part).getBoundingClientRect().top
        - root.getBoundingClientRect().top))"""
    for width, least in ((1000, 3), (390, 2)):
        page.set_viewport_size({"width": width, "height": 844})
        for part in (".af-step-name", ".af-block", ".af-bytes"):
            rows = walk.evaluate(tops, part)
            assert len(rows[0]) >= least
            for row in rows:
                assert max(row) - min(row) < 1, part
    rows = walk.evaluate(tops, ".af-block")
    name = walk.locator(".af-step-name").filter(has_text="10 head_outputs")
    name.hover()
    assert walk.locator('[data-role="input"]').count() == 3
    assert walk.evaluate(tops, ".af-block") == rows  # what is said of the flow moves nothing
    name.click()
    assert name.get_attribute("aria-expanded") == "true"


def test_a_phone_sees_two_sliders_and_the_cards_and_reaches_the_rest(
    stage: Stage, walks: str
) -> None:
    page = stage.show(before=walks, viewport=PHONE, reduced_motion="reduce")
    explorer, walk = page.locator("attention-figure").all()

    def sliders() -> list[str | None]:
        seen = walk.locator(".af-slider:visible [data-size]").all()
        return [label.get_attribute("data-size") for label in seen]

    def form() -> float:
        return walk.evaluate(
            """(root) => root.querySelector(".af-step").getBoundingClientRect().top
              - root.querySelector(".af-form").getBoundingClientRect().top"""
        )

    assert sliders() == ["queries", "keys"]
    assert form() < 350
    goal = walk.locator(".af-challenge")
    slider(walk, "queries").press("End")
    assert goal.inner_text().startswith("Challenge met: ")
    assert not walk.locator("select[name=broken]").is_visible()
    walk.get_by_text("More sizes").click()
    assert len(sliders()) == 5
    within(walk).check()
    walk.locator("select[name=dtype]").select_option("bfloat16")
    walk.get_by_label("d_k = d_model / heads").uncheck()
    slider(walk, "d_k").press("End")
    page.set_viewport_size({"width": 1000, "height": 844})  # all are in their places again
    expect(walk.get_by_text("More sizes")).to_have_count(0)
    wide = ["batch", "queries", "keys", "heads", "d_k", "d_model"]
    assert sliders() == wide
    page.set_viewport_size(PHONE)
    explorer.get_by_text("More sizes").wait_for()
    explorer.locator("select[name=shown]").focus()
    explorer.locator("select[name=shown]").select_option("self-attention block")
    assert page.locator(":focus").get_attribute("name") == "shown"
    explorer.locator("select[name=preset]").select_option("BERT-base")
    assert explorer.locator(".af-slider:visible").count() == 2


def test_a_link_to_what_is_broken_opens_the_folded_controls(stage: Stage, walks: str) -> None:
    at = f"#figure=walk&broken={quote(json.dumps('values.keys'))}"
    root = stage.show(before=walks, at=at, viewport=PHONE).locator("attention-figure").first
    root.locator(".af-refusal").get_by_text("ShapeError").wait_for()
    assert root.locator("select[name=broken]").input_value() == "values.keys"
    assert root.locator("select[name=broken]").is_visible()
    assert root.locator(".af-slider:has(.af-own)").is_visible()


def test_a_theme_moves_no_title_within_its_row(page: Page, walk: Locator) -> None:
    page.add_style_tag(
        content="ol li > p:first-child { margin: 0.25rem 0; } "
        "main ol li:first-child > p:first-child { margin-top: 0; }"
    )
    tops = walk.locator(".af-step:visible").evaluate_all(
        """(cards) => cards.map((card) => card.querySelector(".af-step-name")
          .getBoundingClientRect().top - card.getBoundingClientRect().top)"""
    )
    assert len(tops) == 12
    assert walk.locator(".af-badge:visible").count() == 1
    assert max(tops) - min(tops) < 0.1


def test_blocks_glide_to_their_new_size_unless_motion_is_unwelcome(
    page: Page, walk: Locator
) -> None:
    front = walk.locator(".af-front").first
    slider(walk, "queries").press("ArrowRight")
    seconds = "node => getComputedStyle(node).transitionDuration"
    assert front.evaluate(seconds) == "0.25s"
    page.emulate_media(reduced_motion="reduce")
    assert front.evaluate(seconds) == "0s"


def test_a_move_says_what_grows_and_a_link_can_be_undone(walk: Locator) -> None:
    heads = slider(walk, "heads")
    heads.press("Home")
    assert "heads 3 → 1 (÷3)" in walk.locator(".af-now").inner_text()
    assert "shown here changes, but inside the calls" in walk.locator(".af-now").inner_text()
    assert "÷3 (scores" in walk.locator(".af-now").inner_text()
    within(walk).check()
    heads.press("ArrowRight")
    assert ": 5 steps ×2 (scores, returns, weights);" in walk.locator(".af-now").inner_text()
    walk.get_by_role("button", name="Reset").click()
    walk.get_by_label("d_k = d_model / heads").uncheck()
    heads.press("Home")
    assert "projected_queries" in walk.locator(".af-now").inner_text()
    assert slider(walk, "d_k").is_visible()


def test_together_counts_the_steps_in_sight_before_and_after(explorer: Locator) -> None:
    slider(explorer, "batch").press("ArrowRight")
    assert "batch 2 → 3 (×1.5)" in explorer.locator(".af-now").inner_text()
    assert "together ×1.5, to " in explorer.locator(".af-now").inner_text()


def test_the_keyboard_walks_the_steps_and_opens_their_code(page: Page, walk: Locator) -> None:
    names = walk.locator(".af-step:not([hidden]) .af-step-name")
    names.first.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    focused = page.locator(":focus")
    assert focused.inner_text() == "4 projected_queries"
    page.keyboard.press("Enter")
    assert focused.get_attribute("aria-expanded") == "true"
    detail = walk.locator(".af-detail")
    assert "projected_queries = self.W_q(queries)" in detail.inner_text()
    assert "heads*d_k = 3 × 4 = 12" in detail.inner_text()
    page.keyboard.press("End")
    assert focused.inner_text() == "12 output"
    page.keyboard.press("Home")
    page.keyboard.press("Escape")
    assert detail.count() == 0


def test_a_size_lights_up_everywhere(walk: Locator) -> None:
    slider(walk, "queries").focus()
    cards = walk.locator(".af-step:has(.af-axis.af-lit) .af-step-name").all_inner_texts()
    assert cards == ["1 queries", "4 projected_queries", "7 head_queries", *cards[3:]]
    assert not any(name.endswith(("keys", "values")) for name in cards)


def test_a_phone_and_paper(stage: Stage, walks: str) -> None:
    page = stage.show(before=walks, viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    small = page.evaluate(
        """() => [...document.querySelectorAll(".af-walk *")]
          .filter((node) => node.firstChild?.nodeType === 3 && node.textContent.trim())
          .filter((node) => node.checkVisibility())
          .map((node) => parseFloat(getComputedStyle(node).fontSize)).filter((size) => size < 12)"""
    )
    assert small == []
    page.emulate_media(media="print")
    assert page.locator("attention-figure figure img").first.is_visible()
    assert not page.locator(".af-walk").first.is_visible()


def test_without_scripts_there_is_the_still_picture(stage: Stage, walks: str) -> None:
    page = stage.browser.new_page(java_script_enabled=False)
    page.set_content(walks)
    markup = BeautifulSoup(page.content(), "html.parser")
    assert "12 steps of multi-head attention as blocks" in str(markup.img["alt"])
    assert box_of(page.locator("figure img").first).width > 300
    page.close()
