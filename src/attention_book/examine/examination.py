"""The course of an examination, stage by stage; at most one finding for each.

Determinism → scores and weights → mask → causal rule → rows without a key → numerics → side
effects. A mistake that is named goes into the reference with which later stages are compared.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attention_book.examine import laws
from attention_book.examine.identification import Table, agree, right, with_keys
from attention_book.examine.reading import (
    LADDER,
    MASK,
    Form,
    Inputs,
    Reading,
    Signature,
    Sizes,
    forms,
    rule_of,
    signature,
)
from attention_book.examine.report import (
    CannotExamine,
    Finding,
    Note,
    Report,
    exhibit,
    sentence,
    written,
)
from attention_book.examine.subject import Refused, Subject, restored
from attention_book.mistakes import reference as ref

KINDS = ("softmax", "attention", "heads", "rotation", "decoder")
MEANINGS = ("allowed", "blocked", "added", "lengths")
LAYOUTS = ("bhld", "blhd", "bld", "lbd", "ld")
#: What a library documents, its callers know.
DOCUMENTED = {"empty-row-nan", "causal-aligned-to-first", "fill-too-small"}


class Examination:
    """What the kinds with a softmax share: softmax, attention and heads."""

    kind = "attention"
    roles: tuple[str, ...] = ("queries", "keys", "values")

    def __init__(self, subject: Subject, mask: str | None, layout: str | None, seed: int) -> None:
        self.subject, self.mask, self.layout, self.seed = subject, mask, layout, seed
        self.findings: list[Finding] = []
        self.notes: list[Note] = []
        self.unexamined: list[str] = []
        self.base: dict[str, Any] = {}
        self.reading: Reading | None = None
        self.others: dict[str, Reading] = {}  # one for each layout, where the numbers are wrong
        self.told: set[str] = set()  # masks that have been examined
        self.signature: Signature = signature(subject, len(self.roles), self.roles)

    # --- what a kind says of itself ---

    def layouts(self) -> list[str]:
        """Layouts in the order in which they are believed where two give one mistake each."""
        if self.layout is not None:
            four = ["joined"] if self.layout == "bld" else []
            return [self.layout, *four, *(["hld"] if self.layout == "bhld" else [])]
        heads = ["bhld", "blhd", "joined", "hld"]
        plain = ["bld", "ld", "lbd"]
        return heads + plain if "head" in self.subject.code else plain + heads

    def ladder(self) -> Sequence[Sizes]:
        return LADDER

    def tables(self) -> dict[str, ref.Options]:
        return {**ref.SCORES, **ref.WEIGHTS}

    def draw(self, sizes: Sizes, drawn: torch.Generator, whole: bool = False) -> Inputs:
        """Random inputs without a rule; whole numbers for an example that is read."""

        def numbers(*shape: int) -> Tensor:
            if whole:
                return torch.randint(-2, 4, shape, generator=drawn).double()
            return torch.randn(shape, generator=drawn, dtype=torch.float64) * 1.5

        b, h, q, k, d, e = vars(sizes).values()
        return {
            "queries": numbers(b, h, q, d),
            "keys": numbers(b, h, k, d),
            "values": numbers(b, h, k, e),
        }

    def readings(self, sizes: Sizes) -> Iterator[Reading]:
        """Ways to call the subject without a mask, or with one that hides nothing."""
        told = self.signature
        must = [slot for slot in told.slots if slot in self.subject.required]
        for layout in self.layouts():
            fits = sizes
            if layout in {"bld", "lbd", "ld"}:
                fits = replace(fits, heads=1)
            if layout in {"ld", "hld"}:
                fits = replace(fits, batch=1)
            split = any(name in told.fixed and callable(told.fixed[name]) for name in told.fixed)
            if (layout == "joined") != (split and self.kind == "attention") and split:
                continue
            if layout == "joined" and not split:
                continue
            plain = Reading(
                self.kind,
                layout,
                fits,
                tuple(zip(self.roles, told.sequences, strict=False)),
                causal=told.causal,
                fixed=tuple(told.fixed.items()),
                numpy=self.subject.numpy,
                positional=not told.by_keyword,
            )
            if not must:
                yield plain
                continue
            for other in must[1:]:
                plain = replace(plain, fixed=(*plain.fixed, (other, None)))
            yield replace(plain, fixed=(*plain.fixed, (must[0], None)))
            for form in forms(self.subject, must[0], layout, self.mask):
                yield replace(plain, slot=must[0], form=form)

    # --- the stages ---

    def run(self) -> None:
        """All stages."""
        found = self.read()
        if found is None:
            return
        for stage in (self.masks, self.causal, self.large, self.effects):
            try:
                stage()
            except Refused:
                self.unexamined.append(stage.__name__)

    def inputs(self, sizes: Sizes, extra: int = 0, whole: bool = False) -> Inputs:
        drawn = torch.Generator().manual_seed(self.seed + 1 + extra)
        return self.draw(sizes, drawn, whole)

    def read(self) -> Reading | None:
        """Find the reading, and with it what scores and weights are made from."""
        best: tuple[int, Reading, Any] | None = None
        called: set[str] = set()
        for numpy in (False, True):
            self.subject.numpy = numpy
            for step, sizes in enumerate(self.ladder()):
                tables: dict[Sizes, list[tuple[bool, Table]]] = {}
                before = set(called)
                for reading in self.readings(sizes):
                    if (
                        best is not None
                        and best[0] == 1
                        and (reading.layout in before or step == len(self.ladder()) - 1)
                    ):
                        continue
                    inputs = self.inputs(reading.sizes)
                    try:
                        got = reading.compute(self.subject, inputs)
                    except Refused:
                        continue
                    called.add(reading.layout)
                    if reading.sizes not in tables:
                        tables[reading.sizes] = self.compared(inputs)
                    named = best is not None and best[0] == 1
                    rank, names, options = self.judged(tables[reading.sizes], got, named)
                    if options.pop("always", False):
                        reading = replace(reading, causal="always")
                    if best is None or rank < best[0]:
                        best = rank, reading, (names, options)
                    if rank == 2:
                        self.others.setdefault(reading.layout, reading)
                    if rank == 0:
                        break
                if best is not None and best[0] == 0:
                    break
            if best is not None:
                break
        if best is None:
            return self.in_float32()
        rank, self.reading, (names, options) = best
        self.reading = self.plain()
        return self.judge_scores(rank, names, options)

    def in_float32(self) -> Reading | None:
        """The subject was called in no way. Perhaps it knows float32 alone."""
        tried = " ".join(self.subject.tried).lower()
        if self.subject.dtype == torch.float64 and re.search("dtype|float|double", tried):
            self.subject.dtype = torch.float32
            self.find("dtype-changed", "property", shown=False)
            return self.read()
        raise CannotExamine(
            f"{self.subject.name} could not be called as {self.kind}", self.subject.tried
        )

    def compared(self, inputs: Inputs) -> list[tuple[bool, Table]]:
        """What unmasked numbers are compared with, without and with a causal rule built in."""
        causal = {**inputs, "causal": True}
        found = [(False, Table(self.kind, inputs, self.tables()))]
        if self.signature.causal is None:
            found.append((True, Table(self.kind, causal, {**ref.CAUSAL, **self.tables()})))
        return found

    def judged(
        self, tables: list[tuple[bool, Table]], got: Tensor, only_right: bool = False
    ) -> tuple[int, list[str], dict[str, Any]]:
        """How many mistakes explain these numbers, 2 for none that is known; and which."""
        for always, table in tables:
            if table.is_right(got):
                return 0, [], {"always": always}
        if only_right:
            return 2, [], {}
        for always, table in tables:
            found = table.names(got)
            if always:
                found = [one for one in found if one[0][0] != "causal-ignored"]
            if found:
                return 1, [names[0] for names, _ in found], {**found[0][1], "always": always}
        return 2, [], {}

    def judge_scores(self, rank: int, names: list[str], options: dict[str, Any]) -> Reading | None:
        reading, subject = self.reading, self.subject
        assert reading is not None
        if not reading.sizes.odd and self.kind != "softmax" and not self.equal_by_nature():
            self.unexamined.append("more keys than queries")
        inputs = self.given()
        state = laws.draws(subject, reading, inputs)
        if state is not None:
            self.find(state, "property", shown=False)
            self.unexamined.append("everything that needs two equal calls")
            return None
        if rank == 1:
            self.base = options
            self.find(names[0], "identified", names[1:])
        elif rank == 2:
            pair = self.two(inputs, reading.compute(subject, inputs))
            if pair is None and not self.explained_by_mask():
                name = (
                    laws.sums(reading.compute(subject, inputs)) if self.kind == "softmax" else None
                )
                name = name or self.lawless(reading, inputs)
                self.find(name or "wrong-numbers", "property")
                self.unexamined.append("everything after the scores")
                self.effects()
                return None
        return reading

    def explained_by_mask(self) -> bool:
        """Whether what is wrong is a mask that the subject insists on, though it hides nothing."""
        first = self.reading
        for slot in (slot for slot in self.signature.slots if slot in self.subject.required):
            for reading in self.others.values():
                self.reading = reading
                if self.mask_of(slot, surely=False):
                    return True
        self.reading = first
        return False

    def lawless(self, reading: Reading, inputs: Inputs) -> str | None:
        try:
            return laws.broken(self.subject, reading, inputs)
        except Refused:
            return None

    def equal_by_nature(self) -> bool:
        return False

    def two(self, inputs: Inputs, got: Tensor) -> bool | None:
        """Two mistakes at once, of scores and of weights, or of either and the causal rule."""
        assert self.reading is not None
        causal = {**inputs, "causal": True}
        scores = {n: o for n, o in self.tables().items() if n not in ref.WEIGHTS}
        tries: list[tuple[bool, Table]] = []
        if scores:
            tries.append((False, Table(self.kind, inputs, scores, ref.WEIGHTS)))
        if self.signature.causal is None:
            tries.append((True, Table(self.kind, causal, self.tables(), ref.CAUSAL)))
        for always, table in tries:
            found = table.names(got)
            if found:
                names, self.base = found[0]
                if always:
                    self.reading = replace(self.reading, causal="always")
                for name in names:
                    self.find(name, "identified")
                return True
        return None

    def given(self, extra: int = 0, whole: bool = False, sizes: Sizes | None = None) -> Inputs:
        """Inputs under the reading that was found, without a mask."""
        assert self.reading is not None
        inputs = self.inputs(sizes or self.reading.sizes, extra, whole)
        inputs |= self.seen_by_all(inputs)
        return {**inputs, "causal": True} if self.reading.causal == "always" else inputs

    def seen_by_all(self, inputs: Inputs) -> Inputs:
        """A rule that hides nothing, where the subject insists on one."""
        assert self.reading is not None
        form, sizes = self.plain().form, self.reading.sizes_of(inputs)
        if form is None:
            return {}
        if form.meaning == "lengths":
            return {"lengths": torch.full((sizes.batch,), sizes.keys)}
        return {"allowed": torch.ones(1, 1, 1, 1, dtype=torch.bool)}

    def masks(self) -> None:
        """What each mask means, and whether it hides what it should."""
        for slot in self.signature.slots:
            if slot in self.told:
                continue
            if self.mask_of(slot) and any(f.name in ref.MASK for f in self.findings):
                break

    def mask_of(self, slot: str, surely: bool = True) -> bool:
        """Examine one mask; `surely`: numbers that nothing explains are a finding."""
        plain = self.reading
        assert plain is not None
        best: tuple[int, Reading, Any] | None = None
        unmasked = False
        says = self.mask if self.mask and slot == self.signature.slots[0] else None
        fixed = tuple((name, value) for name, value in plain.fixed if name != slot)
        for sizes in dict.fromkeys((plain.sizes, replace(plain.sizes, keys=plain.sizes.queries))):
            if plain.kind == "heads" and sizes != plain.sizes and self.equal_by_nature():
                continue
            for form in forms(self.subject, slot, plain.layout, says):
                if form.axes == "b" and sizes.batch < 2:
                    continue
                reading = replace(plain, slot=slot, form=form, fixed=fixed, sizes=sizes)
                inputs = {**self.given(sizes=sizes), **form.drawn(sizes, self.drawn())}
                try:
                    got = reading.compute(self.subject, inputs)
                except Refused:
                    continue
                table = Table(self.kind, inputs, ref.MASK, base=self.base)
                rank, names, options = self.judged([(False, table)], got)
                if "mask-ignored" in names and not MASK.search(slot):
                    unmasked = True
                    continue
                if best is None or rank < best[0]:
                    best = rank, reading, (names, options)
                if rank == 0:
                    break
            if best is not None and best[0] == 0:
                break
        if best is None or (best[0] == 2 and not MASK.search(slot)):
            if not unmasked and slot != "4th":
                self.unexamined.append(f"the argument {slot}")
            return False
        rank, reading, (names, options) = best
        if rank == 2 and not surely:
            return False
        self.reading = reading
        self.told.add(slot)
        if rank and {"over", "weights"} & set(self.base):
            self.unexamined.append("the mask")
            return True
        if rank == 1:
            self.base |= {k: v for k, v in options.items() if k != "always"}
            self.find(names[0], "identified", names[1:], masked=True)
        elif rank == 2:
            self.find("wrong-numbers", "property", masked=True)
        if rank < 2:
            self.hidden(rank)
        return True

    def drawn(self, extra: int = 0) -> torch.Generator:
        return torch.Generator().manual_seed(self.seed + 17 + extra)

    def hidden(self, rank: int) -> None:
        """Rows without a key, their gradients, and how surely a key is hidden."""
        reading = self.reading
        assert reading is not None
        form = reading.form
        if form is None or form.meaning == "added":
            return
        if rank == 0:
            self.fill(form)
        if {"mask", "hide", "fill", "over", "weights"} & set(self.base):
            return
        self.empty(form)

    def fill(self, form: Form) -> None:
        """Whether a key stays hidden where all that is allowed scores very low."""
        reading = self.reading
        assert reading is not None

        def change(inputs: Inputs, low: float) -> Inputs:
            sizes = reading.sizes_of(inputs)
            inputs = {**inputs, **form.drawn(sizes, self.drawn(1))}
            if form.meaning != "lengths" and reading.kind != "heads":
                mask = inputs["allowed"]
                inputs["allowed"] = mask[:1, :1, :1].expand(mask.shape).clone()
            return laws.low_scores(reading, inputs, ~rule_of(inputs, sizes), low)

        for low in (laws.LOW, laws.VERY_LOW):
            probe = change(self.given(), low)
            try:
                got = reading.compute(self.subject, probe)
            except Refused:
                return
            if self.agrees(got, probe):
                continue
            if low == laws.VERY_LOW:
                self.notes.append(Note("fill-finite", "A finite number stands for −∞."))
                return
            name = "fill-too-small"
            if self.vanishes(probe):
                name = "overflow-large-scores"
            self.find(name, "property", change=lambda inputs: change(inputs, laws.LOW))
            return

    def vanishes(self, probe: Inputs) -> bool:
        """Whether low scores alone are lost: without a mask, or beside a hidden score as low."""
        reading = self.reading
        assert reading is not None
        if self.kind == "heads":
            return False
        everywhere = {name: x for name, x in probe.items() if name not in {"allowed", "lengths"}}
        everywhere |= self.seen_by_all(everywhere)
        low = laws.ramp(probe) + laws.LOW
        plain = laws.with_scores(reading, everywhere, low)
        if not self.agrees(self.plain().compute(self.subject, plain), plain):
            return True
        if self.kind != "softmax":
            return False
        hidden = ~rule_of(probe, reading.sizes)
        lower = {**probe, "scores": probe["scores"] + 4 * laws.LOW * hidden}
        return self.agrees(reading.compute(self.subject, lower), lower)

    def empty(self, form: Form) -> None:
        """What a query without any key gets, and the gradients of that."""
        reading, subject = self.reading, self.subject
        assert reading is not None
        inputs = {**self.given(), **form.drawn(reading.sizes, self.drawn(2), empty=True)}
        rows = with_keys(self.kind, inputs, self.base)
        try:
            got = reading.compute(subject, inputs)
        except Refused:
            self.unexamined.append("rows without a key")
            return
        if rows is None or rows.all():
            return
        rows = rows.expand(got.shape[:-1])
        lone = got[~rows]
        if not self.agrees(got, inputs):
            if got[rows].isnan().any():
                self.tell("empty-row-nan", "property", form)
            else:
                self.find("wrong-numbers", "property", change=self.emptied(form))
            return
        if lone.isnan().any():
            self.tell("empty-row-nan", "identified", form)
        elif agree(got, right(self.kind, inputs, {**self.base, "empty": "uniform"})):
            if form.meaning == "lengths":
                self.find("empty-row-uniform", "identified", change=self.emptied(form))
            else:
                self.notes.append(Note("empty-row-uniform", sentence("empty-row-uniform")))
        elif not agree(got, right(self.kind, inputs, self.base)):
            self.notes.append(
                Note("empty-row-otherwise", "A query without any key gets something else than 0.")
            )
        elif not self.subject.written and not laws.gradients_are_finite(subject, reading, inputs):
            self.find("empty-row-nan-gradient", "property", shown=False)

    def emptied(self, form: Form) -> laws.Change:
        """How inputs get a row without a key."""
        reading = self.reading
        assert reading is not None
        return lambda inputs: {
            **inputs,
            **form.drawn(reading.sizes_of(inputs), self.drawn(2), empty=True),
        }

    def tell(self, name: str, certainty: str, form: Form) -> None:
        """A finding, or a note where the convention is documented."""
        if self.subject.library or re.search(r"\bnan\b", self.subject.words):
            self.notes.append(Note(name, sentence(name)))
        else:
            self.find(name, certainty, change=self.emptied(form))

    def causal(self) -> None:
        """Whether the causal rule is the causal rule."""
        reading = self.reading
        assert reading is not None
        if reading.causal in (None, "always"):
            return
        plain = self.plain()
        for sizes in dict.fromkeys((plain.sizes, replace(plain.sizes, keys=plain.sizes.queries))):
            inputs = {**self.given(sizes=sizes), "causal": True}
            try:
                got = replace(plain, sizes=sizes).compute(self.subject, inputs)
            except Refused:
                continue
            table = Table(self.kind, inputs, ref.CAUSAL, base=self.base)
            rank, names, options = self.judged([(False, table)], got)
            if rank:
                hiding = Table(self.kind, {**inputs}, ref.MASK, base=self.base)
                found = hiding.names(got)
                if rank == 2 and found:
                    names, options = [one[0][0] for one in found], found[0][1]
                name = names[0] if names else "wrong-numbers"
                if name in DOCUMENTED and self.subject.library:
                    self.notes.append(Note(name, sentence(name)))
                    return
                certainty = "identified" if names else "property"
                self.base |= {k: v for k, v in options.items() if k != "always"}
                self.find(name, certainty, names[1:], causal=True)
            return
        self.unexamined.append("the causal rule")

    def large(self) -> None:
        """Scores of 1000, rows far apart, and half precision."""
        reading, subject = self.reading, self.subject
        assert reading is not None
        if self.base.get("over", "keys") == "keys" and "weights" not in self.base:
            for name, change in laws.large(reading):
                probe = change(self.given())
                try:
                    got = self.plain().compute(subject, probe)
                except Refused:
                    continue
                if not self.agrees(got, probe):
                    mistake = {**self.base, **ref.LARGE[name]}
                    identified = agree(got, right(self.kind, probe, mistake))
                    certainty = "identified" if identified else "property"
                    self.find(name, certainty, change=change)
                    return
        if reading.form is not None and reading.form.meaning != "added" and not reading.numpy:
            inputs = {**self.given(), **reading.form.drawn(reading.sizes, self.drawn())}
            if laws.refuses_half(subject, reading, inputs):
                if re.search(r"half|fp16|float16|autocast", subject.code + subject.words):
                    self.find("fill-not-in-half", "property", shown=False)
                else:
                    self.notes.append(Note("fill-not-in-half", sentence("fill-not-in-half")))

    def plain(self) -> Reading:
        """The reading without a mask, where the subject does not insist on one."""
        assert self.reading is not None
        if self.reading.slot in self.subject.required:
            return self.reading
        return replace(self.reading, slot=None, form=None)

    def agrees(self, got: Tensor, inputs: Inputs) -> bool:
        """Whether the numbers are the reference's with the mistakes that are named."""
        wanted = right(self.kind, inputs, self.base)
        return wanted is None or agree(got, wanted, with_keys(self.kind, inputs, self.base))

    def effects(self) -> None:
        """What a call does besides giving a result."""
        reading, subject = self.reading, self.subject
        assert reading is not None
        inputs, other = self.given(), self.given(5)
        if reading.form is not None:
            inputs |= reading.form.drawn(reading.sizes, self.drawn())
            other |= reading.form.drawn(reading.sizes, self.drawn(3))
        try:
            plain = reading.compute(subject, inputs)
        except Refused:
            return
        args, kwargs = reading.arguments(inputs)
        raw = subject.call(args, kwargs)
        parts = [x for x in (raw if isinstance(raw, tuple | list) else [raw]) if x is not None]
        if subject.dtype == torch.float64 and any(
            str(getattr(x, "dtype", "")).split(".")[-1] in {"float32", "float16"} for x in parts[:1]
        ):
            self.find("dtype-changed", "property", shown=False)
        elif subject.written:
            self.find("writes-to-input", "property", shown=False)
        elif laws.remembers(subject, reading, inputs, other):
            self.find("remembers-last-call", "property", shown=False)
        elif not laws.same(plain, laws.turned(subject, reading, inputs)):
            self.find("noncontiguous-wrong", "property", shown=False)
        elif reading.sizes.batch > 1:
            single = laws.one_example(inputs)
            try:
                alone = reading.compute(subject, single)
            except Refused:
                alone = None
            if {"over", "change", "among"} & set(self.base):
                return
            wrong = alone is None or not laws.same(plain[:1], alone)
            if wrong and not any(
                f.name in {"examples-mixed", "wrong-numbers"} for f in self.findings
            ):
                self.find("batch-of-one", "property", shown=False)

    # --- findings ---

    def find(
        self,
        name: str,
        certainty: str,
        also: Sequence[str] = (),
        *,
        masked: bool = False,
        causal: bool = False,
        change: laws.Change | None = None,
        shown: bool = True,
    ) -> None:
        """Keep a finding, with the smallest example that shows it."""
        if name in {finding.name for finding in self.findings}:
            return
        if name == "wrong-numbers" and self.findings:  # what else a cause shows is not told
            self.unexamined.append("what comes after the first mistake")
            return
        finding = Finding(name, certainty, sentence(name), list(also), exhibit(name))
        self.findings.append(finding)
        if shown and self.reading is not None:
            for inputs in self.examples(masked, causal, change):
                if self.shows(finding, inputs):
                    return

    def examples(self, masked: bool, causal: bool, change: laws.Change | None) -> Iterator[Inputs]:
        """Inputs from small to large, of whole numbers first."""
        reading = self.reading
        assert reading is not None
        most, form = reading.sizes, reading.form
        small = [(1, 1, 2, 2), (1, 1, 2, 3), (2, 1, 2, 2), (1, 2, 2, 2), (2, 2, 2, 3), (2, 2, 3, 3)]
        tried = [
            (replace(most, batch=b, heads=h, queries=q, keys=k, size=2, value_size=2), extra, True)
            for b, h, q, k in small
            for extra in range(3)
            if b <= most.batch and h <= most.heads and (q == k or most.odd)
        ]
        for sizes, extra, whole in [*tried, (most, 0, False)]:
            inputs = self.given(extra, whole, sizes)
            if causal:
                inputs["causal"] = True
            if masked and form is not None:
                inputs |= form.drawn(sizes, self.drawn(extra))
            yield change(inputs) if change is not None else inputs

    def shows(self, finding: Finding, inputs: Inputs) -> bool:
        """Whether the subject is wrong for these inputs; if so they are the finding's example."""
        reading = self.reading
        assert reading is not None
        if "allowed" not in inputs and "lengths" not in inputs:
            reading = self.plain()
        wanted = right(self.kind, inputs)
        try:
            got = reading.compute(self.subject, inputs)
        except Refused:
            return False
        if wanted is None or agree(got, wanted):
            return False
        args, kwargs = reading.arguments(inputs)
        named = [name for _, name in reading.roles] + ["mask"]
        pairs = [*zip(named, args, strict=False), *kwargs.items()]
        finding.inputs = {name: value for name, value in pairs if isinstance(value, Tensor)}
        finding.expected, finding.got = reading.lay(wanted), reading.lay(got)
        lines = [f"{n} = torch.tensor({written(x)})" for n, x in finding.inputs.items()]
        passed = list(named[: len(args)])
        passed += [f"{n}={n if isinstance(x, Tensor) else written(x)}" for n, x in kwargs.items()]
        finding.call = "\n".join([*lines, f"{self.subject.name}({', '.join(passed)})"])
        return True


