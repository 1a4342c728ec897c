"""What an examination says: findings, notes, and the lines of Python that show a finding."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from attention_book.mistakes import MISTAKES

#: The page of each exhibit that does not stand in the museum.
PAGES = {
    label: page
    for page, labels in {
        "01_queries_keys_values": ("slip-c10",),
        "03_masking": ("trap-01", "trap-03", "trap-06", "trap-18", "left-padding"),
        "06_scaled_dot_product": ("trap-17", "causal-alignment"),
        "07_multi_head": ("trap-14", "fewer-kv-heads", "output-projection"),
        "08_self_attention_block": ("order-blind", "slip-c7"),
        "09_three_uses": ("key-value-cache", "three-uses"),
        "11_language_model": ("cache-may-keep",),
    }.items()
    for label in labels
}


class CannotExamine(ValueError):  # noqa: N818 the name is the contract's
    """A subject that could not be called in any way that was tried.

    Attributes:
        reason: one sentence.
        tried: calls, each with its error.
    """

    def __init__(self, reason: str, tried: Sequence[str] = ()) -> None:
        self.reason = reason
        self.tried = list(tried)
        super().__init__("\n  ".join([reason, *self.tried[:8]]))


@dataclass
class Finding:
    """One mistake.

    Attributes:
        certainty: "identified" where the numbers agree with the mistake's, "property" where a law
            is broken.
        also: names of mistakes that give the same numbers.
        exhibit: a link into the book, or None.
        inputs, expected, got: the smallest failing example that was found.
        call: lines of Python that show it.
    """

    name: str
    certainty: str
    sentence: str
    also: list[str] = field(default_factory=list)
    exhibit: str | None = None
    inputs: dict[str, Any] = field(default_factory=dict)
    expected: Tensor | None = None
    got: Tensor | None = None
    call: str = ""

    def __str__(self) -> str:
        also = f" (or {', '.join(self.also)})" if self.also else ""
        lines = [f"{self.name}{also}: {self.sentence}", *self.call.splitlines()]
        for name, shown in (("expected", self.expected), ("got", self.got)):
            if shown is not None:
                lines.append(f"# {name}: {written(shown)}")
        return "\n    ".join(lines)


@dataclass
class Note:
    """A convention that a caller should know."""

    name: str
    sentence: str

    def __str__(self) -> str:
        return f"note {self.name}: {self.sentence}"


@dataclass
class Report:
    """What `examine` found.

    Attributes:
        reading: how the subject was called.
        unexamined: names of the properties that could not be looked at.
    """

    kind: str
    reading: str
    findings: list[Finding] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    unexamined: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def to_dict(self) -> dict[str, Any]:
        """Everything as data that JSON can hold; numbers that are not finite become words."""
        return plain({**vars(self), "ok": self.ok})

    def __repr__(self) -> str:
        head = "right" if self.ok else f"{len(self.findings)} found"
        lines = [f"{self.kind}: {head}, called as {self.reading}"]
        lines += [str(one) for one in (*self.findings, *self.notes)]
        if self.unexamined:
            lines.append(f"not examined: {', '.join(self.unexamined)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head, *rest = (f"<p>{html.escape(line)}</p>" for line in repr(self).splitlines()[:1])
        for finding in self.findings:
            name = f"<code>{finding.name}</code>"
            if finding.exhibit:
                name = f'<a href="{finding.exhibit}">{name}</a>'
            name += "".join(f" or <code>{other}</code>" for other in finding.also)
            told = html.escape("\n".join(str(finding).splitlines()[1:]))
            rest.append(f"<p>{name}: {html.escape(finding.sentence)}</p><pre>{told}</pre>")
        rest += [f"<p>{html.escape(str(note))}</p>" for note in self.notes]
        return head + "".join(rest)


def exhibit(name: str) -> str | None:
    """Where the book takes a mistake apart, as a page and a place on it."""
    label = MISTAKES[name].exhibit if name in MISTAKES else ""
    return f"{PAGES.get(label, 'museum')}.html#{label}" if label else None


def sentence(name: str) -> str:
    """The catalogue's sentence."""
    if name == "wrong-numbers":
        return "The numbers are wrong, and no known mistake gives them."
    return MISTAKES[name].sentence


def written(x: Any) -> str:
    """A value as Python writes it: a tensor as its nested lists, whole numbers with few digits."""
    if isinstance(x, Tensor):
        x = x.tolist()
    if isinstance(x, list):
        return f"[{', '.join(map(written, x))}]"
    if isinstance(x, float):
        if not abs(x) < torch.inf:
            return {"inf": "torch.inf", "-inf": "-torch.inf"}.get(str(x), "torch.nan")
        return f"{int(x)}." if x == int(x) and abs(x) < 1e6 else f"{x:.6g}"
    return repr(x)


def plain(x: Any) -> Any:
    """Data that JSON can hold."""
    if isinstance(x, Tensor):
        x = x.tolist()
    if isinstance(x, Finding | Note):
        x = vars(x)
    if isinstance(x, dict):
        return {name: plain(value) for name, value in x.items()}
    if isinstance(x, list | tuple):
        return [plain(part) for part in x]
    if isinstance(x, complex) or (isinstance(x, float) and not abs(x) < torch.inf):
        return str(x)
    return x
