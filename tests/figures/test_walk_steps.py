"""The rows and blocks of the shape walk in a browser: to scale, what lies within, on a phone."""

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
    break_it,
    bytes_of,
    opened,
    row_of,
    slider,
    with_role,
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

# Chooses each step in turn; answers what is drawn of it and of what stands beside it.
DRAWN = """(root) => [...root.querySelectorAll(".af-step:not([hidden])")].map((row) => {
  row.querySelector(".af-pick").click();
  const sides = (block) => {
    const { width, height } = block.querySelector(".af-front").getBBox();
    return [height, width];
  };
  const small = [...root.querySelectorAll(".af-part:not([hidden])")].map((part) => ({
    step: part.querySelector("span").textContent.split(" ")[0],
    sides: sides(part),
  }));
  const [bar, whole] = [".af-bytes i", ".af-bytes"].map((at) =>
    row.querySelector(at).getBoundingClientRect().width);
  return { step: row.querySelector(".af-step-name").textContent.split(" ")[0],
    shape: row.dataset.shape.split(",").map(Number), sides: sides(root.querySelector(".af-large")),
    small, share: bar / whole, bytes: Number(row.dataset.bytes),
    held: Number(row.dataset.bytes) + Number(row.dataset.inside),
    legend: root.querySelector(".af-scales").textContent };
})"""

