"""Every control of every figure at every stop, in Python and on a page made from the class.

What can be moved, and where to, is what the class declares. At each stop the page shows what the
package computes (`computed.py`), says the sentence of `describe()` and has its sliders where the
values of Python are. A link brings the state back, and one stop beyond is refused on both sides.
`python -m pytest tests/figures/test_sweep.py -k masking` needs some seconds and no book.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import permutations, product
from typing import Any
from urllib.parse import parse_qsl, quote

import computed
import pytest
from playwright.sync_api import Page, expect
from stage import FIGURES, Stage, readings
from traitlets import TraitError

from attention_book.figures.base import Control, Entries, Figure

Moves = list[list[Any]]

#: Weights of the figures that round theirs are right to fewer digits.
BOUNDS = {"heads": 5.1e-4}
#: Values that no control of the page shows under their name, but a link may ask for.
LINKED = {"block": {"draw"}, "regression": {"point"}}
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
      if (first.type === "range") named(name).forEach((input, i) => slide(input, places[i]));
      else if (first.type === "checkbox") first.checked !== value && first.click();
      else if (first.tagName === "SELECT") {
        first.value = value;
        tell(first, "change");
      } else {
        const found = [first, ...more].find((node) => node.value === String(value));
        if (!found) throw new Error(`${name} cannot be ${value}`);
        found.click();
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
    value = [stops[i] for i in places] if pair else stops[places[0]]
    setattr(figure, name, value)
    return ["set", name, places if pair else places[0], value]


def course(kind: str, figure: Any) -> Iterator[Moves]:
    """Each control at each of its stops, and the others at theirs in turn. The figure is in the
    state that the moves lead to."""
    turn = 0
    shown = [name for name in controls_of(figure) if name not in LINKED.get(kind, ())]
    shown.sort(key=lambda name: (kind, name) in ENDS_EARLIER)  # where the text ends is known last
    for name in shown:
        fixed = {each for each in shown if each in _sizes(figure, name)}
        for _ in settings(figure, name):
            for i in range(len(figure.stops(name))):
                turn += 1
                moves = []
                for n, each in enumerate(shown):
                    if each in fixed:
                        now = figure.stops(each).index(getattr(figure, each))
                        moves.append(put(figure, each, now))
                    elif each == name or each not in SHORT.get(kind, {}):
                        moves.append(put(figure, each, i if each == name else turn + 3 * n))
                    else:
                        moves.append(put(figure, each, SHORT[kind][each]))
                yield moves
    yield from ALSO.get(kind, lambda _: ())(figure)


def _sizes(figure: Figure, name: str) -> set[str]:
    stops = controls_of(figure)[name].stops
    return {*getattr(stops, "of", ()), *getattr(stops, "per", ())}


# --- What moves without stops of its own ----------------------------------------------------------


def lengths(figure: Any) -> Iterator[Moves]:
    """Valid lengths, one for each example and one for each query, under each way to fill."""
    turn = 0
    for fill in figure.stops("fill"):
        for lens in [*product(range(5), repeat=2)]:
            turn += 1
            figure.fill, figure.valid_lens = fill, [*lens]
            moves = [["set", "fill", 0, fill], put(figure, "compare", turn)]
            yield [*moves, *(["slide", f"example {b + 1}", n] for b, n in enumerate(lens))]
        for lens in product(range(5), repeat=2):
            figure.valid_lens = [[*lens], [lens[1], 4 - lens[0]]]
            if lens[0] == lens[1] == 2:
                figure.valid_lens = [2, 2]  # where the queries of each example agree
            yield [
                ["slide", f"example {b + 1}, query {q + 1}", n]
                for b, row in enumerate([lens, [lens[1], 4 - lens[0]]])
                for q, n in enumerate(row)
            ]


def points(figure: Any) -> Iterator[Moves]:
    """Points chosen and lifted; the third time, each is where it was given."""
    keys, given, heights = (figure.data[name] for name in ("keys", "given", "heights"))
    order = sorted(range(len(keys)), key=keys.__getitem__)
    for turn in range(3 * len(keys)):
        place, lap = turn % len(keys), turn // len(keys)
        k = order[place]
        own = sorted({*heights, given[k]})
        at = own.index(given[k]) if lap == 2 else (31 * turn + lap) % len(own)
        figure.point = place
        figure.values = [own[at] if i == k else old for i, old in enumerate(figure.values)]
        chosen = [["click", f"value {k}"], ["slide", f"value at key {keys[k]:.2f}", at]]
        yield [put(figure, "query", turn), put(figure, "width", turn), *chosen]
    assert figure.values == given


def orders(figure: Any) -> Iterator[Moves]:
    """Every order of the words, carried word by word, and the named ones."""
    for name in figure.data["orders"]:
        figure.order = name
        yield [["set", "order", 0, name], put(figure, "positions", len(name))]
    for turn, order in enumerate(permutations(range(5))):
        figure.order = order
        carried = [["carry", token, place] for place, token in enumerate(order)]
        yield [*carried, put(figure, "positions", turn), put(figure, "dropout", turn)]


ALSO = {"masking": lengths, "regression": points, "block": orders}


# --- The sweep ------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("kind", computed.KINDS)
def test_every_control_at_every_stop_shows_what_the_package_computes(
    kind: str, stage: Stage
) -> None:
    figure = FIGURES[kind]()
    page = stage.show(figure, reduced_motion="reduce")
    moves, expected, told = [], [], []
    for step in course(kind, figure):
        moves.append(json.loads(json.dumps(step)))
        expected.append((getattr(computed, kind)(figure), figure.describe()))
        told.append(json.dumps(figure.state()))
    seen = page.locator("attention-figure").evaluate(SWEEP, moves)
    assert stage.errors == []
    for step, (numbers, description), state, found in zip(moves, expected, told, seen, strict=True):
        wrong = {
            key: (found["numbers"].get(key), value)
            for key, value in numbers.items()
            if not abs(float(found["numbers"].get(key) or "nan") - value) <= BOUNDS.get(kind, 1e-6)
        }
        assert not wrong, f"{step}: shown, expected: {wrong}"
        assert ends_alike(description, found["sentence"]), (step, description, found["sentence"])
        for name in figure.controls():
            setattr(figure, name, json.loads(state)[name])
        check_sliders(kind, figure, found["sliders"])


def address(kind: str, values: dict[str, Any]) -> str:
    fields = "".join(f"&{name}={quote(json.dumps(value))}" for name, value in values.items())
    return f"#figure={kind}{fields}"


def visit(page: Page, at: str) -> None:
    """Follow a link on the page."""
    page.evaluate(
        """(at) => new Promise((done) => {
            const before = location.href;
            addEventListener("hashchange", done, { once: true });
            location.hash = at;
            if (location.href === before) done(); // the page is there
        })""",
        at,
    )


def beyond(stops: list[Any]) -> list[Any]:
    """What lies one stop further, and between two stops."""
    if any(isinstance(stop, str | bool) for stop in stops):
        return ["no such", 7]
    step = stops[-1] - stops[-2] if len(stops) > 1 else 1
    return [stops[-1] + step, stops[0] - 1, stops[0] + 0.01, "no such"]


@pytest.mark.parametrize("kind", computed.KINDS)
def test_a_link_takes_the_stops_and_no_others_and_python_too(kind: str, stage: Stage) -> None:
    figure = FIGURES[kind]()
    page = stage.show(figure, reduced_motion="reduce")
    opened, start = readings(page), figure.state()
    note = page.locator(".af-note")
    for name, trait in controls_of(figure).items():
        for wrong in beyond(figure.stops(name)):
            given = [wrong, figure.stops(name)[0]] if trait.is_pair else wrong
            with pytest.raises(TraitError, match=f"{type(figure).__name__}: {name} must be "):
                setattr(figure, name, given)
            assert figure.state() == start
            visit(page, address(kind, {name: given}))
            expect(note).to_have_text(re.compile(rf"^The address asks for {name} = .*\.$"))
            assert readings(page) == opened
    for name in figure.controls():
        if not isinstance(trait := figure.traits()[name], Entries):
            continue
        ends = figure.data[trait.within] if trait.within else [-1000.0, 1000.0]
        for number, is_legal in [(ends[0], True), (ends[-1] + 0.5, False)]:
            values = json.loads(json.dumps(start[name]))
            row = values
            while isinstance(row[0], list):
                row = row[0]
            row[0] = number
            visit(page, address(kind, {name: values}))
            if is_legal:
                setattr(figure, name, values)
                assert note.text_content() == ""
                found = page.locator("attention-figure").evaluate(SWEEP, [[]])[0]
                assert ends_alike(figure.describe(), found["sentence"])
                setattr(figure, name, start[name])
            else:
                with pytest.raises(TraitError, match=f"{name} must hold finite numbers from"):
                    setattr(figure, name, values)
                expect(note).to_have_text(re.compile(rf"^The address asks for {name} = .*\.$"))
    assert stage.errors == []


@pytest.mark.parametrize("kind", computed.KINDS)
def test_a_copied_link_brings_every_value_back_also_after_a_reload(kind: str, stage: Stage) -> None:
    figure: Any = FIGURES[kind]()
    page = stage.show(figure, permissions=["clipboard-read", "clipboard-write"])
    for name in controls_of(figure):
        put(figure, name, len(figure.stops(name)) - 1)
        for turn in range(len(figure.stops(name)) if name in LINKED.get(kind, ()) else 1):
            if turn:
                put(figure, name, turn - 1)
            values = {each: getattr(figure, each) for each in figure.controls()}
            visit(page, address(kind, values))
            numbers = page.locator("attention-figure").evaluate(SWEEP, [[]])[0]["numbers"]
            for key, value in getattr(computed, kind)(figure).items():
                assert abs(float(numbers[key]) - value) <= BOUNDS.get(kind, 1e-6), key
    moved = readings(page)
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator(".af-note")).to_have_text(re.compile("link|address"))
    (_, named), *fields = parse_qsl(page.url.partition("#")[2])
    assert named == kind
    assert {name: json.loads(text) for name, text in fields} == values
    page.reload()
    page.locator(".af-form").wait_for()
    assert readings(page) == moved
    assert page.locator(".af-note").text_content() == ""
