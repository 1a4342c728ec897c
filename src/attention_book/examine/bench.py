"""The bench: a subject with its reading, numbers to try, and the findings with their examples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attention_book.examine import laws
from attention_book.examine.identification import Table, agree, right, with_keys
from attention_book.examine.reading import Inputs, Reading, Sizes, declared_layout, signature
from attention_book.examine.report import Finding, Note, exhibit, sentence, written
from attention_book.examine.subject import Subject

#: The words that make a mistake a convention.
DOCUMENTED = {
    "empty-row-nan": r"\bnan\b",
    "causal-aligned-to-first": r"\b(top|upper)[ -]left\b",
    "cosine-for-dot": r"\bcosine (attention|scores?|similarit)",
    "distance-for-dot": r"\bdistances?\b|\b(gaussian|rbf) kernel|kernel regression",
}


def numbers(shape: tuple[int, ...], drawn: torch.Generator, whole: bool) -> Tensor:
    """Random numbers."""
    if whole:
        return torch.randint(-2, 4, shape, generator=drawn).double()
    return torch.randn(shape, generator=drawn, dtype=torch.float64) * 1.5


class Bench:
    """What every stage of an examination uses."""

    kind = "attention"
    roles: tuple[str, ...] = ("queries", "keys", "values")
    block = False  # whether a module does more than attend
    unread = Reading("", "", Sizes(), ())

    def __init__(
        self, subject: Subject, mask: Any, layout: Any, seed: int, heads: Any, allow: Sequence[str]
    ) -> None:
        self.subject, self.mask, self.seed, self.heads = subject, mask, seed, heads
        self.allow = allow
        self.layout = layout or declared_layout(subject, self.kind == "decoder")
        self.findings: list[Finding] = []
        self.notes: list[Note] = []
        self.unexamined: list[str] = []
        self.base: dict[str, Any] = {}
        self.reading = self.unread
        self.said = ""  # how it was called, where that is no Reading
        self.own_score = False  # whether the score is the subject's own
        self.width: int | None = None  # the one size of a key that its divisor is right for
        self.others: dict[str, Reading] = {}  # one for each layout, where the numbers are wrong
        self.told: set[str] = set()  # masks that have been examined
        self.signature = signature(subject, len(self.roles), self.roles)

    def draw(self, sizes: Sizes, drawn: torch.Generator, whole: bool = False) -> Inputs:
        """Random inputs without a rule; whole numbers for an example that is read."""
        b, h, q, k, d, e = vars(sizes).values()
        shapes = {"queries": (b, h, q, d), "keys": (b, h, k, d), "values": (b, h, k, e)}
        return {role: numbers(shape, drawn, whole) for role, shape in shapes.items()}

    def inputs(self, sizes: Sizes, extra: int = 0, whole: bool = False) -> Inputs:
        drawn = torch.Generator().manual_seed(self.seed + 1 + extra)
        return self.draw(sizes, drawn, whole)

    def given(self, extra: int = 0, whole: bool = False, sizes: Sizes | None = None) -> Inputs:
        """Inputs under the reading that was found, without a mask."""
        inputs = self.inputs(sizes or self.reading.sizes, extra, whole)
        inputs |= self.seen_by_all(inputs)
        return {**inputs, "causal": True} if self.reading.causal == "always" else inputs

    def seen_by_all(self, inputs: Inputs) -> Inputs:
        """A rule that hides nothing, where the subject insists on one."""
        form, sizes = self.plain().form, self.reading.sizes_of(inputs)
        if form is None:
            return {}
        if form.meaning == "lengths":
            return {"lengths": torch.full((sizes.batch,), sizes.keys)}
        return {"allowed": torch.ones(1, 1, 1, 1, dtype=torch.bool)}

    def drawn(self, extra: int = 0) -> torch.Generator:
        return torch.Generator().manual_seed(self.seed + 17 + extra)

    def widths(self) -> list[int]:
        """Sizes of a vector that a subject may insist on, by what it holds."""
        kept = list(getattr(self.subject.thing, "__dict__", {}).values())
        for part in self.subject.parts:
            kept += [*part.parameters(recurse=False), *part.buffers(recurse=False)]
        said = [n for n in kept if isinstance(n, int)]
        for x in (x for x in kept if isinstance(x, Tensor) and x.dim()):
            said += [2 * x.shape[-1], x.shape[-1], *(2 * n for n in x.shape[:-1])]
        return [n for n in dict.fromkeys(said) if n % 2 == 0 and 2 < n <= 256]

    def plain(self) -> Reading:
        """The reading without a mask, where the subject does not insist on one."""
        if self.reading.slot in self.subject.required:
            return self.reading
        return replace(self.reading, slot=None, form=None)

    def agrees(self, got: Tensor, inputs: Inputs, within: float = 2e-5) -> bool:
        """Whether the numbers are the reference's with the mistakes that are named."""
        wanted = right(self.kind, inputs, self.base)
        rows = with_keys(self.kind, inputs, self.base)
        within = within if self.subject.double else 1e-2
        return wanted is None or agree(got, wanted, rows, within)

    def equal_by_nature(self) -> bool:
        """Whether keys come from the queries' own sequence."""
        return self.kind == "heads" and len(self.signature.sequences) == 1

    def judged(
        self, tables: list[tuple[bool, Table]], got: Tensor, only_right: bool = False
    ) -> tuple[int, list[str], dict[str, Any]]:
        """How many mistakes explain these numbers, 2 for none that is known; and which."""
        for always, table in tables:
            if agree(got, *table.right):
                return 0, [], {"always": always}
        if only_right or self.block:
            return 2, [], {}
        for always, table in tables:
            found = table.names(got)
            if always:
                found = [one for one in found if one[0][0] != "causal-ignored"]
            if found:
                if re.search("fill|where", self.subject.code):  # of those with these numbers
                    found.sort(key=lambda one: one[0][0] != "fill-zero")
                return 1, [names[0] for names, _ in found], {**found[0][1], "always": always}
        return 2, [], {}

    def effects(self) -> None:
        """What a call does besides giving a result."""
        reading, subject = self.reading, self.subject
        bare, inputs, other = self.given(), self.given(), self.given(5)
        if reading.form is not None:
            inputs |= reading.form.drawn(reading.sizes, self.drawn())
            other |= reading.form.drawn(reading.sizes, self.drawn(3))
            other |= {n: x.flip(0) for n, x in other.items() if n == "lengths"}
        plain = reading.tried(subject, inputs)
        if plain is None:
            return
        if subject.dtype == torch.float64 and not subject.double:
            self.find("dtype-changed", "property", how="unshown")
        elif subject.written:
            self.find("writes-to-input", "property", how="unshown")
        elif subject.unsettles:
            self.find("global-state-changed", "property", how="unshown")
        elif laws.remembers(subject, self.plain(), bare, reading, inputs, other):
            self.find("remembers-last-call", "property", how="unshown")
        elif not self.findings and None in laws.gradients(subject, reading, inputs):
            self.find("gradient-missing", "property", how="unshown")
        elif laws.strides_matter(subject, reading, inputs, plain):
            self.find("noncontiguous-wrong", "property", how="unshown")
        elif reading.sizes.batch > 1 and not {"over", "change", "among"} & set(self.base):
            single = laws.one_example(inputs)
            alone = reading.tried(subject, single)
            wrong = alone is None or not (agree(plain[:1], alone) or self.agrees(alone, single))
            if wrong and not {"examples-mixed", "wrong-numbers"} & {f.name for f in self.findings}:
                self.find("batch-of-one", "property", how="unshown")

    def documented(self, name: str) -> bool:
        """Whether its words say so, or those of PyTorch's that it calls or is named after."""
        subject, pytorchs = self.subject, ["empty-row-nan", "causal-aligned-to-first"]
        if not subject.installed and re.search("cache|decod", subject.words):
            pytorchs.pop()  # there the last query is promised to be the present one
        said = name in DOCUMENTED and re.search(DOCUMENTED[name], subject.words)
        return bool(said) or (subject.library and name in pytorchs)

    def note(self, name: str, said: str = "") -> None:
        """Keep a note, once."""
        note = Note(name, said or sentence(name))
        if note not in self.notes:
            self.notes.append(note)

    def find(self, name: str, sure: str, also: Any = (), how: Any = "") -> Finding | None:
        """Keep a finding, with the smallest example that shows it; a convention is a note.

        Args:
            how: examples come "masked", "causal", changed by a function, or not ("unshown").
        """
        if name in {finding.name for finding in self.findings}:
            return None
        if name in self.allow or self.documented(name):
            self.note(name)
            return None
        if name == "wrong-numbers" and self.findings:  # what else a cause shows is not told
            self.unexamined.append("what comes after the first mistake")
            return None
        finding = Finding(name, sure, sentence(name), list(also), exhibit(name))
        self.findings.append(finding)
        if how != "unshown" and self.reading.layout:
            any(self.shows(finding, inputs) for inputs in self.examples(how))
        return finding

    def explain(
        self, names: list[str], how: laws.Change | str, unknown: str = "wrong-numbers"
    ) -> None:
        """Keep the finding of numbers that these mistakes give, or none that is known."""
        name, sure = (names[0], "identified") if names else (unknown, "property")
        self.find(name, sure, names[1:], how)

    def examples(self, how: laws.Change | str) -> Iterator[Inputs]:
        """Inputs from small to large, of whole numbers first."""
        reading = self.reading
        most, form, d = reading.sizes, reading.form, self.width or 2
        small = [(1, 1, 2, 2), (1, 1, 2, 3), (2, 1, 2, 2), (1, 2, 2, 2), (2, 2, 2, 3), (2, 2, 3, 3)]
        wide = [(*sizes, d, d) for sizes in (*small, (1, 1, most.queries, most.keys))]
        tried = [
            (Sizes(*sizes), extra, True)
            for sizes in (*wide, (1, 1, 2, 2, d, d + 1))
            for extra in range(3)
            if all(a <= b for a, b in zip(sizes[:3], list(vars(most).values())[:3], strict=True))
            and (sizes[2] == sizes[3] or most.odd)
        ]
        for sizes, extra, whole in [*tried, (most, 0, False)]:
            inputs = self.given(extra, whole, sizes)
            if how == "causal":
                inputs["causal"] = True
            if how == "masked" and form is not None:
                inputs |= form.drawn(sizes, self.drawn(extra))
            yield inputs if isinstance(how, str) else how(inputs)

    def shows(self, finding: Finding, inputs: Inputs) -> bool:
        """Whether the subject is wrong for these inputs; if so they are the finding's example."""
        reading = self.reading
        if "allowed" not in inputs and "lengths" not in inputs:
            reading = self.plain()
        own = {name: option for name, option in self.base.items() if callable(option)}
        wanted, got = right(self.kind, inputs, own), reading.tried(self.subject, inputs)
        if wanted is None or got is None or agree(got, wanted):
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
