"""Rotation: positions as angles, given as indices, as a first place or as tables of cos and sin."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import torch
from torch import Tensor

from attention_book.examine import laws
from attention_book.examine.bench import Bench, numbers
from attention_book.examine.identification import Table, agree, right
from attention_book.examine.reading import Inputs, Reading, Sizes, in_words
from attention_book.examine.subject import Refused, Subject, as_tensor, parts_of
from attention_book.mistakes import reference as ref

#: What a parameter may take, by its name.
TAKES = {
    "size": r"^(d|dim|head_dim|size|d_model|rot(ary)?_(dim|size))$",
    "cos": r"cos",
    "sin": r"sin",
    "angles": r"freq|angle|rotary|rope|pos_emb|^emb|theta|cache",
    "start": r"offset|start",
    "positions": r"pos|^ids$|ind(ex|ices)|idx|^[tmp]$|steps",
    "length": r"len",
}
SHAPES = {"ld": (), "1ld": (0,), "11ld": (0, 0), "1l1d": (0, 2), "l1d": (1,)}


@dataclass(frozen=True)
class Turning(Reading):
    """A way to call a rotation.

    `slots` gives each parameter that is used what it takes; `laid` says how tables of angles are
    laid out ("halves", "neighbours", "once" for each pair, "complex", "stacked"), `axes` which axes
    they have.
    """

    slots: tuple[tuple[str, str], ...] = ()
    laid: str = "halves"
    axes: str = "ld"
    given: str = "nothing"  # nothing, places, places of each example, start

    def sizes_of(self, inputs: Mapping[str, Any]) -> Sizes:
        batch, heads, length, size = inputs["x"].shape
        return Sizes(batch, heads, length, length, size, size)

    def arguments(self, inputs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        x, places = inputs["x"], inputs["positions"]
        batch = max(1, len(x) // len(self.roles))
        args: list[Any] = [self.lay(part) for part in x.split(batch)]
        args += args[: len(self.roles) - len(args)]
        rates = inputs["base"] ** -(torch.arange(0, x.shape[-1], 2).double() / x.shape[-1])
        rows = torch.arange(32) if self.given != "nothing" else places.abs()
        angles = torch.outer(rows.double(), rates)
        if self.laid in {"halves", "neighbours"}:
            halves = self.laid == "halves"
            angles = torch.cat([angles] * 2, -1) if halves else angles.repeat_interleave(2, -1)
        table = {"cos": angles.cos(), "sin": angles.sin(), "angles": angles}
        if self.laid == "complex":
            table["angles"] = torch.polar(torch.ones_like(angles), angles)
        elif self.laid == "stacked":
            table["angles"] = torch.stack([angles.cos(), angles.sin()], -1)
        for axis in SHAPES[self.axes]:
            table = {name: one.unsqueeze(axis) for name, one in table.items()}
        index = places.abs()
        spread = index.expand(batch, -1) if self.given.endswith("example") else index
        values = {**table, "positions": spread, "start": int(index[0])}
        values |= {"size": x.shape[-1], "length": x.shape[-2]}
        return args, {name: values[what] for name, what in self.slots}

    def back(self, raw: Any, inputs: Mapping[str, Any]) -> Tensor:
        parts = [as_tensor(part) for part in parts_of(raw)]
        wanted = (max(1, len(inputs["x"]) // len(self.roles)), *inputs["x"].shape[1:])
        shape = self.lay(torch.empty(wanted)).shape
        fit = [part for part in parts if part.shape == shape][: len(self.roles)]
        if len(fit) < len(self.roles):
            seen = ", ".join(str(tuple(part.shape)) for part in parts)
            raise Refused(f"the result has shape {seen or None}, not {tuple(shape)}")
        return torch.cat([self._canonical(part, wanted) for part in fit])[: len(inputs["x"])]

    def __str__(self) -> str:
        said = f"{', '.join(name for _, name in self.roles)} as {in_words(self.layout)}"
        return said + "".join(f"; {name}: {what}" for name, what in self.slots)


class RotationExamination(Bench):
    """Vectors in, rotated by their positions."""

    kind = "rotation"
    roles = ()
    unread = Turning("", "", Sizes(), ())
    reading: Turning

    def __init__(self, subject: Subject, *asked: Any) -> None:
        super().__init__(subject, *asked)
        self.meant: dict[str, Any] = {}
        names = subject.names or ["x"]
        both = re.fullmatch(r"x?_?q(uer(y|ies))?_?\w? x?_?k(eys?)?_?\w?", " ".join(names[:2]))
        self.sequences = names[: 2 if both else 1]
        self.slots = {}
        for name in names[len(self.sequences) :]:
            fits = [what for what, pattern in TAKES.items() if re.search(pattern, name.lower())]
            number = isinstance(subject.defaults.get(name), int | float)
            given = {"start"} if number else {"cos", "sin", "angles", "positions", "start"}
            if name in subject.required or given & set(fits[:1]):
                self.slots[name] = fits[0] if fits else "positions"

    def run(self) -> None:
        best: tuple[int, Turning, list[str], dict[str, Any]] = (3, self.unread, [], {})
        for numpy, size in product((False, True), dict.fromkeys((8, *self.widths()))):
            for reading in self.readings(Sizes(2 * len(self.sequences), 3, 5, 5, size, size)):
                if best[1].given != "nothing" == reading.given:
                    continue
                reading = replace(reading, numpy=numpy)
                self.reading, self.meant = reading, {}
                rank, names, meant = self.explained(reading)
                if rank < best[0]:
                    best = rank, reading, names, meant
                if rank == 0:
                    break
            if best[0] < 3:
                break
        rank, self.reading, names, self.meant = best
        if rank == 3:
            raise self.subject.uncalled("rotation")
        self.subject.double = self.subject.came == torch.float64
        if self.meant.get("sign", 1) < 0:
            self.note("rotation-backwards", BACKWARDS)
        if self.meant.get("part", 1) > 1:
            self.note("rotation-of-a-part", PART)
        reading, inputs = self.reading, self.given()
        state = laws.draws(self.subject, lambda: reading.compute(self.subject, inputs))
        if state is not None:
            self.find(state, "property", how="unshown")
            return
        if rank == 1:
            self.base = {**self.meant.pop("variant", {})}[names[0]]
            self.find(names[0], "identified", names[1:])
        elif rank == 2:
            self.lawful()
        if rank < 2:
            self.effects()

    def readings(self, sizes: Sizes) -> Iterator[Turning]:
        layouts = [self.layout] if self.layout else ["bhld", "blhd", "lbhd", "bld", "lbd", "ld"]
        what = set(self.slots.values())
        tables = bool(what & {"cos", "sin", "angles"})
        lays = ["halves", "neighbours", "once"] if tables else ["halves"]
        if "angles" in what:
            lays = ["complex", "once", "halves", "neighbours", "stacked"]
        givens = ["nothing"]
        if "positions" in what:
            givens = ["places", "places of each example", "nothing"]
        elif "start" in what:
            givens = ["start", "nothing"]
        must = set(self.subject.required)
        shapes = SHAPES if tables else ["ld"]
        for given, layout, laid, axes in product(givens, layouts, lays, shapes):
            idle = {"positions", "start"} if given == "nothing" else set()
            slots = tuple((n, w) for n, w in self.slots.items() if n in must or w not in idle)
            if idle & {what for _, what in slots}:
                continue
            batch = len(self.sequences) if layout == "ld" else sizes.batch
            fits = replace(sizes, batch=batch, heads=sizes.heads if "h" in layout else 1)
            roles = tuple(("x", name) for name in self.sequences)
            more: Any = {"slots": slots, "laid": laid, "axes": axes, "given": given}
            yield Turning("rotation", layout, fits, roles, **more)

    def draw(self, sizes: Sizes, drawn: torch.Generator, whole: bool = False) -> Inputs:
        shape = (sizes.batch, sizes.heads, sizes.queries, sizes.size)
        x = numbers(shape, drawn, whole)
        given, places = self.reading.given, torch.arange(sizes.queries)
        if given == "start":
            places = places + 3
        elif given != "nothing":
            places = torch.tensor([3, 0, 7, 12, 5])[places % 5]
        inputs = {"x": x, "positions": places, "base": 10000.0, "pairing": "halves"}
        inputs |= {k: v for k, v in self.meant.items() if k in {"base", "pairing"}}
        sign = self.meant.get("sign", 1)
        return {**inputs, "positions": sign * (places + self.meant.get("first", 0))}

    def examples(self, how: laws.Change | str) -> Iterator[Inputs]:
        most = self.reading.sizes
        small = [(1, 1, 2, 4), (1, 1, 3, 4), (1, 2, 2, 4), (2, 2, 3, 4), (1, 1, 2, most.size)]
        for b, h, n, size in small:
            if h <= most.heads:
                b = b * len(self.sequences)
                yield self.given(0, True, Sizes(b, h, n, n, size, size))
        yield self.given()

    def bases(self) -> list[float]:
        """Bases of the frequencies that the subject may have."""
        kept = getattr(self.subject.thing, "__dict__", {})
        said = [*kept.values(), *self.subject.defaults.values()]
        code = self.subject.code
        said += [float(n.replace("_", "")) for n in re.findall(r"\b\d{3,}[_\d]*\b", code)]
        found = [float(v) for v in said if isinstance(v, int | float) and v >= 100]
        return list(dict.fromkeys([10000.0, *found]))[:12]

    def explained(self, reading: Turning) -> tuple[int, list[str], dict[str, Any]]:
        """How many mistakes explain the numbers, which, and what the angles are."""
        inputs = self.inputs(reading.sizes)
        got = reading.tried(self.subject, inputs)
        if got is None:
            return 3, [], {}
        tables = {"angles", "cos"} & {what for _, what in reading.slots}
        bases = [10000.0] if tables else self.bases()
        size = inputs["x"].shape[-1]
        for base, pairing, sign in product(bases, ("halves", "neighbours"), (1, -1)):
            for first, part in product((0, 1) if reading.given == "nothing" else (0,), (1, 2, 4)):
                meant = {"base": base, "pairing": pairing}
                x, places = inputs["x"], sign * (inputs["positions"] + first)
                turned = {**meant, "x": x[..., : size // part], "positions": places}
                wanted = right("rotation", turned)
                rest = x[..., size // part :]
                if wanted is not None and agree(got, torch.cat([wanted, rest], -1)):
                    return 0, [], {**meant, "sign": sign, "first": first, "part": part}
        for base, pairing in product(bases, ("halves", "neighbours")):
            meant = {"base": base, "pairing": pairing}
            found = Table("rotation", {**inputs, **meant}, MISTAKES).names(got)
            if found:
                names = [one[0][0] for one in found]
                return 1, names, {**meant, "variant": {names[0]: found[0][1]}}
        return 2, [], {}

    def lawful(self) -> None:
        """What holds for every rotation, whatever its frequencies."""
        reading = self.reading
        inputs = self.given()
        x = inputs["x"]
        x[:] = torch.randn(len(x), 1, 1, x.shape[-1], generator=self.drawn()).double()
        got = reading.compute(self.subject, inputs)
        products = got[:1] @ got[-1:].mT
        even = agree(products[..., 1:, 1:], products[..., :-1, :-1])
        if not agree(got.norm(dim=-1), x.norm(dim=-1)):
            self.find("rotation-scales", "property")
        elif laws.broken(self.subject, reading, inputs) is not None:
            self.find("examples-mixed", "property")
        elif reading.given in {"nothing", "start"} and not even:
            self.find("wrong-numbers", "property")
        else:
            self.note("rotation-other-frequencies", FREQUENCIES)
            self.unexamined.append("the frequencies")


#: A rotation that does nothing comes first: over an axis of size 1 it does nothing either.
MISTAKES = {"rotation-missing": {"times": 0}, **ref.ROTATION}
BACKWARDS = "The rotation turns the other way; products still depend on distances alone."
PART = "Some features are rotated, and the others come back as they are."
FREQUENCIES = "The frequencies are none that is known, and products depend on distances alone."
