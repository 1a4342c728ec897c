"""The shape walk in a browser: every stop of every slider, and what a reader can do by hand."""

from __future__ import annotations

import gzip
import json
import math
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import torch
from browser import ROOT, chromium
from bs4 import BeautifulSoup
from figures_ext import bundle
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect

from attention_book import (
    DotProductAttention,
    LanguageModel,
    SelfAttentionBlock,
    masked_softmax,
    trace,
)
from attention_book.shapes import Shapes
from attention_book.walk import ShapeExplorer, ShapeWalk
from attention_book.walk.explorer import CASES
from attention_book.walk.relations import value
from attention_book.walk.steps import DTYPES, misfit, start_of, walk_named, walk_of

# Moves every slider to each of its stops, and then a number of sliders drawn by `picks` to stops
# drawn by them; answers the sizes and what stands on the cards after each move.
SWEEP = """(root, picks) => {
  const seen = [];
  const cards = () => [...root.querySelectorAll(".af-step:not([hidden])")];
  const sliders = () => [...root.querySelectorAll(".af-control:not([hidden]) [data-size]")]
    .map((label) => label.closest(".af-slider").querySelector("input"));
  const valueOf = (label) => label.closest(".af-slider").querySelector(".af-value").textContent;
  const shownSizes = () => Object.fromEntries(
    [...root.querySelectorAll(".af-control:not([hidden]) [data-size]")]
      .map((label) => [label.dataset.size, Number(valueOf(label).replaceAll(",", ""))]));
  const move = (input, value) => {
    input.value = value;
    input.dispatchEvent(new Event("input", { bubbles: true }));
    seen.push({
      sizes: { ...JSON.parse(root.querySelector(".af-steps").dataset.sizes), ...shownSizes() },
      shapes: cards().map((card) => card.dataset.shape),
      shown: cards().map((card) => card.querySelector(".af-shape").textContent),
      work: cards().map((card) => Number(card.dataset.work)),
      goal: root.querySelector(".af-challenge").textContent,
    });
  };
  for (const input of sliders()) {
    if (input.closest("[hidden]")) continue; // another size has left it one stop
    const back = input.value;
    for (let at = 0; at <= Number(input.max); at++) move(input, at);
    move(input, back);
  }
  for (const [which, where] of picks) {
    const input = sliders()[Math.floor(which * sliders().length)];
    move(input, Math.floor(where * (Number(input.max) + 1)));
  }
  return seen;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def explorer() -> ShapeExplorer:
    return ShapeExplorer()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, explorer: ShapeExplorer) -> str:
    """A page opened from a folder, with the explorer and a walk."""
    folder = tmp_path_factory.mktemp("walk")
    (folder / "figures.js").write_text(bundle(), encoding="utf-8")
    head = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Walks</title>'
        '<meta name="viewport" content="width=device-width">'
        '<script defer src="figures.js"></script>'
    )
    body = f"<body><main><h1>Walks</h1>{explorer.to_html()}{ShapeWalk().to_html()}</main></body>"
    (folder / "walks.html").write_text(head + body, encoding="utf-8")
    return (folder / "walks.html").as_uri()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    page.goto(address)
    page.locator(".af-walk").nth(1).wait_for()
    yield page
    page.close()
    assert errors == []


def explorer_on(page: Page) -> Locator:
    return page.locator("attention-figure").first


def slider(root: Locator, size: str) -> Locator:
    return root.locator(f'.af-control:not([hidden]) .af-slider:has([data-size="{size}"]) input')


def walk_on(page: Page) -> Locator:
    return page.locator("attention-figure").nth(1)


def numbers_in(step: dict[str, Any], sizes: dict[str, int]) -> int:
    return math.prod(value(axis, sizes) for axis in step["axes"])


def bytes_of(steps: list[dict[str, Any]], sizes: dict[str, int]) -> int:
    """What steps hold in float32; those that share memory count once."""
    shared: dict[int, int] = {}
    for step in steps:
        size = numbers_in(step, sizes) * (step["bytes"] or 4)
        shared[step["memory"]] = max(size, shared.get(step["memory"], 0))
    return sum(shared.values())


def follows_its_challenge(walk: dict[str, Any], seen: list[dict[str, Any]], nested: bool) -> None:
    """Assert that a sweep met the challenge of a walk, and that no stop said so too early."""
    steps = [step for step in walk["steps"] if nested or "." not in step["number"]]
    opened = start_of(walk)
    linked = {link["name"]: link["to"] for link in walk["links"]}
    top = max(steps, key=lambda step: numbers_in(step, opened))

    def outgrows(sizes: dict[str, int], alone: bool) -> bool:
        return max(numbers_in(step, sizes) for step in steps) > numbers_in(top, sizes)

    def is_tenfold(sizes: dict[str, int], alone: bool) -> bool:
        return alone and bytes_of(steps, sizes) >= 10 * bytes_of(steps, opened)

    moved = []
    for stop in seen:
        sizes = {**opened, **{dim: size for dim, size in stop["sizes"].items() if dim in opened}}
        sizes |= {dim: value(to, sizes) for dim, to in linked.items()}
        changed = [dim for dim in opened if dim not in linked and sizes[dim] != opened[dim]]
        moved.append((sizes, len(changed) == 1))
    task = f"make another step larger than step {top['number']} ({top['name']})"
    met = outgrows
    if not any(alone and outgrows(sizes, alone) for sizes, alone in moved):
        task = "make the steps shown take at least ten times the memory by moving one slider"
        met = is_tenfold
    found = False
    for stop, (sizes, alone) in zip(seen, moved, strict=True):
        found = found or met(sizes, alone)
        assert stop["goal"] == f"{'Challenge met' if found else 'Challenge'}: {task}."
    assert found


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_one_slider_meets_the_challenge_of_each_walk(
    page: Page, explorer: ShapeExplorer, name: str, nested: bool
) -> None:
    root = explorer_on(page)
    root.locator("select[name=shown]").select_option(name)
    show = root.get_by_label("show the steps of the calls within")
    if show.is_visible():
        show.set_checked(nested)
    elif nested:
        return  # one call alone
    goal = root.locator(".af-challenge")
    assert goal.inner_text().startswith("Challenge: make ")
    choose = random.Random(name)
    picks = [(choose.random(), choose.random()) for _ in range(10)]
    seen = root.evaluate(SWEEP, picks)
    follows_its_challenge(walk_named(explorer.data, name), seen, nested)
    assert goal.inner_text().startswith("Challenge met: ")
    root.get_by_role("button", name="Reset").click()
    assert goal.inner_text().startswith("Challenge: ")


def test_ten_times_the_memory_counts_for_one_slider_alone(page: Page) -> None:
    root = explorer_on(page)
    root.locator("select[name=shown]").select_option("masked softmax")
    goal = root.locator(".af-challenge")
    for _ in range(7):
        slider(root, "queries").press("ArrowRight")
    for _ in range(6):
        slider(root, "keys").press("ArrowRight")
    shape = root.locator(".af-step").first.get_attribute("data-shape")
    assert shape == "2,3,16,24"  # nearly eleven times 5 × 7
    assert goal.inner_text().startswith("Challenge: make the steps shown take")
    for _ in range(7):
        slider(root, "queries").press("ArrowLeft")
    assert goal.inner_text().startswith("Challenge: ")
    slider(root, "keys").press("End")
    assert goal.inner_text().startswith("Challenge met: ")


def test_a_preset_sets_a_challenge_of_its_own_and_one_that_is_met_is_spoken(page: Page) -> None:
    root = explorer_on(page)
    goal, spoken = root.locator(".af-challenge"), root.get_by_role("status")
    assert goal.inner_text() == "Challenge: make another step larger than step 2 (keys)."
    assert spoken.text_content() == ""
    root.locator("select[name=shown]").select_option("dot-product attention")
    assert goal.inner_text() == "Challenge: make another step larger than step 3 (values)."
    root.locator("select[name=preset]").select_option("BERT-base")
    own = "make another step larger than step 4 (scores)."
    assert goal.inner_text() == f"Challenge: {own}"
    expect(spoken).not_to_have_text("")
    expect(spoken).not_to_have_text(re.compile("Challenge"))
    slider(root, "queries").press("Home")
    met = f"Challenge met: {own}"
    assert goal.inner_text() == met
    expect(spoken).to_have_text(re.compile(re.escape(met) + "$"))
    root.locator("select[name=shown]").select_option("multi-head attention")
    assert goal.inner_text().startswith("Challenge: ")
    expect(spoken).not_to_have_text(re.compile("Challenge"))


def test_a_challenge_that_no_slider_can_meet_is_not_set(browser: Browser, tmp_path: Path) -> None:
    """The same trace of a reader at the largest sizes has none, and at small ones has one."""
    (tmp_path / "figures.js").write_text(bundle(), encoding="utf-8")
    texts = []
    for i, size in enumerate((65_536, 3)):
        with trace() as shapes:
            masked_softmax(torch.ones(1, device="meta").expand(size, size, size))
        script = '<meta charset="utf-8"><script defer src="figures.js"></script>'
        file = tmp_path / f"own{i}.html"
        file.write_text(f"<!doctype html>{script}{ShapeWalk(shapes).to_html()}", encoding="utf-8")
        page = browser.new_page()
        page.goto(file.as_uri())
        page.locator(".af-walk").wait_for()
        goal = page.locator(".af-challenge")
        texts.append(goal.inner_text() if goal.is_visible() else "")
        page.close()
    task = "make the steps shown take at least ten times the memory by moving one slider"
    assert texts == ["", f"Challenge: {task}."]


@pytest.mark.parametrize("name", CASES)
def test_every_stop_and_sizes_at_random_give_the_shapes_of_the_trace(
    page: Page, explorer: ShapeExplorer, name: str
) -> None:
    root = explorer_on(page)
    root.locator("select[name=shown]").select_option(name)
    if root.get_by_label("show the steps of the calls within").is_visible():
        root.get_by_label("show the steps of the calls within").check()
    choose = random.Random(name)
    picks = [(choose.random(), choose.random()) for _ in range(60)]
    seen = root.evaluate(SWEEP, picks)
    walk = walk_named(explorer.data, name)
    dims = {dim["name"] for dim in walk["dims"]}
    linked = {link["name"]: link["to"] for link in walk["links"]}
    assert len(seen) > 60
    for stop in seen:
        sizes = {k: v for k, v in stop["sizes"].items() if k in dims}
        sizes |= {dim: value(to, sizes) for dim, to in linked.items()}
        assert misfit(walk, sizes) == ""
        shapes = [tuple(value(axis, sizes) for axis in step["axes"]) for step in walk["steps"]]
        assert [tuple(map(int, text.split(","))) for text in stop["shapes"]] == shapes
        shown = ["(" + ", ".join(str(size) for size in shape) + ")" for shape in shapes]
        assert stop["shown"] == shown
        work = [
            sum(math.prod(value(axis, sizes) for axis in product) for product in step["products"])
            for step in walk["steps"]
        ]
        assert stop["work"] == pytest.approx(work, rel=1e-12)
    distinct = {tuple(sorted(stop["sizes"].items())) for stop in seen}
    assert len(distinct) > 60


def test_bytes_follow_the_dtype_and_views_count_once(page: Page) -> None:
    root = walk_on(page)
    totals = []
    for dtype, size in DTYPES.items():
        root.locator("select[name=dtype]").select_option(dtype)
        first = root.locator(".af-step").first
        assert int(first.get_attribute("data-bytes") or 0) == 2 * 5 * 12 * size
        totals.append(int(root.locator(".af-steps").get_attribute("data-bytes") or 0) // size)
    # Keys and values are one tensor, and the tensors by head are views of the projected ones.
    assert set(totals) == {2 * 12 * (5 + 7 + 5 + 7 + 7 + 5 + 5 + 5)}


@pytest.mark.parametrize("name", CASES)
def test_the_cards_add_up_to_what_is_said_of_all_steps(
    page: Page, explorer: ShapeExplorer, name: str
) -> None:
    root = explorer_on(page)
    root.locator("select[name=shown]").select_option(name)
    walk = walk_named(explorer.data, name)
    within = root.get_by_label("show the steps of the calls within")
    for nested in (False, True) if within.is_visible() else (False,):
        if within.is_visible():
            within.set_checked(nested)
        total = int(root.locator(".af-steps").get_attribute("data-bytes") or 0)
        cards = root.locator(".af-step:not([hidden])").evaluate_all(
            """(cards) => cards.map((card) =>
              ({ ...card.dataset, cost: card.querySelector(".af-cost").innerText }))"""
        )
        assert sum(int(card["own"]) for card in cards) == total
        inside = sum(int(card["inside"]) for card in cards)
        assert total + inside == bytes_of(walk["steps"], start_of(walk))
        assert bool(inside) == ("more, the largest step" in root.locator(".af-now").inner_text())
        for card in cards:
            assert (card["own"] == "0") == ("step" in card["cost"])
            assert (card["inside"] != "0") == ("more inside" in card["cost"])
        largest = root.locator(".af-largest:not([hidden])").count()
        more = re.search(r"\), (\d+) more\.", root.locator(".af-now").inner_text())
        assert (int(more[1]) if more else 0) == max(0, largest - 4)
    left_out = f"{walk.get('cut')} steps of calls within these are not counted."
    assert ("cut" in walk) == (left_out in root.locator(".af-now").inner_text())


def test_the_largest_tensors_are_named_though_their_steps_are_not_shown(page: Page) -> None:
    root = explorer_on(page)
    root.locator("select[name=preset]").select_option("GPT-2 small")
    now = root.locator(".af-now")
    assert now.inner_text().startswith("The steps shown: 25.2 MB in float32, ")
    assert now.inner_text().endswith(
        "Inside head_outputs: 104 MB more, the largest step scores (1, 12, 1024, 1024)."
    )
    root.get_by_label("show the steps of the calls within").check()
    assert now.inner_text().startswith("All steps together: 129 MB in float32, ")
    assert "The largest steps are scores (1, 12, 1024, 1024)" in now.inner_text()
    shapes = root.locator(".af-shape:visible").all_inner_texts()
    assert "(1, 1024, 768)" in shapes
    assert not any("1,024" in shape for shape in shapes)


def test_where_steps_are_left_out_no_other_step_is_said_to_stay(page: Page) -> None:
    root = explorer_on(page)
    root.locator("select[name=shown]").select_option("Transformer")
    slider(root, "heads").press("ArrowRight")
    now = root.locator(".af-now").inner_text()
    assert ": no step that is counted changes; together ×1, " in now
    assert "steps of calls within these are not counted." in now


def test_the_menu_of_breaks_has_room_for_its_choices(page: Page) -> None:
    page.set_viewport_size({"width": 760, "height": 900})
    root = walk_on(page)
    menu = root.locator("select[name=broken]").bounding_box()
    controls = root.locator(".af-controls").bounding_box()
    assert menu
    assert controls
    longest = root.locator("select[name=broken]").evaluate(
        """(menu) => {
            const alone = menu.cloneNode(true);
            alone.style.maxWidth = "none";
            document.body.append(alone);
            const { width } = alone.getBoundingClientRect();
            alone.remove();
            return width;
        }"""
    )
    assert menu["width"] >= min(longest, 0.8 * controls["width"]) - 30


def test_the_details_of_a_step_come_into_sight(page: Page) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.reload()
    root = walk_on(page)
    card = root.locator(".af-step:visible").nth(3)
    card.evaluate("(node) => node.scrollIntoView({ block: 'end' })")
    card.locator(".af-step-name").click()
    detail = root.locator(".af-detail").bounding_box()
    assert detail
    assert detail["y"] >= 0
    assert detail["y"] + detail["height"] <= page.evaluate("innerHeight")


def test_where_most_steps_are_the_largest_none_is_marked(page: Page) -> None:
    root = walk_on(page)
    for size in root.locator(".af-slider:not([hidden]) input").all():
        size.press("Home")
        largest, cards = root.locator(".af-largest:visible"), root.locator(".af-step:visible")
        badges = root.locator(".af-badge:visible").filter(has_text="largest").count()
        assert badges == (largest.count() if 2 * largest.count() <= cards.count() else 0)


def test_a_break_shows_the_sentence_at_the_sizes_that_stand(page: Page) -> None:
    root = walk_on(page)
    entry = root.locator("select[name=broken]")
    entry.select_option("values.keys")
    refusal = root.locator(".af-refusal")
    assert refusal.inner_text() == (
        "ShapeError: MultiHeadAttention: 'keys' is 6 in values (batch, keys, value_size) = "
        "(2, 6, 12), but 7 in keys"
    )
    assert root.locator(".af-broken .af-step-name").all_inner_texts() == ["3 values"]
    assert root.locator(".af-unreached").count() == 9
    root.locator(".af-slider:has(.af-own) input").press("ArrowRight")
    assert refusal.inner_text() == "Nothing is broken: the sizes agree."
    entry.select_option("mask.batch")
    assert "'queries' is 2 in mask" in refusal.inner_text()
    assert refusal.inner_text().splitlines()[-1] == "Now make batch and queries equal."
    assert len(refusal.inner_text().splitlines()) == 2
    slider(root, "queries").press("Home")
    slider(root, "queries").press("ArrowRight")
    assert refusal.inner_text().startswith("No error is raised, because batch = queries = 2")
    root.get_by_role("button", name="Reset").click()
    assert refusal.inner_text() == ""


def test_a_step_that_was_chosen_claims_nothing_under_a_break(page: Page) -> None:
    root = walk_on(page)
    names = root.locator(".af-step:not([hidden]) .af-step-name")
    names.filter(has_text="4 projected_queries").click()
    detail = root.locator(".af-detail")
    assert "Multiply-adds: " in detail.inner_text()
    root.locator("select[name=broken]").select_option("num_heads")
    assert "Multiply-adds" not in detail.inner_text()
    assert "Nothing of it is computed now." in detail.inner_text()
    root.locator("select[name=broken]").select_option("values.keys")
    names.filter(has_text="3 values").click()
    assert "keys = 6:" in detail.inner_text()  # the size of its own
    culprit = root.locator(".af-broken")
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


def test_the_menu_says_when_the_sizes_are_no_model_s(page: Page) -> None:
    root = explorer_on(page)
    menu = root.locator("select[name=preset]")
    chosen = "(menu) => menu.selectedOptions[0].textContent"
    menu.select_option("GPT-2 small")
    assert menu.evaluate(chosen) == "GPT-2 small"
    cache = root.locator(".af-cache")
    assert "The steps are those of one of its 12 layers." in cache.inner_text()
    slider(root, "queries").press("ArrowRight")
    assert menu.evaluate(chosen) == "sizes of your own"
    assert "The steps now have sizes of your own." in cache.inner_text()
    slider(root, "queries").press("ArrowLeft")
    assert menu.evaluate(chosen) == "GPT-2 small"
    root.get_by_label("d_k = d_model / heads").uncheck()
    assert menu.evaluate(chosen) == "sizes of your own"
    menu.select_option("GPT-2 small")
    assert root.get_by_label("d_k = d_model / heads").is_checked()
    root.locator("select[name=shown]").select_option("Transformer")
    menu.select_option("Transformer base")
    assert "one layer each in encoder and decoder; it has 6." in cache.inner_text()


# Breaks one size after the other; answers what stands on the cards each time.
BREAK_ALL = """(root) => {
  const choice = root.querySelector("select[name=broken]");
  const seen = [];
  for (const { value } of [...choice.options].filter((option) => option.value)) {
    choice.value = value;
    choice.dispatchEvent(new Event("change", { bubbles: true }));
    const own = root.querySelector(".af-slider:has(.af-own)");
    seen.push({
      id: value,
      own: own.hidden ? 0 : Number(own.querySelector(".af-value").textContent.replaceAll(",", "")),
      error: root.querySelector(".af-refusal").dataset.error ?? "",
      now: root.querySelector(".af-now").textContent,
      total: Number(root.querySelector(".af-steps").dataset.bytes),
      cards: [...root.querySelectorAll(".af-step:not([hidden])")].map((card) => ({
        ...card.dataset,
        name: card.querySelector(".af-step-name").textContent.split(" ")[1],
        sizes: card.querySelector(".af-shape").textContent,
        cost: card.querySelector(".af-cost").textContent,
        isReached: !card.classList.contains("af-unreached"),
        isBroken: card.classList.contains("af-broken"),
        bar: parseFloat(card.querySelector(".af-bytes i").style.width),
      })),
    });
  }
  return seen;
}"""


@pytest.mark.parametrize("name", CASES)
def test_no_count_is_stale_under_a_break(page: Page, explorer: ShapeExplorer, name: str) -> None:
    root = explorer_on(page)
    root.locator("select[name=shown]").select_option(name)
    walk = walk_named(explorer.data, name)
    entries = {entry["id"]: entry for entry in walk["breaks"]}
    by_name = {s["name"]: s for s in walk["steps"] if "." not in s["number"]}
    seen = root.evaluate(BREAK_ALL)
    assert [state["id"] for state in seen] == list(entries)
    for state in seen:
        entry = entries[state["id"]]
        assert state["error"] == entry["error"]
        # A call may be refused though its module is made, so nothing is said of the module.
        assert not entry["error"] or state["now"].startswith("Nothing is computed")
        assert "module" not in state["now"]
        reached = [card for card in state["cards"] if card["isReached"]]
        for card in reached:
            shape = [int(size) for size in card["shape"].split(",")]
            assert card["sizes"] == "(" + ", ".join(str(size) for size in shape) + ")"
            step = by_name[card["name"]]
            axes = [value(axis, start_of(walk)) for axis in step["axes"]]
            if card["isBroken"]:
                axes[entry["axis"]] = state["own"]
            assert shape == axes
            count = math.prod(shape)
            assert int(card["count"]) == count
            assert card["cost"].startswith(f"{count:,} number")
            assert int(card["bytes"]) == count * (step["bytes"] or 4)
        assert [card["name"] for card in reached if card["isBroken"]] == (
            [entry["step"]] if entry.get("step") in by_name else []
        )
        for card in state["cards"]:
            if not card["isReached"]:
                assert (card["cost"], card["bytes"], card["bar"]) == ("not computed", "0", 0)
        memory = {}
        for card in reached:
            key = card["name"] if card["isBroken"] else by_name[card["name"]]["memory"]
            memory[key] = max(int(card["bytes"]), memory.get(key, 0))
        assert state["total"] == sum(memory.values())
        assert "All steps together" not in state["now"]
        assert ("arguments hold" in state["now"]) == bool(reached)


# --- True to scale ------------------------------------------------------------------------------

DRAWN = """(root) => [...root.querySelectorAll(".af-step:not([hidden])")].map((card) => {
  const { width, height } = card.querySelector(".af-front").getBBox();
  const bar = card.querySelector(".af-bytes i").getBoundingClientRect().width;
  const whole = card.querySelector(".af-bytes").getBoundingClientRect().width;
  const shape = card.dataset.shape.split(",").map(Number);
  return { name: card.querySelector(".af-step-name").textContent, width, height, shape,
    share: bar / whole, bytes: Number(card.dataset.bytes) };
})"""


Opener = Callable[..., Locator]


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Opener]:
    """A function that opens the walk of a trace in a page of its own, without motion."""
    (tmp_path / "figures.js").write_text(bundle(), encoding="utf-8")
    pages: list[Page] = []

    def open_walk(shapes: Shapes, *, nested: bool = False, width: int = 1280) -> Locator:
        script = '<meta charset="utf-8"><script defer src="figures.js"></script>'
        html = ShapeWalk(shapes, nested=nested).to_html()
        (tmp_path / "walk.html").write_text(f"<!doctype html>{script}{html}", encoding="utf-8")
        viewport: ViewportSize = {"width": width, "height": 844}
        page = browser.new_page(viewport=viewport, reduced_motion="reduce")
        pages.append(page)
        page.goto((tmp_path / "walk.html").as_uri())
        page.locator(".af-walk").wait_for()
        return page.locator("attention-figure")

    yield open_walk
    for page in pages:
        page.close()


@pytest.fixture
def chapter_10(opened: Opener) -> Locator:
    """The walk of chapter 10."""
    x = torch.empty(1, 512, 64, device="meta")
    with trace() as shapes:
        DotProductAttention()(x, x.clone(), x.clone())
    return opened(shapes, nested=True)


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


# --- What lies inside a call --------------------------------------------------------------------


def language_model() -> Shapes:
    """The trace of chapter 11."""
    model = LanguageModel(35, 8, 4, 16, 2, num_kv_heads=2)
    with trace(depth=2) as shapes, torch.no_grad():
        model(torch.zeros(1, 6, dtype=torch.int64))
    return shapes


def card_of(root: Locator, step: str) -> Locator:
    return root.locator(".af-step:not([hidden])").filter(
        has=root.page.get_by_role("button", name=re.compile(f"^{re.escape(step)} "))
    )


def test_the_layers_are_counted_where_they_are_made_of_embedded(opened: Opener) -> None:
    root = opened(language_model())
    layers, norm = card_of(root, "2"), card_of(root, "3")
    assert layers.locator(".af-step-name").inner_text() == "2 transformed"
    assert "more inside, 8,064 multiply-adds" in layers.locator(".af-cost").inner_text()
    assert norm.locator(".af-cost").inner_text() == "48 numbers, 192 bytes"
    froms = [card_of(root, step).locator(".af-from").inner_text() for step in "1234"]
    assert froms == ["", "from 1", "from 2", "from 3"]
    assert "Inside transformed: " in root.locator(".af-now").inner_text()


def test_a_tensor_that_two_layers_have_is_named_as_the_one_of_its_layer(opened: Opener) -> None:
    root = opened(language_model(), nested=True)
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


def test_a_language_model_is_offered_the_heads_that_it_takes(opened: Opener) -> None:
    root = opened(language_model())
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


def test_heads_of_an_odd_size_are_refused_as_the_package_does(opened: Opener) -> None:
    root = opened(language_model())
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


def test_a_card_says_that_the_largest_tensor_is_inside_and_draws_it_to_scale(page: Page) -> None:
    root = walk_on(page)
    assert root.locator(".af-largest").count() == 0
    badges = root.locator(".af-badge:visible")
    assert badges.all_inner_texts() == ["2.16 kB inside"]
    card = root.locator(".af-step:has(.af-badge:not(:empty))")
    assert card.locator(".af-step-name").inner_text() == "10 head_outputs"
    sides = (
        """(path) => path.getAttribute("d").match(/h([\\d.]+)v-([\\d.]+)/).slice(1).map(Number)"""
    )
    width, _ = card_of(root, "1").locator(".af-front").evaluate(sides)
    unit = width / 12  # queries: (2, 5, 12); scores: (2, 3, 5, 7)
    within = root.locator(".af-within[d]")
    assert within.count() == 1
    assert within.evaluate(sides) == pytest.approx([7 * unit, 5 * unit])
    assert "dashed outline" in root.locator(".af-scale").inner_text()
    root.get_by_label("show the steps of the calls within").check()
    assert within.count() == 0
    assert "dashed outline" not in root.locator(".af-scale").inner_text()
    assert set(root.locator(".af-badge:visible").all_inner_texts()) == {"largest"}


def test_together_counts_what_is_inside_the_calls(opened: Opener) -> None:
    with trace() as shapes:
        SelfAttentionBlock(12, 3)(torch.zeros(2, 5, 12))
    root = opened(shapes)
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


def test_whole_factors_are_exact_and_long_ones_in_words(opened: Opener) -> None:
    with trace() as shapes:
        SelfAttentionBlock(12, 3)(torch.zeros(1, 1, 12))
    root = opened(shapes)
    now = root.locator(".af-now")
    slider(root, "batch").press("End")
    assert now.inner_text().startswith("batch 1 → 65,536 (×65,536): ")
    assert "together ×65,536, to " in now.inner_text()
    assert "multiply-adds ×65,536." in now.inner_text()
    root.get_by_role("button", name="Reset").click()
    slider(root, "length").press("End")
    assert re.search(r"multiply-adds ×[\d.]+ million\.", now.inner_text())


def test_a_step_that_is_pointed_at_lights_what_it_is_made_of(page: Page) -> None:
    root = walk_on(page)
    names = root.locator(".af-step:not([hidden]) .af-step-name")
    names.filter(has_text="head_outputs").hover()

    def with_role(role: str) -> list[str]:
        return root.locator(f'[data-role="{role}"] .af-step-name').all_inner_texts()

    assert with_role("input") == ["7 head_queries", "8 head_keys", "9 head_values"]
    assert with_role("output") == ["11 merged"]
    assert root.locator('[data-role="input"] .af-role').all_inner_texts() == ["goes in"] * 3
    assert names.filter(has_text="head_outputs").get_attribute("aria-label") == (
        "10 head_outputs: Made of head_queries, head_keys, head_values. Goes into merged."
    )
    page.mouse.move(0, 0)
    names.filter(has_text="2 keys").focus()
    assert with_role("same") == ["3 values"]
    assert with_role("output") == ["5 projected_keys"]  # though values are the same tensor
    root.get_by_role("button", name="Reset").focus()
    root.locator(".af-caption").hover()
    assert root.locator("[data-role]").count() == 0


def test_each_step_is_made_of_what_its_line_of_code_names(page: Page) -> None:
    root = explorer_on(page)
    root.locator("select[name=shown]").select_option("a step with a cache")

    def made_of(step: str) -> str:
        card = root.locator(".af-step:not([hidden])").filter(
            has=page.get_by_role("button", name=re.compile(f"^{re.escape(step)} "))
        )
        return card.locator(".af-from").inner_text()

    # Queries, keys and values are one tensor, but each goes into one projection alone.
    assert [made_of(step) for step in ("1", "4", "5", "6")] == ["", "from 1", "from 2", "from 3"]
    root.get_by_label("show the steps of the calls within").check()
    assert made_of("7.1") == "from 4"  # what the call within was given
    assert made_of("14.4") == "from 14.4.3, 14.4.4"
    assert made_of("14.6") == "from 14.3, 14.5"


def test_cards_of_a_row_are_alike_and_a_phone_has_two_in_a_row(page: Page) -> None:
    tops = """(root, part) => Object.values(Object.groupBy(
        [...root.querySelectorAll(".af-step:not([hidden])")],
        (card) => card.getBoundingClientRect().top))
      .map((row) => row.map((card) => card.querySelector(part).getBoundingClientRect().top
        - root.getBoundingClientRect().top))"""
    root = walk_on(page)
    for width, least in ((1000, 3), (390, 2)):
        page.set_viewport_size({"width": width, "height": 844})
        for part in (".af-step-name", ".af-block", ".af-bytes"):
            rows = root.evaluate(tops, part)
            assert len(rows[0]) >= least
            for row in rows:
                assert max(row) - min(row) < 1, part
    rows = root.evaluate(tops, ".af-block")
    name = root.locator(".af-step-name").filter(has_text="10 head_outputs")
    name.hover()
    assert root.locator('[data-role="input"]').count() == 3
    assert root.evaluate(tops, ".af-block") == rows  # what is said of the flow moves nothing
    name.click()
    assert name.get_attribute("aria-expanded") == "true"


def test_a_phone_sees_two_sliders_and_the_cards_and_reaches_the_rest(
    browser: Browser, address: str
) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844}, reduced_motion="reduce")
    page.goto(address)
    root = walk_on(page)
    root.locator(".af-walk").wait_for()

    def sliders() -> list[str | None]:
        seen = root.locator(".af-slider:visible [data-size]").all()
        return [label.get_attribute("data-size") for label in seen]

    def form() -> float:
        return root.evaluate(
            """(root) => root.querySelector(".af-step").getBoundingClientRect().top
              - root.querySelector(".af-form").getBoundingClientRect().top"""
        )

    assert sliders() == ["queries", "keys"]
    assert form() < 350
    goal = root.locator(".af-challenge")
    slider(root, "queries").press("End")
    assert goal.inner_text().startswith("Challenge met: ")
    assert not root.locator("select[name=broken]").is_visible()
    root.get_by_text("More sizes").click()
    assert len(sliders()) == 5
    root.get_by_label("show the steps of the calls within").check()
    root.locator("select[name=dtype]").select_option("bfloat16")
    root.get_by_label("d_k = d_model / heads").uncheck()
    slider(root, "d_k").press("End")
    page.set_viewport_size({"width": 1000, "height": 844})  # all are in their places again
    expect(root.get_by_text("More sizes")).to_have_count(0)
    wide = ["batch", "queries", "keys", "heads", "d_k", "d_model"]
    assert sliders() == wide
    explorer = explorer_on(page)
    page.set_viewport_size({"width": 390, "height": 844})
    explorer.get_by_text("More sizes").wait_for()
    explorer.locator("select[name=shown]").focus()
    explorer.locator("select[name=shown]").select_option("self-attention block")
    assert page.locator(":focus").get_attribute("name") == "shown"
    explorer.locator("select[name=preset]").select_option("BERT-base")
    assert explorer.locator(".af-slider:visible").count() == 2
    page.close()


def test_a_link_to_what_is_broken_opens_the_folded_controls(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(f"{address}#figure=walk&broken={quote(json.dumps('values.keys'))}")
    root = explorer_on(page)
    root.locator(".af-refusal").get_by_text("ShapeError").wait_for()
    assert root.locator("select[name=broken]").input_value() == "values.keys"
    assert root.locator("select[name=broken]").is_visible()
    assert root.locator(".af-slider:has(.af-own)").is_visible()
    page.close()


def test_a_theme_moves_no_title_within_its_row(page: Page) -> None:
    page.add_style_tag(
        content="ol li > p:first-child { margin: 0.25rem 0; } "
        "main ol li:first-child > p:first-child { margin-top: 0; }"
    )
    root = walk_on(page)
    tops = root.locator(".af-step:visible").evaluate_all(
        """(cards) => cards.map((card) => card.querySelector(".af-step-name")
          .getBoundingClientRect().top - card.getBoundingClientRect().top)"""
    )
    assert len(tops) == 12
    assert root.locator(".af-badge:visible").count() == 1
    assert max(tops) - min(tops) < 0.1


def test_blocks_glide_to_their_new_size_unless_motion_is_unwelcome(page: Page) -> None:
    front = walk_on(page).locator(".af-front").first
    slider(walk_on(page), "queries").press("ArrowRight")
    seconds = "node => getComputedStyle(node).transitionDuration"
    assert front.evaluate(seconds) == "0.25s"
    page.emulate_media(reduced_motion="reduce")
    assert front.evaluate(seconds) == "0s"


def test_a_transformer_opens_with_the_steps_within(page: Page) -> None:
    root = explorer_on(page)
    within = root.get_by_label("show the steps of the calls within")
    root.locator("select[name=shown]").select_option("Transformer")
    assert within.is_checked()
    assert root.locator(".af-step:not([hidden])").count() == 15
    root.locator("select[name=shown]").select_option("additive attention")
    assert not within.is_checked()


def test_every_preset_sets_a_challenge_that_one_slider_meets(
    page: Page, explorer: ShapeExplorer
) -> None:
    root = explorer_on(page)
    meet = """(root) => {
      const goal = root.querySelector(".af-challenge");
      const opened = goal.textContent;
      for (const label of root.querySelectorAll(".af-control:not([hidden]) [data-size]")) {
        const input = label.closest(".af-slider").querySelector("input");
        const back = input.value;
        for (let at = 0; at <= Number(input.max); at++) {
          input.value = at;
          input.dispatchEvent(new Event("input", { bubbles: true }));
          if (goal.textContent.startsWith("Challenge met: ")) return [opened, goal.textContent];
        }
        input.value = back;
        input.dispatchEvent(new Event("input", { bubbles: true }));
      }
      return [opened, goal.textContent];
    }"""
    for model in explorer.data["models"]:
        for name in model["sizes"]:
            for nested in (False, True):
                root.locator("select[name=shown]").select_option(name)
                root.locator("select[name=preset]").select_option(model["name"])
                within = root.get_by_label("show the steps of the calls within")
                if within.is_visible():
                    within.set_checked(nested)
                opened, met = root.evaluate(meet)
                task = opened.partition(": ")[2]
                assert (opened, met) == (f"Challenge: {task}", f"Challenge met: {task}")
                root.get_by_role("button", name="Reset").click()


def test_a_move_says_what_grows_and_a_link_can_be_undone(page: Page) -> None:
    root = walk_on(page)
    heads = slider(root, "heads")
    heads.press("Home")
    assert "heads 3 → 1 (÷3)" in root.locator(".af-now").inner_text()
    assert "shown here changes, but inside the calls" in root.locator(".af-now").inner_text()
    assert "÷3 (scores" in root.locator(".af-now").inner_text()
    root.get_by_label("show the steps of the calls within").check()
    heads.press("ArrowRight")
    assert ": 5 steps ×2 (scores, returns, weights);" in root.locator(".af-now").inner_text()
    root.get_by_role("button", name="Reset").click()
    root.get_by_label("d_k = d_model / heads").uncheck()
    heads.press("Home")
    assert "projected_queries" in root.locator(".af-now").inner_text()
    assert slider(root, "d_k").is_visible()


def test_together_counts_the_steps_in_sight_before_and_after(page: Page) -> None:
    root = explorer_on(page)
    slider(root, "batch").press("ArrowRight")
    assert "batch 2 → 3 (×1.5)" in root.locator(".af-now").inner_text()
    assert "together ×1.5, to " in root.locator(".af-now").inner_text()


def test_the_keyboard_walks_the_steps_and_opens_their_code(page: Page) -> None:
    root = walk_on(page)
    names = root.locator(".af-step:not([hidden]) .af-step-name")
    names.first.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    focused = page.locator(":focus")
    assert focused.inner_text() == "4 projected_queries"
    page.keyboard.press("Enter")
    assert focused.get_attribute("aria-expanded") == "true"
    detail = root.locator(".af-detail")
    assert "projected_queries = self.W_q(queries)" in detail.inner_text()
    assert "heads*d_k = 3 × 4 = 12" in detail.inner_text()
    page.keyboard.press("End")
    assert focused.inner_text() == "12 output"
    page.keyboard.press("Home")
    page.keyboard.press("Escape")
    assert detail.count() == 0


def test_a_size_lights_up_everywhere(page: Page) -> None:
    root = walk_on(page)
    slider(root, "queries").focus()
    cards = root.locator(".af-step:has(.af-axis.af-lit) .af-step-name").all_inner_texts()
    assert cards == ["1 queries", "4 projected_queries", "7 head_queries", *cards[3:]]
    assert not any(name.endswith(("keys", "values")) for name in cards)


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
    page: Page, address: str, fields: dict[str, Any], sentence: str
) -> None:
    query = "&".join(f"{name}={quote(json.dumps(field))}" for name, field in fields.items())
    page.goto(f"{address}#figure=walk&{query}")
    note = explorer_on(page).locator(".af-note")
    note.get_by_text(sentence).wait_for()
    assert explorer_on(page).locator(".af-step:not([hidden])").count() == 12


def test_an_address_opens_the_state_that_was_copied(page: Page, address: str) -> None:
    root = explorer_on(page)
    root.locator("select[name=shown]").select_option("grouped-query attention")
    root.locator("select[name=preset]").select_option("Llama 3 8B")
    root.locator(".af-slider:has(.af-written) input").press("End")
    assert "= 2.15 GB" in root.locator(".af-cache").inner_text()
    root.locator("select[name=dtype]").select_option("bfloat16")
    assert "= 1.07 GB" in root.locator(".af-cache").inner_text()
    root.locator("select[name=broken]").select_option("num_kv_heads")
    before = root.locator(".af-refusal").inner_text()
    assert before.startswith("ShapeError: MultiHeadAttention: num_heads = 32 is not a multiple")
    root.get_by_role("button", name="Copy link").click()
    page.wait_for_url("**#figure=walk&*")
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    root.locator(".af-refusal").get_by_text(before).wait_for()
    assert "= 1.07 GB" in root.locator(".af-cache").inner_text()


def test_a_phone_and_paper(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 360, "height": 740})
    page.goto(address)
    page.locator(".af-walk").nth(1).wait_for()
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
    page.close()


def test_without_scripts_there_is_the_still_picture(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    markup = BeautifulSoup(page.content(), "html.parser")
    assert "12 steps of multi-head attention as blocks" in str(markup.img["alt"])
    box = page.locator("figure img").first.bounding_box()
    assert box
    assert box["width"] > 300
    context.close()


def test_every_walk_of_the_book_opens_at_the_sizes_of_its_trace(
    browser: Browser, address: str, tmp_path: Path
) -> None:
    """Each stored walk is one of this version, moves, and says nothing of an error."""
    figures = {}
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
            for output in cell.get("outputs", []):
                html = "".join(output.get("data", {}).get("text/html", ""))
                if '<attention-figure kind="walk"' in html:
                    figures.setdefault(notebook.stem, html)
    chapters = {path.stem for path in (ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")}
    assert chapters - figures.keys() == set()
    (tmp_path / "figures.js").write_text(bundle(), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1000, "height": 900})
    for stem, html in figures.items():
        file = tmp_path / f"{stem}.html"
        script = '<meta charset="utf-8"><script defer src="figures.js"></script>'
        file.write_text(f"<!doctype html>{script}{html}", encoding="utf-8")
        page.goto(file.as_uri())
        root = page.locator("attention-figure")
        root.locator(".af-walk").wait_for()
        state = json.loads(root.locator("script").text_content() or "")
        walk = walk_named(state["data"], state["shown"])
        text = json.dumps(state, separators=(",", ":"), ensure_ascii=False).encode()
        assert len(text) <= 50 * 1024 or stem == "shape_explorer"
        assert len(gzip.compress(text)) <= 16 * 1024
        linked = {link["name"]: link["to"] for link in walk["links"]}
        outer = [step for step in walk["steps"] if "." not in step["number"]]
        for stop in root.evaluate(SWEEP, [(0.3, 0.7), (0.9, 0.4), (0.6, 0.2)]):
            sizes = {**start_of(walk), **stop["sizes"]}
            sizes |= {dim: value(to, sizes) for dim, to in linked.items()}
            shapes = [",".join(str(value(axis, sizes)) for axis in step["axes"]) for step in outer]
            assert stop["shapes"] == shapes, stem
        if root.get_by_label("show the steps of the calls within").is_visible():
            root.get_by_label("show the steps of the calls within").set_checked(state["nested"])
        root.get_by_role("button", name="Reset").click()
        follows_its_challenge(walk, root.evaluate(SWEEP, []), state["nested"])
    page.close()