class SoftmaxExamination(Examination):
    """Scores and a rule in, weights out."""

    kind = "softmax"
    roles = ("scores",)

    def layouts(self) -> list[str]:
        if self.layout is not None:
            return [{"blhd": "bhld", "lbd": "bld"}.get(self.layout, self.layout)]
        return ["bhld", "bld", "ld"] if "head" in self.subject.code else ["bld", "bhld", "ld"]

    def tables(self) -> dict[str, ref.Options]:
        return ref.WEIGHTS

    def draw(self, sizes: Sizes, drawn: torch.Generator, whole: bool = False) -> Inputs:
        shape = (sizes.batch, sizes.heads, sizes.queries, sizes.keys)
        if whole:
            return {"scores": torch.randint(-2, 4, shape, generator=drawn).double()}
        return {"scores": torch.randn(shape, generator=drawn, dtype=torch.float64) * 1.5}


EXAMINATIONS: dict[str, Callable[..., Examination]] = {
    "softmax": SoftmaxExamination,
    "attention": Examination,
}


def guessed(subject: Subject) -> list[str]:
    """The kinds that a subject may be, the likeliest first."""
    told = signature(subject, 3, ("queries", "keys", "values"))
    must = len(subject.required)
    if re.search("softmax|weights", subject.name.lower()) or re.match(
        "scores|logits|energy|attn_scores", (subject.names or [""])[0]
    ):
        return ["softmax", "attention"]
    if must >= 3 or told.by_keyword or len(subject.names) >= 3:
        return ["attention", "softmax"]
    return ["softmax", "attention"]


