"""Moving every declared control of a figure on a page, and comparing what is seen with Python."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import computed
from playwright.sync_api import Locator

from attention_book.figures.base import Control, Figure

Moves = list[list[Any]]

#: Weights of the figures that round theirs are right to fewer digits.
BOUNDS = {"heads": 5.1e-4, "lens": 4e-3, "story": 5.1e-4}
#: Values that no control of the page shows under their name, but a link may ask for.
LINKED = {
    **{"block": {"draw"}, "kv_cache": {"word"}, "regression": {"point"}},
    "small story": {"top_p"},
}
#: A long text takes the page long, so other controls move while a short one is written.
SHORT = {"language_model": {"written": 4}}
#: On a page these end where the text does.
ENDS_EARLIER = {("live", "written"), ("language_model", "written")}

# What a reader does and sees, run in the page: `moves` is a list of lists of moves, and the answer
# says what can be read after each. A number's text is checked against its value on the spot.
SWEEP = """(root, moves) => {
  const named = (name) => [...root.querySelectorAll(`[name="${name}"]`)];
  const tell = (node, type) => node.dispatchEvent(new Event(type, { bubbles: true }));
  const slide = (input, place) => {
    input.value = place;
    tell(input, "input");
  };
  const ways = {
    set: (name, place, value) => {
      const [first, ...more] = named(name);
      if (!first) throw new Error(`no control of the page is named ${name}`);
      const places = [place].flat();
      const moved = (input, i) => input.value !== String(places[i]) && slide(input, places[i]);
      if (first.type === "range") named(name).forEach(moved);
      else if (first.type === "checkbox") first.checked !== value && first.click();
      else if (first.tagName === "SELECT") {
        if (first.value === value) return;
        first.value = value;
        tell(first, "change");
      } else {
        const found = [first, ...more].find((node) => node.value === String(value));
        if (!found) throw new Error(`${name} cannot be ${value}`);
        if (!found.checked) found.click();
      }
    },
    slide: (label, place) => {
      const all = [...root.querySelectorAll(".af-slider")];
      const node = all.find((one) => !one.hidden && one.firstChild.textContent === label);
      slide(node.querySelector("input"), place);
    },
    carry: (token, place) => {
      const card = root.querySelectorAll(".af-card")[token];
      const key = (key) => card.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
      const by = place - card.getAttribute("data-at").split(",")[1];
      for (const each of ["Enter", ...Array(Math.abs(by)).fill(by < 0 ? "ArrowLeft" : "ArrowRight"),
        "Enter"]) key(each);
    },
    toggle: (label) => root.querySelector(`[aria-label="${label}"]`).click(),
    click: (key) => {
      const event = new MouseEvent("click", { bubbles: true });
      root.querySelector(`[data-key="${key}"]`).dispatchEvent(event);
    },
  };
  const numberOf = (node) => {
    const value = node.getAttribute("data-value");
    const text = node.textContent.replace("−", "-");
    if (/^-?[0-9]+[.][0-9]+$/.test(text)) {
      const half = 0.5 * 10 ** -text.split(".")[1].length + 1e-9;
      if (!(Math.abs(text - value) <= half)) throw new Error(`${text} for ${value}`);
    }
    if (!node.getAttribute("aria-label")) throw new Error(node.outerHTML);
    return [node.getAttribute("data-key"), value];
  };
  const read = () => ({
    numbers: Object.fromEntries([...root.querySelectorAll("[data-key]")]
      .filter((node) => !node.closest("[hidden]")).map(numberOf)),
    sentence: root.querySelector(".af-now").textContent,
    sliders: [...root.querySelectorAll("input[type=range][name]")].map((input) =>
      [input.name, Number(input.value), Number(input.max), input.getAttribute("aria-valuetext"),
        input.previousElementSibling.textContent]),
  });
  return moves.map((list) => {
    for (const [way, ...about] of list) ways[way](...about);
    return read();
  });
}"""


def controls_of(figure: Figure) -> dict[str, Control]:
    """The controls with stops, in the order in which a link puts them in place."""
    return {
        name: trait
        for name in figure.controls()
        if isinstance(trait := figure.traits()[name], Control)
    }


def settings(figure: Any, name: str) -> Iterator[None]:
    """Put in place, one after another, whatever other controls the stops of this one depend on."""
    stops = controls_of(figure)[name].stops
    sizes = {*getattr(stops, "of", ()), *getattr(stops, "per", ())}
    others = [each for each in controls_of(figure) if each in sizes]
    for values in product(*(figure.stops(each) for each in others)):
        for each, value in zip(others, values, strict=True):
            setattr(figure, each, value)
        yield


def put(figure: Any, name: str, turn: int) -> list[Any]:
    """Set a control of the figure to a stop; returns the move that does the same on the page."""
    stops, pair = figure.stops(name), controls_of(figure)[name].is_pair
    places = [turn % len(stops), 7 * turn % len(stops)]
    setattr(figure, name, [stops[i] for i in places] if pair else stops[places[0]])
    return placed(figure, name)


def placed(figure: Any, name: str) -> list[Any]:
    """The move to where a control of the figure stands; a control of the page may be there."""
    stops, value = figure.stops(name), getattr(figure, name)
    pair = controls_of(figure)[name].is_pair
    return ["set", name, [*map(stops.index, value)] if pair else stops.index(value), value]


def course(kind: str, figure: Any) -> Iterator[Moves]:
    """Each control at each of its stops, and one of the others moved with it, in turn. The figure
    is in the state that the moves lead to."""
    # Each set would write the alternative anew, but what it says is asked for once a step.
    figure.unobserve(figure._update_alt, list(figure.opening))
    turn = 0
    hidden = LINKED.get(f"small {kind}" if figure.data.get("small") else kind, ())
    shown = [name for name in controls_of(figure) if name not in hidden]
    shown.sort(key=lambda name: (kind, name) in ENDS_EARLIER)  # where the text ends is known last
    for name in shown:
        others = [each for each in shown if each not in {name, *_sizes(figure, name)}]
        free = [each for each in others if each not in SHORT.get(kind, ())]
        for _ in settings(figure, name):
            for i in range(len(figure.stops(name))):
                turn += 1
                lap, which = divmod(turn, max(len(free), 1))
                places = {each: lap + 3 * n for n, each in enumerate(others)}
                places |= SHORT.get(kind, {}) | {name: i}
                moved = {name, *free[which : which + 1]} if i else {name, *others}
                yield [
                    put(figure, each, places[each]) if each in moved else placed(figure, each)
                    for each in shown
                ]


def _sizes(figure: Figure, name: str) -> set[str]:
    stops = controls_of(figure)[name].stops
    return {*getattr(stops, "of", ()), *getattr(stops, "per", ())}


def ends_alike(description: str, sentence: str) -> bool:
    """Whether the one ends in the other, where a last digit may be rounded the other way."""
    number = r"−?\d+(?:\.\d+)?"
    words, end = (re.sub(number, "#", text) for text in (description, sentence))
    shown = re.findall(number, sentence)
    said = re.findall(number, description)[-len(shown) :] if shown else []

    def is_near(one: str, other: str) -> bool:
        decimals = [len(text.partition(".")[2]) for text in (one, other)]
        a, b = (float(text.replace("−", "-")) for text in (one, other))
        bound = 1.001 * 10.0 ** -decimals[0] if decimals[0] else 0
        return decimals[0] == decimals[1] and abs(a - b) <= bound

    return bool(end) and words.endswith(end) and all(map(is_near, said, shown))


def check_sliders(kind: str, figure: Figure, sliders: list[list[Any]]) -> None:
    """Whether each slider has the stops that are declared, and stands where the value is."""
    traits, seen = controls_of(figure), dict.fromkeys(controls_of(figure), 0)
    for name, place, last, spoken, label in sliders:
        stops, value = figure.stops(name), getattr(figure, name)
        if traits[name].is_pair:
            value = value[seen[name]]
        seen[name] += 1
        assert label == traits[name].label.format(seen[name]), name
        assert spoken, name
        expected = stops.index(value)
        if (kind, name) in ENDS_EARLIER:
            assert last < len(stops), name
            expected = min(expected, last)
        else:
            assert last == len(stops) - 1, f"{name}: the page has other stops than {stops}"
        assert place == expected, name


def check_numbers(
    kind: str, expected: computed.Readings, found: dict[str, Any], about: Any
) -> None:
    """Whether the page has each number that the package computes."""
    bound = BOUNDS.get(kind, 1e-6)
    wrong = {
        key: (found.get(key), value)
        for key, value in expected.items()
        if not abs(float(found.get(key) or "nan") - value) <= bound
    }
    assert not wrong, f"{about}: shown, expected: {wrong}"


def follow(kind: str, figure: Any, steps: Iterable[Moves], shown: Locator) -> None:
    """Make the moves of `steps` on the page, which leave the figure in the state they lead to, and
    compare numbers, sentence and sliders after each."""
    moves, expected, states = [], [], []
    for step in steps:
        moves.append(json.loads(json.dumps(step)))
        expected.append((getattr(computed, kind)(figure), figure.describe()))
        states.append(json.dumps(figure.state()))
    seen = shown.evaluate(SWEEP, moves)
    for step, (numbers, description), state, found in zip(
        moves, expected, states, seen, strict=True
    ):
        check_numbers(kind, numbers, found["numbers"], step)
        assert ends_alike(description, found["sentence"]), (step, description, found["sentence"])
        for name in figure.controls():
            setattr(figure, name, json.loads(state)[name])
        check_sliders(kind, figure, found["sliders"])
