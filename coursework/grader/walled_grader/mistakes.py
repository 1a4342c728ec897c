"""The known mistakes of a course: a file for each question, each mistake as a change of one answer.

A file, `mistakes/ASSIGNMENT/QUESTION.diff`, holds solutions one after the other. Each begins with
a line `=== name: what it gets wrong`. A mistake that is met in many places has its sentence once,
in `mistakes/sentences.json`, under a name that the line gives instead: `=== name: that name`, or
`=== that name` alone. The first is right, and written out. Of the others, whole
code is taken as it is; else it is the first one's code, changed: a line after `-` goes, a line
after `+` comes in its place, and a line after a space stays, to say where. Names that begin with
`right` are right solutions, written in other ways.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

from . import course


@dataclass(frozen=True)
class Solution:
    """One answer to a question: a known mistake, or a right one."""

    name: str
    sentence: str  #: what is wrong with it, as students read it
    code: str

    @property
    def right(self) -> bool:
        return self.name.startswith("right")

    def run(self) -> dict[str, Any]:
        """What its code defines."""
        space: dict[str, Any] = {"torch": torch}
        exec(compile(self.code, f"<{self.name}>", "exec"), space)
        return space


class WrongMistakeError(Exception):
    """A file of mistakes is not what it should be; the message says where."""


def read(path: Path) -> list[Solution]:
    """The solutions in a file; none where there is no such file.

    Raises:
        WrongMistakeError: for one without a sentence, or a change that does not fit.
    """
    if not path.exists():
        return []
    found: list[Solution] = []
    shared = sentences(path.parents[1])
    for part in ("\n" + path.read_text(encoding="utf-8")).split("\n=== ")[1:]:
        head, _, body = part.rstrip().partition("\n")
        name, _, sentence = head.partition(": ")
        sentence = shared.get(sentence or name, sentence)
        if not (name and sentence and body):
            raise WrongMistakeError(f"{path}: “{head}” is not “name: what it gets wrong” with code")
        if re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", sentence):
            raise WrongMistakeError(f"{path}, {name}: sentences.json has no mistake “{sentence}”")
        if any(name == one.name for one in found):
            raise WrongMistakeError(f"{path}: two solutions are called {name}")
        try:
            code = changed(found[0].code, body) if body[0] in " +-" else body
        except (WrongMistakeError, IndexError) as why:
            raise WrongMistakeError(f"{path}, {name}: {why}") from None
        found.append(Solution(name, sentence, code))
    return found


def sentences(folder: Path) -> dict[str, str]:
    """The sentences that a course's mistakes share, by name; none where it has no such file."""
    path = folder / "sentences.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def changed(code: str, change: str) -> str:
    """A solution's code after a change of some of its lines, which come in their order."""
    lines, made = code.splitlines(), []
    for line in change.splitlines():
        sign, text = line[:1], line[1:]
        if sign != "+":
            if text not in lines:
                raise WrongMistakeError(f"there is no line “{text}” to change here")
            place = lines.index(text)
            made += lines[:place]
            del lines[: place + 1]
        if sign != "-":
            made.append(text)
    return "\n".join([*made, *lines])


def of_question(place: str) -> list[Solution]:
    """The solutions of a question such as "2_scoring_functions/q1"."""
    return read(course.mistakes() / f"{place}.diff")


def known(place: str, name: str, *inputs: Any) -> Iterator[tuple[str, Any]]:
    """What each known mistake of a question gives as answer `name`, with its sentence.

    A function is called with copies of `inputs`; one that raises an error is left out. Nothing runs
    before the first is asked for, so that a right answer costs nothing.
    """
    for sentence, space in _wrong(course.mistakes() / f"{place}.diff"):
        if name not in space:
            continue
        answer = space[name]
        if callable(answer):
            try:
                answer = answer(*map(_copy, inputs))
            except Exception:  # whatever a wrong solution raises where it does not fit
                continue
        yield sentence, answer


@cache
def _wrong(path: Path) -> tuple[tuple[str, dict[str, Any]], ...]:
    return tuple((one.sentence, one.run()) for one in read(path) if not one.right)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(one) for key, one in value.items()}
    return value.clone() if isinstance(value, torch.Tensor) else value