def examine(
    subject: Any,
    kind: str | None = None,
    *,
    mask: str | None = None,
    layout: str | None = None,
    heads: int | None = None,
    allow: Sequence[str] = (),
    seed: int = 0,
    seconds: float = 30,
) -> Report:
    """Examine an implementation of attention, and name its mistakes.

    Args:
        subject: a function, a module, or a class that is made without arguments.
        kind: "softmax" (scores and a mask or lengths to weights), "attention" (queries, keys,
            values to an output), "heads" (a multi-head module), "rotation" or "decoder"; found
            by trying where not given.
        mask: what a mask means: "allowed", "blocked", "added" or "lengths".
        layout: the axes: "bhld", "blhd", "bld", "lbd" or "ld".
        heads: the number of heads, where the subject does not tell it.
        allow: names of mistakes that are conventions of this subject: they become notes.
        seed: of the numbers that are tried.
        seconds: the time after which no further call is made.

    Raises:
        CannotExamine: where no way to call the subject gives numbers, with what was tried.
        ValueError: for an argument that is none of these words.
    """
    for name, value, words in (
        ("kind", kind, KINDS),
        ("mask", mask, MEANINGS),
        ("layout", layout, LAYOUTS),
    ):
        if value is not None and value not in words:
            raise ValueError(f"examine: {name} must be one of {', '.join(words)}, but is {value!r}")
    started = time.monotonic()
    with restored():
        told = Subject(subject, seconds)
        reports, refused = [], []
        for one in [kind] if kind else guessed(told):
            examined = Subject(subject, seconds - (time.monotonic() - started))
            examination = EXAMINATIONS[one](examined, mask, layout, seed)
            try:
                examination.run()
            except CannotExamine as error:
                refused.append(error)
                continue
            reports.append(_reported(examination, allow))
            if reports[-1].ok:
                break
    if not reports:
        raise CannotExamine(refused[0].reason, [t for error in refused for t in error.tried])
    best = min(reports, key=_mistakes)
    best.seconds = time.monotonic() - started
    return best


def _mistakes(report: Report) -> int:
    """Numbers that nothing explains count more than several mistakes with a name."""
    return sum(10 if f.name == "wrong-numbers" else 1 for f in report.findings)


def _reported(examination: Examination, allow: Sequence[str]) -> Report:
    report = Report(examination.kind, str(examination.reading), notes=examination.notes)
    report.unexamined = examination.unexamined
    for finding in examination.findings:
        if finding.name in allow:
            report.notes.append(Note(finding.name, finding.sentence))
        else:
            report.findings.append(finding)
    return report
