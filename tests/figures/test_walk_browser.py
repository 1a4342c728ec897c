"""The shape walk in a browser: every stop of every slider, challenges, breaks, links."""

from __future__ import annotations

import gzip
import json
import math
import random
import re
from typing import Any
from urllib.parse import quote

import pytest
import torch
from browser import ROOT
from playwright.sync_api import Locator, Page, expect
from stage import PAGE, PHONES, TOUCH, Stage, box_of
from walked import (
    HEADER,
    SWEEP,
    break_it,
    bytes_of,
    follows_its_challenge,
    follows_its_trace,
    opened,
    row_of,
    slider,
    with_role,
    within,
)

from attention_book import (
    masked_softmax,
    trace,
)
from attention_book.walk.explorer import CASES
from attention_book.walk.relations import value
from attention_book.walk.steps import DTYPES, start_of, walk_named


@pytest.mark.parametrize("name", CASES)
def test_stops_and_sizes_at_random_give_the_shapes_of_the_trace_and_meet_the_challenge(
    explorer: Locator, data: dict[str, Any], name: str
) -> None:
    shown, goal = explorer.locator("select[name=shown]"), explorer.locator(".af-challenge")
    walk, choose = walk_named(data, name), random.Random(name)
    shown.select_option(name)
    is_nested = within(explorer).is_visible()
    for nested in (False, True) if is_nested else (False,):
        shown.select_option(name)
        if is_nested:
            within(explorer).set_checked(nested)
        assert goal.inner_text().startswith("Challenge: make ")
        picks = [(choose.random(), choose.random()) for _ in range(60)]
        seen = explorer.evaluate(SWEEP, picks)
        assert len({tuple(sorted(stop["sizes"].items())) for stop in seen}) > 60
        follows_its_trace(walk, seen, nested or not is_nested)
        follows_its_challenge(walk, seen, nested, start_of(walk))
        assert goal.inner_text().startswith("Challenge met: ")
        explorer.get_by_role("button", name="Reset").click()
        assert goal.inner_text().startswith("Challenge: ")


def test_ten_times_the_memory_counts_for_one_slider_alone(explorer: Locator) -> None:
    explorer.locator("select[name=shown]").select_option("masked softmax")
    goal = explorer.locator(".af-challenge")
    for _ in range(7):
        slider(explorer, "queries").press("ArrowRight")
    for _ in range(6):
        slider(explorer, "keys").press("ArrowRight")
    shape = explorer.locator(".af-step").first.get_attribute("data-shape")
    assert shape == "2,3,16,24"  # nearly eleven times 5 × 7
    assert goal.inner_text().startswith("Challenge: make the memory")
    for _ in range(7):
        slider(explorer, "queries").press("ArrowLeft")
    assert goal.inner_text().startswith("Challenge: ")
    slider(explorer, "keys").press("End")
    assert goal.inner_text().startswith("Challenge met: ")


def test_a_preset_sets_a_challenge_of_its_own_and_one_that_is_met_is_spoken(
    explorer: Locator,
) -> None:
    goal, spoken = explorer.locator(".af-challenge"), explorer.get_by_role("status")
    assert goal.inner_text() == "Challenge: make another bar longer than that of row 10."
    assert spoken.text_content() == ""
    explorer.locator("select[name=shown]").select_option("dot-product attention")
    assert goal.inner_text() == "Challenge: make another bar longer than that of row 4."
    explorer.locator("select[name=preset]").select_option("BERT-base")
    own = "make another bar longer than that of row 4."
    assert goal.inner_text() == f"Challenge: {own}"
    expect(spoken).not_to_have_text("")
    expect(spoken).not_to_have_text(re.compile("Challenge"))
    slider(explorer, "queries").press("Home")
    met = f"Challenge met: {own}"
    assert goal.inner_text() == met
    expect(spoken).to_have_text(re.compile(re.escape(met) + "$"))
    explorer.locator("select[name=shown]").select_option("multi-head attention")
    assert goal.inner_text().startswith("Challenge: ")
    expect(spoken).not_to_have_text(re.compile("Challenge"))


def test_a_challenge_that_no_slider_can_meet_is_not_set(stage: Stage) -> None:
    """The same trace of a reader at the largest sizes has none, and at small ones has one."""
    for size, is_set in ((65_536, False), (3, True)):
        with trace() as shapes:
            masked_softmax(torch.ones(1, device="meta").expand(size, size, size))
        goal = opened(stage, shapes).locator(".af-challenge")
        task = "make the memory tenfold with one slider"
        assert goal.is_visible() is is_set
        assert not is_set or goal.inner_text() == f"Challenge: {task}."


