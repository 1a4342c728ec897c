"""Masks: what each means, whether it hides what it should, and rows where it leaves no key."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import torch

from attention_book.examine import laws
from attention_book.examine.bench import Bench
from attention_book.examine.identification import Table, agree, right, with_keys
from attention_book.examine.reading import MASK, Form, Inputs, Reading, forms, rule_of
from attention_book.mistakes import reference as ref

#: Mistakes that a mask of ones and zeros makes, and one that is added does not.
FILLS = ["fill-too-small"], ["fill-zero"], ["fill-sign"], ["mask-times-scores"]


class Masks(Bench):
    """The stages from the mask to rows without a key."""

    def masks(self) -> None:
        """What each mask means, and whether it hides what it should."""
        for slot in self.signature.slots:
            found = slot not in self.told and self.mask_of(slot)
            if found and any(finding.name in ref.MASK for finding in self.findings):
                break

    def mask_of(self, slot: str, surely: bool = True) -> bool:
        """Examine one mask; `surely`: numbers that nothing explains are a finding."""
        plain = self.reading
        best: tuple[int, Reading, list[str], dict[str, Any]] = (3, plain, [], {})
        says = self.mask if slot == self.signature.slots[0] else None
        every = {plain.sizes, replace(plain.sizes, keys=plain.sizes.queries)}
        ways = forms(self.subject, slot, plain.layout, says, self.kind == "heads")
        for sizes, form in product(sorted(every, key=lambda sizes: -sizes.keys), ways):
            if form.axes == "b" and sizes.batch < 2:
                continue
            reading = replace(plain, slot=slot, form=form, sizes=sizes)
            inputs = {**self.given(sizes=sizes), **form.drawn(sizes, self.drawn())}
            got = reading.tried(self.subject, inputs)
            if got is None:
                continue
            table = Table(self.kind, inputs, ref.MASK, base=self.base)
            rank, names, options = self.judged([(False, table)], got)
            if "mask-ignored" in names and not MASK.search(slot):
                continue
            if form.meaning == "added" and best[2][:1] in FILLS:
                continue  # (1 - mask) · fill hides by −∞ too, and is no mask to be added
            if rank < best[0]:
                best = rank, reading, names, options
            if rank == 0:
                break
        if best[0] == 3 or (best[0] == 2 and not MASK.search(slot)):
            if slot != "4th":
                self.unexamined.append(f"the argument {slot}")
            return False
        rank, reading, names, options = best
        if rank == 2 and not surely:
            return False
        self.reading = reading
        self.told.add(slot)
        if rank and {"over", "weights"} & set(self.base):
            self.unexamined.append("the mask")
            return True
        if rank:
            self.base |= {k: v for k, v in options.items() if k != "always"}
            self.explain(names, "masked")
        if rank < 2:
            self.hidden(rank)
        return True

    def hidden(self, rank: int) -> None:
        """Rows without a key, their gradients, and how surely a key is hidden."""
        form = self.reading.form
        if form is None or form.meaning == "added":
            return
        if rank == 0 and not {"over", "weights"} & set(self.base) and not self.own_score:
            self.fill(form)
        if not {"mask", "hide", "fill", "over", "weights"} & set(self.base):
            self.empty(form)

    def fill(self, form: Form) -> None:
        """Whether a key stays hidden where all that is allowed scores very low."""
        reading = self.reading

        def change(inputs: Inputs, low: float) -> Inputs:
            sizes = reading.sizes_of(inputs)
            for name, x in form.drawn(sizes, self.drawn(1)).items():
                one = x.clamp(max=1) if name == "lengths" else torch.arange(sizes.keys) < 1
                inputs = {**inputs, name: one.expand(x.shape)}  # one key is seen
            return laws.low_scores(reading, inputs, ~rule_of(inputs, sizes), low)

        for low in (laws.LOW, laws.VERY_LOW):
            probe = change(self.given(), low)
            got = reading.tried(self.subject, probe)
            if got is None or self.agrees(got, probe):
                continue
            if low == laws.VERY_LOW:
                self.note("fill-finite", "A finite number stands for −∞.")
                return
            name = "overflow-large-scores" if self.vanishes(probe) else "fill-too-small"
            self.find(name, "property", how=lambda inputs: change(inputs, laws.LOW))
            return

    def vanishes(self, probe: Inputs) -> bool:
        """Whether low scores alone are lost: without a mask, or beside a hidden score as low."""
        reading = self.reading
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

        def emptied(inputs: Inputs) -> Inputs:
            sizes = reading.sizes_of(inputs)
            return {**inputs, **form.drawn(sizes, self.drawn(2), empty=True)}

        inputs = emptied(self.given())
        rows, got = with_keys(self.kind, inputs, self.base), reading.tried(subject, inputs)
        if got is None:
            self.unexamined.append("rows without a key")
            return
        if rows is None or rows.all():
            return
        rows = rows.expand(got.shape[:-1])
        if not self.agrees(got, inputs):
            name = "empty-row-nan" if got[rows].isnan().any() else "wrong-numbers"
            self.find(name, "property", how=emptied)
        elif got[~rows].isnan().any():
            self.find("empty-row-nan", "identified", how=emptied)
        elif agree(got, right(self.kind, inputs, {**self.base, "empty": "uniform"})):
            self.note("empty-row-uniform")
        elif not agree(got, right(self.kind, inputs, self.base)):
            said = "A query without any key gets something else than 0."
            self.note("empty-row-otherwise", said)
        elif not subject.written:
            gradients = laws.gradients(subject, reading, inputs)
            if any(x is not None and not x.isfinite().all() for x in gradients):
                self.find("empty-row-nan-gradient", "property", how="unshown")
