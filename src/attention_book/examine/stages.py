"""The stages of an examination, in order; at most one finding for each.

Determinism → scores and weights → mask → causal rule → rows without a key → numerics → side
effects. A mistake that is named goes into the reference with which later stages are compared.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import torch
from torch import Tensor

from attention_book.examine import laws
from attention_book.examine.bench import numbers
from attention_book.examine.identification import Table, agree, right
from attention_book.examine.masks import Masks
from attention_book.examine.reading import HEADS, LADDER, Inputs, Reading, Sizes, forms
from attention_book.examine.subject import Refused
from attention_book.mistakes import reference as ref

#: How many queries or keys are taken at a time.
PIECE = re.compile(r"chunk|block|tile")
#: What exponentials that overflow or vanish show besides.
OVERFLOWN = {"empty-row-nan", "empty-row-nan-gradient", "fill-too-small"}
SAME_CAUSE = {
    "overflow-large-scores": OVERFLOWN,
    "max-not-per-row": OVERFLOWN | {"overflow-large-scores"},
}


class Examination(Masks):
    """What the kinds with a softmax share: softmax, attention and heads."""

    def layouts(self) -> list[str]:
        """Layouts in the order in which they are believed where two give one mistake each."""
        if self.layout is not None:
            return [self.layout, *{"bld": ["blj"], "bhld": ["hld"]}.get(self.layout, [])]
        heads = ["bhld", "blhd", "blj", "hld"]
        plain = ["bld", "ld", "lbd"]
        return heads + plain if "head" in self.subject.code else plain + heads

    def ladder(self) -> Sequence[Sizes]:
        more = 0 if self.width is None else self.width - LADDER[0].size
        own = self.widths() if self.subject.otherwise else []  # its parameters insist on one
        steps = [replace(s, size=s.size + more, value_size=s.value_size + more) for s in LADDER]
        return [*steps, *(replace(LADDER[0], size=size) for size in own)]

    def tables(self) -> dict[str, ref.Options]:
        among = ("batch-and-length-mixed", "attention-between-heads")
        return {**ref.SCORES, **ref.WEIGHTS, **{name: ref.PROJECTIONS[name] for name in among}}

    def readings(self, sizes: Sizes) -> Iterator[Reading]:
        """Ways to call the subject without a mask, or with one that hides nothing."""
        told = self.signature
        must = [slot for slot in told.slots if slot in self.subject.required]
        fixed = (*told.fixed.items(), *((slot, None) for slot in must))
        roles = tuple(zip(self.roles, told.sequences, strict=False))
        for layout in self.layouts():
            fits = sizes
            if layout in {"bld", "lbd", "ld", "d"} and self.kind != "heads":
                fits = replace(fits, heads=1)
            if layout in {"ld", "hld", "d"}:
                fits = replace(fits, batch=1, queries=1 if layout == "d" else fits.queries)
            split = self.kind == "attention" and any(HEADS.match(name) for name in told.fixed)
            if (layout == "blj") != split:
                continue
            plain = Reading(self.kind, layout, fits, roles, causal=told.causal, fixed=fixed)
            plain = replace(plain, numpy=self.subject.numpy, positional=not told.by_keyword)
            yield plain
            if must:
                for form in forms(self.subject, must[0], layout, self.mask, self.kind == "heads"):
                    yield replace(plain, slot=must[0], form=form)

    def run(self) -> None:
        """All stages."""
        if not self.read():
            return
        for stage in (self.masks, self.causal, self.elsewhere, self.large, self.effects):
            try:
                stage()
            except Refused:
                self.unexamined.append(stage.__name__)

    def read(self) -> bool:
        """Find the reading, and with it what scores and weights are made from; whether to go on."""
        best: tuple[int, Reading, list[str], dict[str, Any]] = (3, self.unread, [], {})
        called: set[str] = set()
        rungs = list(enumerate(self.ladder()))
        for numpy, (step, sizes) in product((False, True), rungs):
            if best[0] == 0 or (numpy and best[0] < 3):
                break
            self.subject.numpy = numpy
            tables: dict[Any, list[tuple[bool, Table]]] = {}
            before = set(called)
            for reading in self.readings(sizes):
                named = best[0] == 1
                if named and (reading.layout in before or step == len(rungs) - 1):
                    continue
                if called and reading.layout == "d":
                    continue  # one row, for what takes no more
                compared_by = self.chosen(reading)
                inputs = self.inputs(reading.sizes)
                got = reading.tried(self.subject, inputs)
                if got is None:
                    continue
                called.add(reading.layout)
                if compared_by not in tables:
                    tables[compared_by] = self.compared(inputs)
                nothing = bool(got.isnan().all())  # which every mistake with NaN would give
                rank, names, options = self.judged(tables[compared_by], got, named or nothing)
                if options.pop("always", False):
                    reading = replace(reading, causal="always")
                if named and len(reading.roles) < len(best[1].roles):
                    continue  # right without the memory that it is given
                if named and reading.layout in {"ld", "hld"}:
                    continue  # softmax(dim=1) is right for matrices and wrong for batches
                if rank < best[0]:
                    best = rank, reading, names, options
                if rank == 2:
                    self.others.setdefault(reading.layout, reading)
                if rank == 0:
                    break
        rank, self.reading, names, options = best
        if rank == 3:
            return self.in_float32()
        if rank == 2 or (names[:1] and names[0].startswith("scale-")):
            self.width = self.width or self.fixed_width()
            if self.width not in {None, self.reading.sizes.size}:
                self.others.clear()
                said = f"The scores are divided by the root of {self.width}, whatever a key's size."
                self.note("scale-fixed", said)
                return self.read()
        self.chosen(self.reading)
        self.reading = self.plain()
        return self.judge_scores(rank, names, options)

    def fixed_width(self) -> int | None:
        """The size whose root is the divisor at every size; None where it changes with the size."""
        for reading in (self.reading, *self.others.values()):
            squares = []
            for more in (0, 5) if self.kind == "attention" else ():
                q, k, d = (x + more for x in list(vars(reading.sizes).values())[2:5])
                sizes = replace(reading.sizes, queries=q, keys=k, size=d, value_size=d)
                inputs = self.given(sizes=sizes)
                inputs = laws.with_scores(reading, inputs, laws.ramp(inputs) / 8)
                inputs["values"] = torch.eye(k, d, dtype=torch.float64).expand_as(inputs["values"])
                got = reading.tried(self.subject, inputs)
                if got is not None:  # keys 0 and 1 differ by √size / 8 before they are divided
                    ratio = (got[..., -1, 1] / got[..., -1, 0]).flatten()[0].log().detach()
                    squares.append(float(d / (8 * ratio) ** 2))
            width = round(squares[0]) if len(squares) == 2 and squares[0] < 2000 else 0
            if width > 1 and all(abs(square - width) < 1e-2 for square in squares):
                return width
        return None

    def chosen(self, reading: Reading) -> Any:
        """Go on with this reading; and what the numbers are compared by."""
        return reading.sizes

    def in_float32(self) -> bool:
        """The subject was called in no way. Perhaps it knows float32 alone."""
        tried = " ".join(self.subject.tried).lower()
        if self.subject.dtype == torch.float64 and re.search("dtype|float|double", tried):
            self.subject.dtype = torch.float32
            self.find("dtype-changed", "property", how="unshown")
            return self.read()
        raise self.subject.uncalled(self.kind)

    def compared(self, inputs: Inputs) -> list[tuple[bool, Table]]:
        """What unmasked numbers are compared with, without and with a causal rule built in."""
        causal = {**inputs, "causal": True}
        found = [(False, Table(self.kind, inputs, self.tables()))]
        if self.signature.causal is None:
            found.append((True, Table(self.kind, causal, {**ref.CAUSAL, **self.tables()})))
        return found

    def judge_scores(self, rank: int, names: list[str], options: dict[str, Any]) -> bool:
        reading, subject = self.reading, self.subject
        if not reading.sizes.odd and self.kind != "softmax" and not self.equal_by_nature():
            self.unexamined.append("more keys than queries")
        inputs = self.given()
        state = laws.draws(subject, lambda: reading.compute(subject, inputs))
        subject.double = subject.dtype == subject.came == torch.float64
        if state is not None:
            self.find(state, "property", how="unshown")
            self.unexamined.append("everything that needs two equal calls")
            return False
        if rank == 1:
            self.base = options
            self.find(names[0], "identified", names[1:])
        elif rank == 2:
            got = reading.compute(subject, inputs)
            pair = not got.isnan().all() and self.two(inputs, got)
            if not pair and not self.explained_by_mask() and not self.otherwise(inputs, got):
                name = laws.sums(got) if self.kind == "softmax" else None
                with contextlib.suppress(Refused):
                    name = name or laws.broken(subject, reading, inputs)
                shown = "unshown" if subject.otherwise else ""  # the right score is not known
                self.find(name or "wrong-numbers", "property", how=shown)
                self.unexamined.append("everything after the scores")
                self.effects()
                return False
        return True

    def explained_by_mask(self) -> bool:
        """Whether what is wrong is a mask that the subject insists on, though it hides nothing."""
        first = self.reading
        must = [slot for slot in self.signature.slots if slot in self.subject.required]
        for slot, reading in product(must, self.others.values()):
            self.reading = reading
            if self.mask_of(slot, surely=False):
                return True
        self.reading = first
        return False

    def otherwise(self, inputs: Inputs, got: Tensor) -> bool:
        """Whether the weights are a softmax of another score, which the documentation says."""
        subject = self.subject
        if self.kind != "attention" or not subject.otherwise:
            return False

        def score(queries: Tensor, keys: Tensor) -> Tensor:  # but for a number of each row
            one = torch.eye(keys.shape[2]).double().expand(*keys.shape[:2], -1, -1)
            given = {"queries": queries, "keys": keys, "values": one}
            return self.plain().compute(subject, given | self.seen_by_all(given)).log()

        self.own_score, self.base = True, {"alike": score}
        with contextlib.suppress(Refused):
            if self.agrees(got, inputs) and laws.broken(subject, self.reading, inputs) is None:
                self.note("score-otherwise", "The score is another than the scaled dot product.")
                self.unexamined.append("the score")
                return True
        self.own_score, self.base = False, {}
        return False

    def two(self, inputs: Inputs, got: Tensor) -> bool:
        """Two mistakes at once, of scores and of weights, or of either and the causal rule."""
        causal = {**inputs, "causal": True}
        scores = {n: o for n, o in self.tables().items() if n not in ref.WEIGHTS}
        tries = [(False, Table(self.kind, inputs, scores, ref.WEIGHTS))]
        if self.signature.causal is None:
            tries.append((True, Table(self.kind, causal, self.tables(), ref.CAUSAL)))
        for always, table in tries:
            if found := table.names(got):
                names, self.base = found[0]
                if always:
                    self.reading = replace(self.reading, causal="always")
                for name in names:
                    self.find(name, "identified")
                return True
        return False

    def causal(self) -> None:
        """Whether the causal rule is the causal rule."""
        reading = self.reading
        said = re.search(r"(?<!non)(?<!non_)causal", self.subject.name.lower())
        if said and reading.causal is None and not self.signature.slots:  # nobody can ask for it
            self.find("causal-ignored", "property", how="causal")
        if reading.causal in (None, "always"):
            return
        plain = self.plain()
        judged = []
        for sizes in dict.fromkeys((plain.sizes, replace(plain.sizes, keys=plain.sizes.queries))):
            inputs = {**self.given(sizes=sizes), "causal": True}
            got = replace(plain, sizes=sizes).tried(self.subject, inputs)
            if got is None:
                continue
            rules = (ref.CAUSAL, ref.MASK)
            tables = [(False, Table(self.kind, inputs, one, base=self.base)) for one in rules]
            judged.append(self.judged(tables, got))
        judged.sort(key=lambda one: one[0] == 2)  # a square hides where the rule begins
        rank, names, options = judged[0] if judged else (3, [], {})
        if rank == 3:
            self.unexamined.append("the causal rule")
        elif rank:
            self.base |= {k: v for k, v in options.items() if k != "always"}
            self.explain(names, "causal")

    def elsewhere(self) -> None:
        """Whether what is right for some sizes is right for others that the subject takes."""
        reading, own = self.reading, self.reading.sizes
        longer = [replace(own, queries=n, keys=n) for n in (11, 19)]
        tried = sorted((*self.ladder(), *longer), key=lambda sizes: sizes.odd)
        pieces = [(n, 4) for n in self.subject.defaults if PIECE.search(n)][:1]
        several = [*((s, ()) for s in tried), *((longer[0], (one,)) for one in pieces)]
        for s, fixed in several if not self.findings else ():
            keys = s.queries if self.equal_by_nature() else s.keys
            rows = 1 if reading.layout == "d" else s.queries
            sizes = replace(s, batch=own.batch, heads=own.heads, queries=rows, keys=keys)
            self.reading = replace(reading, sizes=sizes, fixed=(*reading.fixed, *fixed))
            inputs = self.given()
            if reading.causal is not None and not sizes.odd:
                inputs["causal"] = True
            got = self.plain().tried(self.subject, inputs)
            if got is None or self.agrees(got, inputs):
                continue
            tables = {**self.tables(), **ref.CAUSAL}
            names = Table(self.kind, inputs, tables, base=self.base).single(got)
            if names or not fixed:  # a window is smaller where its size is
                self.explain(names, "causal" if "causal" in inputs else "")
                break
        if self.kind == "attention" and "h" in reading.layout:  # heads of keys for two of queries
            self.reading = replace(reading, sizes=replace(own, heads=4))
            inputs = grouped(self.given())
            got, name = self.plain().tried(self.subject, inputs), "kv-heads-interleaved-wrongly"
            table = Table(self.kind, inputs, {name: ref.SCORES[name]}, base=self.base)
            if got is not None and table.names(got):
                self.find(name, "identified", how=grouped)
        self.reading = reading

    def large(self) -> None:
        """Scores of 1000, rows far apart, and half precision."""
        reading, subject = self.reading, self.subject
        unknown = any(f.name == "wrong-numbers" for f in self.findings) and self.plain().form
        if self.own_score:
            return
        if self.base.get("over", "keys") == "keys" and "weights" not in self.base and not unknown:
            for name, change in laws.large(reading):
                probe = change(self.given())
                got = self.plain().tried(subject, probe)
                rounded = 1e-2 if self.kind == "heads" else 2e-5  # a softmax in float32
                if got is not None and not self.agrees(got, probe, rounded):
                    known = agree(got, right(self.kind, probe, {**self.base, **ref.LARGE[name]}))
                    self.find(name, "identified" if known else "property", how=change)
                    # rows that vanish are 0 / 0, and hidden keys win there
                    self.findings = [f for f in self.findings if f.name not in SAME_CAUSE[name]]
                    return
        if reading.form is not None and reading.form.meaning != "added" and not reading.numpy:
            inputs = {**self.given(), **reading.form.drawn(reading.sizes, self.drawn())}
            if laws.refuses_half(subject, reading, inputs):
                if re.search(r"half|fp16|float16|autocast", subject.code + subject.words):
                    self.find("fill-not-in-half", "property", how="unshown")
                else:
                    self.note("fill-not-in-half")


def grouped(inputs: Inputs) -> Inputs:
    """The same with half as many heads of keys and values."""
    return {n: x[:, ::2] if n in {"keys", "values"} else x for n, x in inputs.items()}


class SoftmaxExamination(Examination):
    """Scores and a rule in, weights out."""

    kind = "softmax"
    roles = ("scores",)

    def layouts(self) -> list[str]:
        if self.layout is not None:
            return [{"blhd": "bhld", "lbd": "bld"}.get(self.layout, self.layout)]
        heads = "head" in self.subject.code
        return ["bhld", "bld", "ld", "d"] if heads else ["bld", "bhld", "ld", "d"]

    def tables(self) -> dict[str, ref.Options]:
        return ref.WEIGHTS

    def draw(self, sizes: Sizes, drawn: torch.Generator, whole: bool = False) -> Inputs:
        shape = (sizes.batch, sizes.heads, sizes.queries, sizes.keys)
        return {"scores": numbers(shape, drawn, whole)}
