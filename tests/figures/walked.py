"""What the tests of the shape walk share: its sizes swept on a page, and what it then must show."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from playwright.sync_api import Locator
from stage import Stage

from attention_book.shapes import Shapes
from attention_book.walk import ShapeWalk
from attention_book.walk.relations import value
from attention_book.walk.steps import misfit, start_of

PHONE = {"width": 390, "height": 844}
#: Pixels that the header of a page may cover.
HEADER = 56


# Moves every size to each of its stops, and then a number of sizes drawn by `picks` to stops drawn
# by them; answers the sizes and what stands in the rows after each move.
SWEEP = """(root, picks) => {
  const seen = [];
  const rows = () => [...root.querySelectorAll(".af-step:not([hidden])")];
  const input = root.querySelector(".af-slider input");
  const chips = () => [...root.querySelectorAll("[data-size]:not([hidden])")];
  const shownSizes = () => Object.fromEntries(chips().map((chip) =>
    [chip.dataset.size, Number(chip.lastChild.textContent.replaceAll(",", ""))]));
  const move = (value) => {
    input.value = value;
    input.dispatchEvent(new Event("input", { bubbles: true }));
    seen.push({
      sizes: { ...JSON.parse(root.querySelector(".af-steps").dataset.sizes), ...shownSizes() },
      shapes: rows().map((row) => row.dataset.shape),
      shown: rows().map((row) => row.querySelector(".af-shape").textContent),
      work: rows().map((row) => Number(row.dataset.work)),
      goal: root.querySelector(".af-challenge").textContent,
    });
  };
  for (const chip of chips()) {
    chip.click();
    if (input.closest("[hidden]")) continue; // another size has left it one stop
    const back = input.value;
    for (let at = 0; at <= Number(input.max); at++) move(at);
    move(back);
  }
  for (const [which, where] of picks) {
    chips()[Math.floor(which * chips().length)].click();
    move(Math.floor(where * (Number(input.max) + 1)));
  }
  return seen;
}"""


def within(root: Locator) -> Locator:
    """The switch of the steps within."""
    return root.get_by_label("show the steps of the calls within")


def opened(stage: Stage, shapes: Shapes, *, nested: bool = False) -> Locator:
    """The walk of a trace in a page of its own, without motion."""
    page = stage.show(ShapeWalk(shapes, nested=nested), reduced_motion="reduce")
    return page.locator("attention-figure")


def slider(root: Locator, size: str) -> Locator:
    """The slider, once it moves this size."""
    chip = root.locator(f'[data-size="{size}"]:not([hidden])')
    if chip.get_attribute("aria-pressed") != "true":
        chip.click()
    return root.locator(".af-slider input")


def break_it(root: Locator, name: str) -> None:
    """Break something, in the list of the size that it is about."""
    menu = root.locator("select[name=broken]")
    for chip in root.locator("[data-size]:not([hidden])").all():
        if menu.locator(f'option[value="{name}"]').count():
            break
        chip.click()
    menu.select_option(name)


def numbers_in(step: dict[str, Any], sizes: dict[str, int]) -> int:
    return math.prod(value(axis, sizes) for axis in step["axes"])


def bytes_of(steps: list[dict[str, Any]], sizes: dict[str, int]) -> int:
    """What steps hold in float32; those that share memory count once."""
    shared: dict[int, int] = {}
    for step in steps:
        size = numbers_in(step, sizes) * (step["bytes"] or 4)
        shared[step["memory"]] = max(size, shared.get(step["memory"], 0))
    return sum(shared.values())


def bars_of(walk: dict[str, Any], sizes: dict[str, int], nested: bool) -> dict[str, int]:
    """By row, the bytes that its bar shows: its own in float32, and those inside of its call."""
    bytes_in = {step["number"]: bytes_of([step], sizes) for step in walk["steps"]}
    seen = [step for step in walk["steps"] if nested or "." not in step["number"]]
    bars = {step["number"]: bytes_in[step["number"]] for step in seen}
    known: dict[int, int] = {}
    for step in [*seen, *(step for step in walk["steps"] if step not in seen)]:
        before, held = known.get(step["memory"], 0), bytes_in[step["number"]]
        known[step["memory"]] = max(before, held)
        if step not in seen:
            bars[step["number"].split(".")[0]] += max(0, held - before)
    return bars


def follows_its_challenge(
    walk: dict[str, Any], seen: list[dict[str, Any]], nested: bool, opened: dict[str, int]
) -> None:
    """Assert that a sweep met the challenge of a walk, and that no stop said so too early."""
    linked = {link["name"]: link["to"] for link in walk["links"]}
    first = bars_of(walk, opened, nested)
    top = max(first, key=lambda number: first[number])

    def outgrows(sizes: dict[str, int], alone: bool) -> bool:
        bars = bars_of(walk, sizes, nested)
        return max(bars.values()) > bars[top]

    def is_tenfold(sizes: dict[str, int], alone: bool) -> bool:
        return alone and bytes_of(walk["steps"], sizes) >= 10 * bytes_of(walk["steps"], opened)

    moved = []
    for stop in seen:
        sizes = {**opened, **{dim: size for dim, size in stop["sizes"].items() if dim in opened}}
        sizes |= {dim: value(to, sizes) for dim, to in linked.items()}
        changed = [dim for dim in opened if dim not in linked and sizes[dim] != opened[dim]]
        moved.append((sizes, len(changed) == 1))
    task = f"make another bar longer than that of row {top}"
    met = outgrows
    if not any(alone and outgrows(sizes, alone) for sizes, alone in moved):
        task = "make the memory tenfold with one slider"
        met = is_tenfold
    found = False
    for stop, (sizes, alone) in zip(seen, moved, strict=True):
        found = found or met(sizes, alone)
        assert stop["goal"] == f"{'Challenge met' if found else 'Challenge'}: {task}."
    assert found


def follows_its_trace(walk: dict[str, Any], seen: list[dict[str, Any]], nested: bool) -> None:
    """Assert that the rows of each stop have the shapes and the work that the trace gives."""
    steps = [step for step in walk["steps"] if nested or "." not in step["number"]]
    linked = {link["name"]: link["to"] for link in walk["links"]}
    for stop in seen:
        sizes = {**start_of(walk), **stop["sizes"]}
        sizes = {dim["name"]: sizes[dim["name"]] for dim in walk["dims"]}
        sizes |= {dim: value(to, sizes) for dim, to in linked.items()}
        assert misfit(walk, sizes) == ""
        shapes = [tuple(value(axis, sizes) for axis in step["axes"]) for step in steps]
        assert [tuple(map(int, text.split(","))) for text in stop["shapes"]] == shapes
        assert stop["shown"] == ["(" + ", ".join(map(str, shape)) + ")" for shape in shapes]
        if nested:
            products = [step["products"] for step in steps]
            work = [
                sum(math.prod(value(axis, sizes) for axis in product) for product in all_of)
                for all_of in products
            ]
            assert stop["work"] == pytest.approx(work, rel=1e-12)


def row_of(root: Locator, step: str) -> Locator:
    """The row of a step, by its number, or by its number and name."""
    return root.locator(".af-step:not([hidden])").filter(
        has=root.page.get_by_role("button", name=re.compile(f"^{re.escape(step)} "))
    )


def with_role(root: Locator, role: str) -> list[str]:
    """The steps that are what the chosen one is made of ("input"), or made of it ("output")."""
    return root.locator(f'[data-role="{role}"] .af-step-name').all_inner_texts()
