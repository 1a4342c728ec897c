"""examine: choose the kind, run its examination, and report."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from attention_book.examine.decoder import DecoderExamination
from attention_book.examine.heads import HeadsExamination
from attention_book.examine.reading import signature
from attention_book.examine.report import CannotExamine, Report
from attention_book.examine.rotation import RotationExamination
from attention_book.examine.stages import Examination, SoftmaxExamination
from attention_book.examine.subject import Refused, Subject, restored

MEANINGS = ("allowed", "blocked", "added", "lengths")
LAYOUTS = ("bhld", "blhd", "bld", "lbd", "ld")

EXAMINATIONS: dict[str, Callable[..., Any]] = {
    "softmax": SoftmaxExamination,
    "attention": Examination,
    "heads": HeadsExamination,
    "rotation": RotationExamination,
    "decoder": DecoderExamination,
}
KINDS = tuple(EXAMINATIONS)


def guessed(subject: Subject) -> list[str]:
    """The kinds that a subject may be, the likeliest first."""
    name, names = subject.name.lower(), subject.names or [""]
    first = names[0].lower()
    embeds = any(isinstance(part, nn.Embedding) for part in subject.parts)
    if embeds or re.search(r"^(tokens?|input_ids|idx|ids|tok)$", first):
        return ["decoder"]
    if re.search(r"rotary|rope|rotat", name) or {"cos", "freqs_cis"} & set(names):
        return ["rotation"]
    lazy = nn.parameter.UninitializedParameter
    if any(isinstance(p, lazy) or p.dim() > 1 for part in subject.parts for p in part.parameters()):
        return ["heads", "attention"] if subject.otherwise else ["heads"]
    told = signature(subject, 3, ("queries", "keys", "values"))
    if re.search("softmax|weights", name) or re.match("scores|logits|energy|attn_scores", first):
        return ["softmax", "attention"]
    if len(subject.required) >= 3 or told.by_keyword or len(names) >= 3:
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
    asked = (("kind", kind, KINDS), ("mask", mask, MEANINGS), ("layout", layout, LAYOUTS))
    for name, value, words in asked:
        if value is not None and value not in words:
            raise ValueError(f"examine: {name} must be one of {', '.join(words)}, but is {value!r}")
    started = time.monotonic()
    with restored():
        told = Subject(subject, seconds)
        reports, refused = [], []
        for one in [kind] if kind else guessed(told):
            examined = Subject(subject, seconds - (time.monotonic() - started))
            examination: Any = None
            try:
                examination = EXAMINATIONS[one](examined, mask, layout, seed, heads, allow)
                examination.run()
            except CannotExamine as error:
                refused.append(error)
                called = examination and (examination.reading.layout or examination.said)
                if not called or not examination.findings:
                    continue
                examination.unexamined.append(f"what comes after: {error.reason}")
            except Refused as error:
                examination.unexamined.append(f"what comes after: {error}")
            reading = examination.said or str(examination.reading)
            said = examination.findings, examination.notes, examination.unexamined
            reports.append(Report(one, reading, *said))
            if reports[-1].ok:
                break
    if not reports:
        raise CannotExamine(refused[0].reason, [t for error in refused for t in error.tried])
    # numbers that nothing explains count more than several mistakes with a name
    best = min(reports, key=lambda r: sum(1 + 9 * (f.name == "wrong-numbers") for f in r.findings))
    best.seconds = time.monotonic() - started
    return best