# The width and height of the front of a block.
SIDES = """(path) => path.getAttribute("d").match(/h([\\d.]+)v-([\\d.]+)/).slice(1).map(Number)"""


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
                if (Number(value.textContent.replaceAll(",", "")) === size) break;
              }
              input.dispatchEvent(new Event("change", { bubbles: true }));
            }""",
            length,
        )
    drawn = chapter_10.evaluate(DRAWN)
    assert len(drawn) == 13
    shapes = {row["step"]: row["shape"][-2:] for row in drawn}
    full = 2 ** math.ceil(math.log2(max(row["held"] for row in drawn)))
    for row in drawn:
        view = [shapes[row["step"]], *(shapes[small["step"]] for small in row["small"])]
        is_linear = max(map(max, view)) <= 64
        assert ("square root" in row["legend"]) == (not is_linear)
        power = 1 if is_linear else 0.5
        unit = row["sides"][0] / view[0][0] ** power
        assert row["sides"] == pytest.approx([unit * size**power for size in view[0]], rel=1e-3)
        for small, shape in zip(row["small"], view[1:], strict=True):
            quarter = [unit * size**power / 4 for size in shape]
            assert small["sides"] == pytest.approx(quarter, rel=1e-3)
        assert row["share"] == pytest.approx(row["bytes"] / full, abs=2e-3)
    assert max(max(row["sides"]) for row in drawn) >= 150
    assert sum(len(row["small"]) for row in drawn) >= 13


def language_model() -> Shapes:
    """The trace of chapter 11."""
    model = LanguageModel(35, 8, 4, 16, 2, num_kv_heads=2)
    with trace(depth=2) as shapes, torch.no_grad():
        model(torch.zeros(1, 6, dtype=torch.int64))
    return shapes


def test_the_layers_are_counted_where_they_are_made_of_embedded(stage: Stage) -> None:
    root = opened(stage, language_model())
    cost, made_of = root.locator(".af-detail .af-costs"), []
    costs = ["", "more inside, 8,064 multiply-adds", "48 numbers, 192 bytes", ""]
    for step, said in zip("1234", costs, strict=True):
        row_of(root, step).locator(".af-pick").click()
        assert said in cost.inner_text()
        made_of.append(with_role(root, "input"))
    assert made_of == [[], ["1 embedded"], ["2 transformed"], ["3 normed"]]
    assert row_of(root, "2").locator(".af-held").inner_text() == "192 bytes + 1.73 kB inside"


def test_a_tensor_that_two_layers_have_is_named_as_the_one_of_its_layer(stage: Stage) -> None:
    root = opened(stage, language_model(), nested=True)
    for step, made_of in (("2.7", "2.6"), ("2.8", "2.7"), ("2.10", "2.7, 2.9"), ("3", "2")):
        row_of(root, step).locator(".af-pick").click()
        assert ", ".join(name.split()[0] for name in with_role(root, "input")) == made_of


STOPS = """(root, name) => {
  root.querySelector(`[data-size="${name}"]`).click();
  const slider = root.querySelector(".af-slider");
  const [input, value] = [slider.querySelector("input"), slider.querySelector(".af-value")];
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
    legend = root.locator(".af-scale")
    assert "Not counted: the bytes of 124 steps" in legend.inner_text()
    slider(root, "heads").press("Home")
    assert "Not counted: the bytes of 120 steps" in legend.inner_text()
    slider(root, "d_model").press("End")
    d_model, kv_heads = 65_536, 2
    offered = root.evaluate(STOPS, "heads")
    assert all(d_model // n % 2 == 0 and n % kv_heads == 0 for n in offered)
    assert offered[-1] == d_model // 2


def test_heads_of_an_odd_size_are_refused_as_the_package_does(stage: Stage) -> None:
    root = opened(stage, language_model())
    break_it(root, "num_heads")
    own = root.locator(".af-slider input")
    refusals = {}
    for _ in range(12):
        text = root.locator(".af-refusal").inner_text()
        refusals[root.locator(".af-slider .af-value").inner_text()] = text
        own.press("ArrowRight")
    assert refusals["8"] == (
        "ValueError: MultiHeadAttention: rotary_base pairs the features of a head, but d_k = 1 "
        "is odd"
    )
    assert refusals["6"].startswith("ShapeError: ")
    assert refusals["5"].startswith("ShapeError: ")


def test_a_row_says_that_the_largest_tensor_is_inside_and_its_block_draws_it_to_scale(
    walk: Locator,
) -> None:
    inside = "longest bar: row 10 (scores (2, 3, 5, 7) inside)."
    assert inside in walk.locator(".af-now").inner_text()
    largest = row_of(walk, "10 head_outputs")
    hatched = largest.locator(".af-inside-bytes")
    assert box_of(hatched).width > 4 * box_of(largest.locator(".af-bytes i").first).width
    assert largest.get_attribute("data-role") == "chosen"  # it is made of most steps
    width, height = walk.locator(".af-large .af-front").evaluate(SIDES)
    unit = height / 5  # head_outputs: (2, 3, 5, 4); scores: (2, 3, 5, 7)
    assert width == pytest.approx(4 * unit)
    inner = walk.locator(".af-within[d]")
    assert inner.count() == 1
    assert inner.evaluate(SIDES) == pytest.approx([7 * unit, 5 * unit])
    assert "Dashed outline" in walk.locator(".af-scale").inner_text()
    within(walk).check()
    assert inner.count() == 0
    assert "Dashed outline" not in walk.locator(".af-scale").inner_text()
    break_it(walk, "values.keys")
    one_fewer, keys = (walk.locator(f".af-large {part}") for part in (".af-front", ".af-within"))
    assert one_fewer.evaluate(SIDES)[1] / keys.evaluate(SIDES)[1] == pytest.approx(6 / 7)


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
    assert f": {after / 1e6:.3g} MB in float32 (×{after / before:.3g}), " in now


# What each row holds, where its bar ends, and where the mark of what it held stands, in per cent.
HELD = """(root) => [...root.querySelectorAll(".af-step:not([hidden])")].map((row) => {
  const [bar, inside, mark] = row.querySelectorAll(".af-bytes > *");
  return [Number(row.dataset.bytes) + Number(row.dataset.inside),
    parseFloat(bar.style.width) + parseFloat(inside.style.width),
    mark.hidden ? null : parseFloat(mark.style.left)];
})"""


def test_a_move_marks_what_each_row_and_the_block_were(walk: Locator) -> None:
    queries, outline = slider(walk, "queries"), walk.locator(".af-large .af-was")
    rows = walk.evaluate(HELD)
    assert {mark for *_, mark in rows} == {outline.get_attribute("d")} == {None}
    for key, growth in (("ArrowRight", 6 / 5), ("ArrowLeft", 5 / 6)):
        queries.press(key)
        before, rows = rows, walk.evaluate(HELD)
        part = 100 / 2 ** math.ceil(math.log2(max(held for held, *_ in before + rows)))
        for (was, *_), (held, *bar) in zip(before, rows, strict=True):
            assert bar == pytest.approx([part * held, part * was], rel=1e-3)
        width, height = outline.evaluate(SIDES)
        front = walk.locator(".af-large .af-front").evaluate(SIDES)
        assert front == pytest.approx([width, height * growth])
    assert "Orange lines: before the move." in walk.locator(".af-scale").inner_text()
    row_of(walk, "3").locator(".af-pick").click()  # it stays as it is
    assert outline.get_attribute("d") is None
    queries.press("End")
    queries.press("Home")  # a mark of what was would leave no room for what is
    row_of(walk, "1").locator(".af-pick").click()
    assert outline.get_attribute("d") is None
    assert max(bar for _, bar, _ in walk.evaluate(HELD)) > 100 / 9


def test_whole_factors_are_exact_and_long_ones_in_words(stage: Stage) -> None:
    with trace() as shapes:
        SelfAttentionBlock(12, 3)(torch.zeros(1, 1, 12))
    root = opened(stage, shapes)
    now = root.locator(".af-now")
    slider(root, "batch").press("End")
    assert now.inner_text().startswith("batch 1 → 65,536 (×65,536): ")
    assert " in float32 (×65,536), " in now.inner_text()
    assert " multiply-adds (×65,536)." in now.inner_text()
    root.get_by_role("button", name="Reset").click()
    slider(root, "length").press("End")
    assert re.search(r"multiply-adds \(×[\d.]+ million\)", now.inner_text())


def test_the_chosen_step_lights_what_it_is_made_of_and_stands_between(walk: Locator) -> None:
    names = walk.locator(".af-step:not([hidden]) .af-step-name")
    names.filter(has_text="head_outputs").click()
    assert with_role(walk, "input") == ["7 head_queries", "8 head_keys", "9 head_values"]
    assert with_role(walk, "output") == ["11 merged"]
    assert walk.locator('[data-role="input"] .af-role').all_inner_texts() == ["goes in"] * 3
    assert walk.locator('[data-role="output"] .af-role').all_inner_texts() == ["comes out"]
    row = row_of(walk, "10").locator(".af-pick")
    assert row.get_attribute("aria-description") == (
        "Made of head_queries, head_keys, head_values. Goes into merged."
    )

    def beside(group: str) -> list[str]:
        parts = walk.get_by_role("group", name=group).locator(".af-part:visible")
        return [text.replace("\u200b", "") for text in parts.all_inner_texts()]

    assert beside("made of") == ["7 head_queries", "8 head_keys", "9 head_values"]
    assert beside("goes into") == ["11 merged"]
    walk.locator(".af-part:visible").nth(1).click()
    assert with_role(walk, "chosen") == ["8 head_keys"]
    assert beside("made of") == ["5 projected_keys"]
    names.filter(has_text="2 keys").click()
    assert with_role(walk, "same") == ["3 values"]
    assert with_role(walk, "output") == ["5 projected_keys"]  # though values are the same tensor
    walk.get_by_role("button", name="Reset").click()
    assert with_role(walk, "chosen") == ["10 head_outputs"]


def test_each_step_is_made_of_what_its_line_of_code_names(explorer: Locator) -> None:
    explorer.locator("select[name=shown]").select_option("a step with a cache")

    def made_of(step: str) -> str:
        row_of(explorer, step).locator(".af-pick").click()
        return ", ".join(name.split()[0] for name in with_role(explorer, "input"))

    # Queries, keys and values are one tensor, but each goes into one projection alone.
    assert [made_of(step) for step in ("1", "4", "5", "6")] == ["", "1", "2", "3"]
    within(explorer).check()
    assert made_of("7.1") == "4"  # what the call within was given
    assert made_of("14.4") == "14.4.3, 14.4.4"
    assert made_of("14.6") == "14.3, 14.5"


def test_rows_and_block_stand_side_by_side_where_there_is_room(page: Page, walk: Locator) -> None:
    for width, is_wide in ((1000, True), (390, False)):
        page.set_viewport_size({"width": width, "height": 844})
        rows, block = (box_of(walk.locator(part)) for part in (".af-steps", ".af-closeup"))
        assert (block.x >= rows.right) == is_wide
        assert (block.y >= rows.bottom) == (not is_wide)
        large, side = (box_of(walk.locator(part)) for part in (".af-large", ".af-made-of"))
        assert large.width > 1.5 * side.width
        assert {box_of(row).height for row in walk.locator(".af-pick:visible").all()} == {44}
        bars = [box_of(bar) for bar in walk.locator(".af-pick:visible .af-bytes").all()]
        assert len({(bar.x, bar.width) for bar in bars}) == 1  # so that they compare


def test_what_follows_and_what_is_counted_is_folded_on_a_phone(stage: Stage, walks: str) -> None:
    page = stage.show(before=walks, viewport=PHONE, reduced_motion="reduce")
    explorer, walk = page.locator("attention-figure").all()

    def sizes() -> list[str | None]:
        chips = walk.locator("[data-size]:visible").all()
        return [chip.get_attribute("data-size") for chip in chips]

    assert sizes() == ["batch", "queries", "keys", "heads", "d_model"]
    slider(walk, "queries").press("Home")
    assert walk.locator(".af-challenge").inner_text().startswith("Challenge met: ")
    assert not within(walk).is_visible()
    walk.get_by_text("More", exact=True).click()
    within(walk).check()
    walk.locator("select[name=dtype]").select_option("bfloat16")
    walk.get_by_label("d_k = d_model / heads").uncheck()
    assert walk.locator('[data-size="d_k"]').get_attribute("aria-pressed") == "true"
    walk.locator(".af-slider input").press("End")
    assert sizes() == ["batch", "queries", "keys", "heads", "d_k", "d_model"]
    explorer.locator("select[name=shown]").select_option("self-attention block")
    explorer.locator("select[name=preset]").select_option("BERT-base")
    assert explorer.locator(".af-slider:visible").count() == 1


def test_a_link_to_what_is_broken_shows_it_and_its_slider(stage: Stage, walks: str) -> None:
    at = f"#figure=walk&broken={quote(json.dumps('values.keys'))}"
    root = stage.show(before=walks, at=at, viewport=PHONE).locator("attention-figure").first
    root.locator(".af-refusal").get_by_text("ShapeError").wait_for()
    assert root.locator("select[name=broken]").input_value() == "values.keys"
    assert root.locator("select[name=broken]").is_visible()
    assert root.locator(".af-chip:has(.af-own)").get_attribute("aria-pressed") == "true"
    assert with_role(root, "chosen") == ["3 values"]


def test_a_theme_moves_no_title_within_its_row(page: Page, walk: Locator) -> None:
    page.add_style_tag(
        content="ol li > :first-child, ol li button > :first-child { margin: 0.25rem 0; } "
        "main ol li:first-child > :first-child { margin-top: 0; }"
    )
    tops = walk.locator(".af-step:visible").evaluate_all(
        """(rows) => rows.map((row) => row.querySelector(".af-step-name")
          .getBoundingClientRect().top - row.getBoundingClientRect().top)"""
    )
    assert len(tops) == 12
    assert max(tops) - min(tops) < 0.1


def test_blocks_glide_to_their_new_size_unless_motion_is_unwelcome(
    page: Page, walk: Locator
) -> None:
    front = walk.locator(".af-front").first
    slider(walk, "queries").press("ArrowRight")
    seconds = "node => getComputedStyle(node).transitionDuration"
    assert front.evaluate(seconds) == "0.28s"
    page.emulate_media(reduced_motion="reduce")
    assert front.evaluate(seconds) == "0s"


def test_a_move_says_what_grows_and_a_link_can_be_undone(walk: Locator) -> None:
    heads = slider(walk, "heads")
    heads.press("Home")
    assert "heads 3 → 1 (÷3)" in walk.locator(".af-now").inner_text()
    spoken = walk.get_by_role("status")
    expect(spoken).to_have_text(re.compile(r"÷3 inside calls: scores, returns, weights\."))
    assert row_of(walk, "10").locator(".af-grown").inner_text().strip() == "÷1.74"
    within(walk).check()
    heads.press("ArrowRight")
    expect(spoken).to_have_text(re.compile(r"×2: scores, returns, weights\."))
    grown = walk.locator(".af-step:visible").filter(has_text="×2").locator(".af-step-name")
    steps = [name.split()[1] for name in grown.all_inner_texts()]
    assert (len(steps), set(steps)) == (5, {"scores", "returns", "weights"})
    walk.get_by_role("button", name="Reset").click()
    walk.get_by_label("d_k = d_model / heads").uncheck()
    assert walk.locator('[data-size="d_k"]').get_attribute("aria-pressed") == "true"
    slider(walk, "heads").press("Home")
    assert row_of(walk, "4").locator(".af-grown").inner_text().strip() == "÷3"


def test_together_counts_the_steps_in_sight_before_and_after(explorer: Locator) -> None:
    slider(explorer, "batch").press("ArrowRight")
    assert "batch 2 → 3 (×1.5)" in explorer.locator(".af-now").inner_text()
    assert " in float32 (×1.5), " in explorer.locator(".af-now").inner_text()
    grown = explorer.locator(".af-step:visible .af-grown").all_inner_texts()
    assert {text.strip() for text in grown} == {"×1.5"}


def test_the_keyboard_walks_the_steps_and_reads_their_code(page: Page, walk: Locator) -> None:
    row_of(walk, "10").locator(".af-pick").focus()
    page.keyboard.press("Home")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    focused = page.locator(":focus")
    assert focused.get_attribute("data-key") == "4"
    assert focused.get_attribute("aria-pressed") == "true"
    detail = walk.locator(".af-detail")
    assert "projected_queries = self.W_q(queries)" in detail.inner_text()
    assert "heads*d_k = 3 × 4 = 12" in detail.inner_text()
    page.keyboard.press("End")
    assert focused.get_attribute("data-key") == "12"
    page.keyboard.press("ArrowDown")  # there is none below
    page.keyboard.press("ArrowUp")
    assert focused.get_attribute("data-key") == "11"
    assert with_role(walk, "input") == ["10 head_outputs"]


def test_the_size_that_is_moved_is_lit_in_every_row(walk: Locator) -> None:
    slider(walk, "queries")
    rows = walk.locator(".af-step:has(.af-size.af-lit) .af-step-name").all_inner_texts()
    assert rows == ["1 queries", "4 projected_queries", "7 head_queries", *rows[3:]]
    assert not any(name.endswith(("keys", "values")) for name in rows)


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


def test_how_long_a_full_bar_is_and_how_sides_are_drawn_stands_beside_the_list(
    explorer: Locator,
) -> None:
    explorer.locator("select[name=shown]").select_option("multi-head attention")
    scales = explorer.locator(".af-scales")
    assert scales.inner_text() == "Full bar: 4.1 kB. Sides to scale."
    slider(explorer, "queries").press("End")
    steps = explorer.locator(".af-steps")
    most = max(
        int(row.get_attribute("data-bytes") or 0) + int(row.get_attribute("data-inside") or 0)
        for row in steps.locator(".af-step:not([hidden])").all()
    )
    full = 2 ** math.ceil(math.log2(most))
    said = re.fullmatch(
        r"Full bar: now ([\d.]+) ([MG])B \(×([\d,]+)\)\. Sides by square root\.",
        scales.inner_text(),
    )
    assert said
    assert float(said[1]) * {"M": 1e6, "G": 1e9}[said[2]] == pytest.approx(full, rel=0.01)
    assert int(said[3].replace(",", "")) == full // 4096


def test_a_break_pushes_no_slider(explorer: Locator) -> None:
    explorer.locator("select[name=shown]").select_option("multi-head attention")
    place = box_of(explorer.locator(".af-line-of-moves"))
    choice = explorer.locator("select[name=broken]")
    for value in choice.evaluate("(list) => [...list.options].map((each) => each.value)"):
        choice.select_option(value)
        assert box_of(explorer.locator(".af-line-of-moves")).y == pytest.approx(place.y, abs=0.5)


def test_a_model_is_named_while_the_sizes_are_its_own(explorer: Locator) -> None:
    explorer.locator("select[name=shown]").select_option("multi-head attention")
    explorer.locator("select[name=preset]").select_option("BERT-base")
    cache = explorer.locator(".af-cache")
    assert cache.inner_text().startswith("BERT-base: ")
    slider(explorer, "queries").press("End")
    assert cache.inner_text() == ""
