"""The known mistakes: one wrong solution per file in `mutants`, with its sentence as docstring."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch

MUTANTS = Path(__file__).parent / "mutants"


def known(place: str, name: str, *inputs: Any) -> Iterator[tuple[str, Any]]:
    """What each known mistake of a question gives as answer `name`, with its sentence.

    `place` is the question's folder, such as "2_scoring_functions/q1". A function is called with
    copies of `inputs`; one that raises an error is left out. Nothing runs before the first is
    asked for, so that a right answer costs nothing.
    """
    for sentence, space in _solutions(place):
        if name not in space:
            continue
        answer = space[name]
        if not callable(answer):
            yield sentence, answer
            continue
        copies = [_copy(one) for one in inputs]
        try:
            result = answer(*copies)
        except Exception:  # whatever a wrong solution raises where it does not fit
            continue
        yield sentence, result


@cache
def _solutions(place: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    found = []
    for path in sorted((MUTANTS / place).glob("*.py")):
        if path.stem.startswith("right"):
            continue
        space: dict[str, Any] = {}
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), space)
        found.append((space["__doc__"], space))
    return tuple(found)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(one) for key, one in value.items()}
    return value.clone() if isinstance(value, torch.Tensor) else value