def test_bytes_follow_the_dtype_and_views_count_once(walk: Locator) -> None:
    totals = []
    for dtype, size in DTYPES.items():
        walk.locator("select[name=dtype]").select_option(dtype)
        first = walk.locator(".af-step").first
        assert int(first.get_attribute("data-bytes") or 0) == 2 * 5 * 12 * size
        totals.append(int(walk.locator(".af-steps").get_attribute("data-bytes") or 0) // size)
    # Keys and values are one tensor, and the tensors by head are views of the projected ones.
    assert set(totals) == {2 * 12 * (5 + 7 + 5 + 7 + 7 + 5 + 5 + 5)}


@pytest.mark.parametrize("name", CASES)
def test_the_rows_add_up_to_what_is_said_of_all_steps(
    explorer: Locator, data: dict[str, Any], name: str
) -> None:
    explorer.locator("select[name=shown]").select_option(name)
    walk = walk_named(data, name)
    inner, now = within(explorer), explorer.locator(".af-now")
    for nested in (False, True) if inner.is_visible() else (False,):
        if inner.is_visible():
            inner.set_checked(nested)
        total = int(explorer.locator(".af-steps").get_attribute("data-bytes") or 0)
        rows = explorer.locator(".af-step:not([hidden])").evaluate_all(
            """(rows) => rows.map((row) => ({ ...row.dataset,
              held: row.querySelector(".af-held").innerText,
              name: row.querySelector(".af-step-name").textContent,
              bars: [...row.querySelectorAll(".af-bytes i")]
                .map((bar) => parseFloat(bar.style.width)),
              isHollow: row.querySelector(".af-bytes i").classList.contains("af-shared"),
            }))"""
        )
        assert sum(int(row["own"]) for row in rows) == total
        inside = sum(int(row["inside"]) for row in rows)
        everything = bytes_of(walk["steps"], start_of(walk))
        assert total + inside == everything
        assert now.inner_text().startswith(f"{said(everything)} in float32")
        most = max(int(row["bytes"]) + int(row["inside"]) for row in rows)
        full = 2 ** math.ceil(math.log2(most))
        for row in rows:
            parts = [int(row["bytes"]), int(row["inside"])]
            assert row["bars"] == pytest.approx([100 * part / full for part in parts], rel=1e-3)
            own, *more = row["held"].split(" + ")
            assert (row["own"] == "0") == row["isHollow"] == (own[:4] in ("view", "same"))
            assert row["isHollow"] or own == said(parts[0])
            assert more == [f"{said(part)} inside" for part in parts[1:] if part]
        longest = [row for row in rows if int(row["bytes"]) + int(row["inside"]) == most]
        name, *others = (row["name"] for row in longest)
        more = f" and {len(others)} more" if others else ""
        number = name.split()[0]
        told = [f"row {number} ({name.split()[1]}){more}.", " inside)."]
        assert now.inner_text().partition("longest bar: ")[2].endswith(tuple(told))
        assert f"longest bar: row {number} (" in now.inner_text()
    left_out = f"Not counted: the bytes of {walk.get('cut')} steps"
    assert ("cut" in walk) == (left_out in explorer.locator(".af-scale").inner_text())


def said(number: int) -> str:
    """Bytes as the page writes them."""
    for unit, power in (("MB", 6), ("kB", 3)):
        if number >= 999.5 * 10 ** (power - 3):
            return f"{number / 10**power:.3g} {unit}"
    return f"{number} bytes"


def test_the_largest_tensors_are_named_though_their_steps_are_not_shown(explorer: Locator) -> None:
    explorer.locator("select[name=preset]").select_option("GPT-2 small")
    now = explorer.locator(".af-now")
    assert now.inner_text().startswith("129 MB in float32, ")
    assert now.inner_text().endswith("longest bar: row 10 (scores (1, 12, 1024, 1024) inside).")
    within(explorer).check()
    assert now.inner_text().startswith("129 MB in float32, ")
    assert re.search(r"longest bar: row 10\.\d \(scores\) and \d more\.$", now.inner_text())
    shapes = explorer.locator(".af-shape:visible").all_inner_texts()
    assert "(1, 1024, 768)" in shapes
    assert not any("1,024" in shape for shape in shapes)


def test_where_steps_are_left_out_no_other_step_is_said_to_stay(explorer: Locator) -> None:
    explorer.locator("select[name=shown]").select_option("Transformer")
    slider(explorer, "heads").press("ArrowRight")

    now = explorer.locator(".af-now").inner_text()
    assert now.startswith("heads 4 → 6 (×1.5): ")
    assert now.count("×") == 1
    assert "Not counted: " in explorer.locator(".af-scale").inner_text()
    spoken = explorer.get_by_role("status")
    expect(spoken).to_have_text(re.compile("No step changes that is counted"))


def is_within(row: Locator, steps: Locator) -> bool:
    part, whole = box_of(row), box_of(steps)
    return part.y >= whole.y and part.bottom <= whole.bottom


TOPS = """(root) => [".af-step:not([hidden])", ".af-closeup", ".af-slider", ".af-challenge"]
  .flatMap((part) => [...root.querySelectorAll(part)])
  .map((node) => node.getBoundingClientRect().top
    - root.querySelector(".af-form").getBoundingClientRect().top)"""


@pytest.mark.parametrize("viewport", [{"width": 360, "height": 640}, {"width": 390, "height": 844}])
def test_a_phone_sees_challenge_rows_block_and_slider_and_no_tap_moves_them(
    stage: Stage, walks: str, viewport: dict[str, int]
) -> None:
    page = stage.show(before=PAGE + walks, **{**TOUCH, "viewport": viewport})
    for root in page.locator("attention-figure").all():
        form, input = box_of(root.locator(".af-form")), root.locator(".af-slider input")
        before = root.evaluate(TOPS)
        steps = root.locator(".af-steps")
        seen = [row for row in root.locator(".af-pick:visible").all() if is_within(row, steps)]
        assert len(seen) >= 3
        for row in seen:
            assert box_of(row).height >= 44
            row.tap()
            assert row.get_attribute("aria-pressed") == "true"
            title = root.locator(".af-closeup .af-title").text_content() or ""
            assert title.startswith(row.locator(".af-step-name").inner_text())
        root.locator("[data-size=keys]").tap()
        slider = box_of(input)
        assert slider.width > form.width / 2
        for key in ("ArrowRight", "End"):
            input.press(key)
            assert root.evaluate(TOPS) == pytest.approx(before, abs=0.1)
            assert box_of(input)[::2] == slider[::2]  # the page may scroll
            assert box_of(root.locator(".af-now")).bottom - form.y <= viewport["height"] - HEADER


def walks_of_the_book() -> dict[str, str]:
    """By notebook, the first walk that is stored there."""
    figures: dict[str, str] = {}
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
            for output in cell.get("outputs", []):
                html = "".join(output.get("data", {}).get("text/html", ""))
                if '<attention-figure kind="walk"' in html:
                    figures.setdefault(notebook.stem, html)
    return figures


@pytest.mark.parametrize(("width", "height"), PHONES)
def test_what_the_challenge_names_is_in_sight(stage: Stage, width: int, height: int) -> None:
    shown = {stem: html for stem, html in walks_of_the_book().items() if stem != "shape_explorer"}
    page = stage.show(before=PAGE + "".join(shown.values()), **{
        **TOUCH, "viewport": {"width": width, "height": height},
    })  # fmt: skip
    for root in page.locator("attention-figure").all():
        steps = root.locator(".af-steps")
        assert is_within(root.locator('[data-role="chosen"] .af-pick'), steps)
        named = re.search(
            r"than that of row ([\d.]+)\.$", root.locator(".af-challenge").inner_text()
        )
        if named:
            assert is_within(row_of(root, named[1]), steps)
            assert f"longest bar: row {named[1]} (" in root.locator(".af-now").inner_text()


# The width of what a list shows, and of the text that is chosen in it.
WIDTHS = """(list) => {
  const pen = document.createElement("canvas").getContext("2d");
  const { font, paddingLeft, paddingRight } = getComputedStyle(list);
  pen.font = font;
  const room = list.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
  return [room, pen.measureText(list.selectedOptions[0].textContent).width];
}"""


def test_a_phone_names_what_is_moved_and_all_of_what_is_broken(stage: Stage, walks: str) -> None:
    page = stage.show(before=PAGE + walks, **TOUCH)
    walk = page.locator("attention-figure").last
    broken, name = walk.locator("select[name=broken]"), walk.locator(".af-slider > span").first
    slider(walk, "keys")
    assert name.inner_text() == "keys"
    assert box_of(name).width > 20
    input = box_of(walk.locator(".af-slider input"))
    for each in ("", "values.keys", "num_kv_heads"):
        if each:
            break_it(walk, each)
        room, text = broken.evaluate(WIDTHS)
        assert room >= text
        assert box_of(walk.locator(".af-slider input")).y == pytest.approx(input.y, abs=0.1)


def test_the_names_of_a_low_block_do_not_cross(walk: Locator) -> None:
    break_it(walk, "values.keys")
    walk.locator(".af-slider input").evaluate(
        "(n) => { n.value = 0; n.dispatchEvent(new Event('input')); }"
    )
    names = walk.locator(".af-large-block text").filter(has_text=re.compile(r"\d"))
    boxes = {str(name.text_content()).split()[0]: box_of(name) for name in names.all()}
    assert boxes["keys"].bottom <= boxes["value_size"].y + 3


def test_a_break_shows_the_sentence_at_the_sizes_that_stand(walk: Locator) -> None:
    break_it(walk, "values.keys")
    refusal = walk.locator(".af-refusal")
    assert refusal.inner_text() == (
        "ShapeError: MultiHeadAttention: 'keys' is 6 in values (batch, keys, value_size) = "
        "(2, 6, 12), but 7 in keys"
    )
    assert walk.locator(".af-broken .af-step-name").all_inner_texts() == ["3 values"]
    assert walk.locator(".af-step.af-unreached").count() == 9
    own = walk.locator(".af-moves .af-chip:has(.af-own)")
    assert own.inner_text() == "keys in values alone 6"
    assert own.get_attribute("aria-pressed") == "true"
    assert walk.locator('[data-role="chosen"] .af-step-name').inner_text() == "3 values"
    walk.locator(".af-slider input").press("ArrowRight")
    assert refusal.inner_text() == "Nothing is broken: the sizes agree."
    break_it(walk, "mask.batch")
    assert "'queries' is 2 in mask" in refusal.inner_text()
    assert refusal.inner_text().splitlines()[-1] == "Now make batch and queries equal."
    assert len(refusal.inner_text().splitlines()) == 2
    slider(walk, "queries").press("Home")
    slider(walk, "queries").press("ArrowRight")
    assert refusal.inner_text().startswith("No error is raised, because batch = queries = 2")
    walk.get_by_role("button", name="Reset").click()
    assert refusal.inner_text() == ""


def test_a_step_that_was_chosen_claims_nothing_under_a_break(walk: Locator) -> None:
    names = walk.locator(".af-step:not([hidden]) .af-step-name")
    names.filter(has_text="4 projected_queries").click()
    assert with_role(walk, "input") == ["1 queries"]
    detail = walk.locator(".af-detail")
    assert "Multiply-adds: " in detail.inner_text()
    break_it(walk, "num_heads")
    assert "Multiply-adds" not in detail.inner_text()
    assert "Nothing of it is computed now." in detail.inner_text()
    break_it(walk, "values.keys")
    names.filter(has_text="3 values").click()
    assert "keys = 6:" in detail.inner_text()  # the size of its own
    culprit = walk.locator(".af-step.af-broken")
    outlines = set()
    for step in ("1 queries", "2 keys", "3 values"):  # now it is the same tensor, now it is chosen
        names.filter(has_text=step).click()
        style = culprit.evaluate(
            """(node) => { const { outlineStyle, outlineColor, opacity } = getComputedStyle(node);
              return [outlineStyle, outlineColor, opacity].join(); }"""
        )
        outlines.add(style)
    [outline] = outlines
    assert outline.startswith("solid,")
    assert outline.endswith(",1")


def test_the_menu_says_when_the_sizes_are_no_model_s(explorer: Locator) -> None:
    menu = explorer.locator("select[name=preset]")
    chosen = "(menu) => menu.selectedOptions[0].textContent"
    menu.select_option("GPT-2 small")
    assert menu.evaluate(chosen) == "GPT-2 small"
    cache = explorer.locator(".af-cache")
    assert "The steps are those of one of its 12 layers." in cache.inner_text()
    slider(explorer, "queries").press("ArrowRight")
    assert menu.evaluate(chosen) == "sizes of your own"
    assert "The steps now have sizes of your own." in cache.inner_text()
    slider(explorer, "queries").press("ArrowLeft")
    assert menu.evaluate(chosen) == "GPT-2 small"
    explorer.get_by_label("d_k = d_model / heads").uncheck()
    assert menu.evaluate(chosen) == "sizes of your own"
    menu.select_option("GPT-2 small")
    assert explorer.get_by_label("d_k = d_model / heads").is_checked()
    explorer.locator("select[name=shown]").select_option("Transformer")
    menu.select_option("Transformer base")
    assert "one layer each in encoder and decoder; the model has 6 of each." in cache.inner_text()


# Breaks one size after the other; answers what stands in the rows each time.
BREAK_ALL = """(root) => {
  const choice = root.querySelector("select[name=broken]");
  const seen = new Map();
  const read = (value) => seen.set(value, {
    id: value,
    own: Number(root.querySelector(".af-chip:has(.af-own)").lastChild.textContent
      .replaceAll(",", "")),
    error: root.querySelector(".af-refusal").dataset.error ?? "",
    now: root.querySelector(".af-now").textContent,
    scales: root.querySelector(".af-scales").textContent,
    total: Number(root.querySelector(".af-steps").dataset.bytes),
    rows: [...root.querySelectorAll(".af-step:not([hidden])")].map((row) => ({
      ...row.dataset,
      name: row.querySelector(".af-step-name").textContent.split(" ")[1],
      sizes: row.querySelector(".af-shape").textContent,
      held: row.querySelector(".af-held").textContent,
      isReached: !row.classList.contains("af-unreached"),
      isBroken: row.classList.contains("af-broken"),
      bar: parseFloat(row.querySelector(".af-bytes i").style.width),
    })),
  });
  const choose = (value) => {
    choice.value = value;
    choice.dispatchEvent(new Event("change", { bubbles: true }));
  };
  for (const chip of root.querySelectorAll("[data-size]:not([hidden])")) {
    chip.click();
    for (const value of [...choice.options].map((option) => option.value).filter(Boolean)) {
      choose(value);
      read(value);
      choose("");
      chip.click();
    }
  }
  return [...seen.values()];
}"""


@pytest.mark.parametrize("name", CASES)
def test_no_count_is_stale_under_a_break(
    explorer: Locator, data: dict[str, Any], name: str
) -> None:
    explorer.locator("select[name=shown]").select_option(name)
    walk = walk_named(data, name)
    entries = {entry["id"]: entry for entry in walk["breaks"]}
    by_name = {s["name"]: s for s in walk["steps"] if "." not in s["number"]}
    seen = explorer.evaluate(BREAK_ALL)
    assert sorted(state["id"] for state in seen) == sorted(entries)
    for state in seen:
        entry = entries[state["id"]]
        assert state["error"] == entry["error"]
        # A call may be refused though its module is made, so nothing is said of the module.
        assert not entry["error"] or state["now"].startswith("Nothing is computed")
        assert "module" not in state["now"]
        reached = [row for row in state["rows"] if row["isReached"]]
        scales = r"Full bar: (now )?[\d.,]+ (\w?B|bytes)\b" if reached else r"Sides "
        assert re.match(scales, state["scales"])
        for row in reached:
            shape = [int(size) for size in row["shape"].split(",")]
            assert row["sizes"] == "(" + ", ".join(str(size) for size in shape) + ")"
            step = by_name[row["name"]]
            axes = [value(axis, start_of(walk)) for axis in step["axes"]]
            if row["isBroken"]:
                axes[entry["axis"]] = state["own"]
            assert shape == axes
            count = math.prod(shape)
            assert int(row["count"]) == count
            assert int(row["bytes"]) == count * (step["bytes"] or 4)
        assert [row["name"] for row in reached if row["isBroken"]] == (
            [entry["step"]] if entry.get("step") in by_name else []
        )
        for row in state["rows"]:
            if not row["isReached"]:
                assert (row["held"], row["bytes"], row["bar"]) == ("not computed", "0", 0)
        memory = {}
        for row in reached:
            key = row["name"] if row["isBroken"] else by_name[row["name"]]["memory"]
            memory[key] = max(int(row["bytes"]), memory.get(key, 0))
        assert state["total"] == sum(memory.values())
        assert ("arguments hold" in state["now"]) == bool(reached)


def test_a_transformer_opens_with_the_steps_within(explorer: Locator) -> None:
    explorer.locator("select[name=shown]").select_option("Transformer")
    assert within(explorer).is_checked()
    assert explorer.locator(".af-step:not([hidden])").count() == 15
    explorer.locator("select[name=shown]").select_option("additive attention")
    assert not within(explorer).is_checked()


def test_every_preset_sets_a_challenge_that_one_slider_meets(
    explorer: Locator, data: dict[str, Any]
) -> None:
    meet = """(root) => {
      const goal = root.querySelector(".af-challenge");
      const opened = goal.textContent;
      const input = root.querySelector(".af-slider input");
      const move = (at) => {
        input.value = at;
        input.dispatchEvent(new Event("input", { bubbles: true }));
      };
      for (const chip of root.querySelectorAll("[data-size]:not([hidden])")) {
        chip.click();
        const back = input.value;
        for (let at = 0; at <= Number(input.max); at++) {
          move(at);
          if (goal.textContent.startsWith("Challenge met: ")) return [opened, goal.textContent];
        }
        move(back);
      }
      return [opened, goal.textContent];
    }"""
    for model in data["models"]:
        for name in model["sizes"]:
            for nested in (False, True):
                explorer.locator("select[name=shown]").select_option(name)
                explorer.locator("select[name=preset]").select_option(model["name"])
                if within(explorer).is_visible():
                    within(explorer).set_checked(nested)
                opened, met = explorer.evaluate(meet)
                task = opened.partition(": ")[2]
                assert (opened, met) == (f"Challenge: {task}", f"Challenge met: {task}")
                explorer.get_by_role("button", name="Reset").click()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"sizes": {"keys": 0}}, "sizes must name"),
        ({"shown": "masked softmax", "sizes": {"batch": 2, "heads": 3, "queries": 5, "keys": 0}},
         "keys must be a whole number from 1 to 65,536, but is 0"),
        ({"shown": "masked softmax", "sizes": {"batch": 2, "heads": 3, "queries": 5, "keys": 1e5}},
         "keys must be a whole number from 1 to 65,536, but is 100000"),
        ({"shown": "nothing"}, "asks for shown"),
        ({"order": "reversed"}, "asks for order"),
        ({"dtype": 4}, "asks for dtype"),
        ({"broken": "x"}, "asks for broken"),
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_shown_says_so(
    stage: Stage, walks: str, fields: dict[str, Any], sentence: str
) -> None:
    query = "&".join(f"{name}={quote(json.dumps(field))}" for name, field in fields.items())
    page = stage.show(before=walks, at=f"#figure=walk&{query}")
    root = page.locator("attention-figure").first
    root.locator(".af-note").get_by_text(sentence).wait_for()
    assert root.locator(".af-step:not([hidden])").count() == 12


