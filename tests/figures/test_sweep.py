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
from itertools import chain, permutations, product
from typing import Any
from urllib.parse import parse_qsl, quote

import computed
import pytest
from playwright.sync_api import expect
from stage import FIGURES, Stage, readings, visit
from sweep import (
    LINKED,
    SWEEP,
    Moves,
    check_numbers,
    controls_of,
    course,
    ends_alike,
    follow,
    put,
)
from traitlets import TraitError

from attention_book.figures.base import Entries

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


def heads_off(figure: Any) -> Iterator[Moves]:
    """One head after the other is switched off, and on again."""
    layers, heads = range(figure.data["layers"]), range(figure.data["heads"])
    every: dict[str, Any] = {f"layer {n}, head {head}": [n, head] for n in layers for head in heads}
    if figure.kind == "live":
        every = {f"{name}, head {head}": [use, 0, head] for name, use in USES for head in heads}
    yield [put(figure, "written", 3)]  # which every text is long enough for
    for label, head in every.items():
        figure.off = [*figure.off, head]
        yield [["toggle", label]]
    for label, head in every.items():
        figure.off = [other for other in figure.off if other != head]
        yield [["toggle", label]]


def words(figure: Any) -> Iterator[Moves]:
    """The keys of each word, at every step and in every setting."""
    names = ("kv_heads", "window", "causal", "cache", "step")
    for values in product(*map(figure.stops, names)):
        for name, value in zip(names, values, strict=True):
            setattr(figure, name, value)
        moves = [
            put(figure, name, figure.stops(name).index(getattr(figure, name))) for name in names
        ]
        for word in figure.stops("word"):
            figure.word = word
            yield [*moves, ["click", f"now word {word - 1}"]]
            moves = []


ALSO = {
    "kv_cache": words,
    **{"masking": lengths, "regression": points, "block": orders},
    **{"live": heads_off, "language_model": heads_off},
}
#: The uses of attention as the switches of the live figure name them.
USES = [
    ("Encoder self-attention", "encoder"),
    ("Decoder self-attention", "decoder"),
    ("Cross-attention", "cross"),
]
#: What is typed or switched, where a link is to bring it back.
TYPED = {
    "masking": {"scores": [[[9.5, 2, 3, 4], [1, 2, 3, 4]]] * 2},
    "matmul": {"Q": [[[1.25, 2, 3, 4]] * 3] * 2},
    "block": {"order": [2, 0, 1, 4, 3]},
    "live": {"word": "regal", "off": [["cross", 0, 1]]},
    "language_model": {"prompt": "bring ana", "off": [[1, 2]]},
}


# --- The sweep ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", computed.KINDS)
def test_every_control_at_every_stop_shows_what_the_package_computes(
    kind: str, stage: Stage
) -> None:
    figure = FIGURES[kind]()
    page = stage.show(figure, reduced_motion="reduce")
    steps = chain(course(kind, figure), ALSO.get(kind, lambda _: ())(figure))
    follow(kind, figure, steps, page.locator("attention-figure"))


def address(kind: str, values: dict[str, Any]) -> str:
    fields = "".join(f"&{name}={quote(json.dumps(value))}" for name, value in values.items())
    return f"#figure={kind}{fields}"


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


@pytest.mark.parametrize("kind", computed.KINDS)
def test_a_copied_link_brings_every_value_back_also_after_a_reload(kind: str, stage: Stage) -> None:
    figure: Any = FIGURES[kind]()
    page = stage.show(figure, permissions=["clipboard-read", "clipboard-write"])
    for name, value in TYPED.get(kind, {}).items():
        setattr(figure, name, value)
    for name in controls_of(figure):
        put(figure, name, len(figure.stops(name)) - 1)
        for turn in range(len(figure.stops(name)) if name in LINKED.get(kind, ()) else 1):
            if turn:
                put(figure, name, turn - 1)
            values = {each: getattr(figure, each) for each in figure.controls()}
            visit(page, address(kind, values))
            numbers = page.locator("attention-figure").evaluate(SWEEP, [[]])[0]["numbers"]
            check_numbers(kind, getattr(computed, kind)(figure), numbers, values)
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