def test_an_address_opens_the_state_that_was_copied(page: Page, explorer: Locator) -> None:
    explorer.locator("select[name=shown]").select_option("grouped-query attention")
    explorer.locator("select[name=preset]").select_option("Llama 3 8B")
    explorer.locator(".af-moves .af-chip:has(.af-written)").click()
    explorer.locator(".af-slider input").press("Home")
    assert "= 0 bytes" in explorer.locator(".af-cache").inner_text()
    explorer.locator(".af-slider input").press("End")
    assert "= 2.15 GB" in explorer.locator(".af-cache").inner_text()
    explorer.locator("select[name=dtype]").select_option("bfloat16")
    assert "= 1.07 GB" in explorer.locator(".af-cache").inner_text()
    break_it(explorer, "num_kv_heads")
    before = explorer.locator(".af-refusal").inner_text()
    assert before.startswith("ShapeError: MultiHeadAttention: num_heads = 32 is not a multiple")
    explorer.get_by_role("button", name="Copy link").click()
    page.wait_for_url("**#figure=walk&*")
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    explorer.locator(".af-refusal").get_by_text(before).wait_for()
    assert "= 1.07 GB" in explorer.locator(".af-cache").inner_text()


def test_every_walk_of_the_book_opens_at_the_sizes_of_its_trace(stage: Stage) -> None:
    """Each stored walk is one of this version, moves, and says nothing of an error."""
    figures = walks_of_the_book()
    chapters = {path.stem for path in (ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")}
    assert chapters - figures.keys() == set()
    for stem, html in figures.items():
        root = stage.show(before=html).locator("attention-figure")
        state = json.loads(root.locator("script").text_content() or "")
        walk = walk_named(state["data"], state["shown"])
        text = json.dumps(state, separators=(",", ":"), ensure_ascii=False).encode()
        assert len(text) <= 50 * 1024 or stem == "shape_explorer"
        assert len(gzip.compress(text)) <= 16 * 1024
        picks = [(0.3, 0.7), (0.9, 0.4), (0.6, 0.2)]
        follows_its_trace(walk, root.evaluate(SWEEP, picks), state["nested"])
        root.get_by_role("button", name="Reset").click()
        follows_its_challenge(walk, root.evaluate(SWEEP, []), state["nested"], state["sizes"])
