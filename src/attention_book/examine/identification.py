"""Identification: which mistake gives these numbers.

The readable reference is computed with each option of the table, and its numbers are compared with
the subject's. Agreement of dozens of random numbers is no accident. Two mistakes that give the same
numbers are both named: nothing that was computed can tell them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import product
from typing import Any

import torch
from torch import Tensor

from attention_book.mistakes.reference import RARER, RULE, VARIANTS, Options, reference

Inputs = Mapping[str, Any]
OUTPUT = {"softmax": "weights", "attention": "output", "heads": "output", "rotation": "rotated"}


def right(kind: str, inputs: Inputs, options: Any = None, what: str = "") -> Tensor | None:
    """The reference's output, right or with options; None where these inputs do not allow it."""
    try:
        with torch.no_grad():
            return reference(kind, inputs, **(options or {}))[what or OUTPUT[kind]]
    except (ValueError, RuntimeError):
        return None


def agree(got: Tensor, wanted: Any, rows: Any = None, within: float = 2e-5) -> bool:
    """Whether the numbers are the same, NaN included; of the rows where `rows` is True alone."""
    if wanted is None or got.shape != wanted.shape:
        return False
    got, wanted = got.detach().double(), wanted.detach().double()
    if rows is not None:
        rows = rows.expand(wanted.shape[:-1])
        got, wanted = got[rows], wanted[rows]
    return torch.allclose(got, wanted, rtol=within, atol=within, equal_nan=True)


def with_keys(kind: str, inputs: Inputs, options: Options) -> Tensor | None:
    """Which rows have a key that they may attend to, under these options; None: all."""
    if kind == "rotation" or not {"allowed", "lengths", "causal"} & set(inputs):
        return None
    weights = right(kind, inputs, {k: v for k, v in options.items() if k in RULE}, "weights")
    rows = None if weights is None else weights.any(dim=-1)
    return rows.all(dim=1) if rows is not None and kind == "heads" else rows


class Table:
    """The numbers that each mistake gives for some inputs; computed once, compared often."""

    def __init__(self, kind: str, inputs: Options, *tables: Options, base: Any = None) -> None:
        self.kind, self.inputs, self.base = kind, inputs, dict(base or {})
        self.tables = tables
        self.right = self._numbers({})

    @cached_property
    def rows(self) -> list[tuple[tuple[str, ...], dict[str, Any], Tensor, Tensor | None]]:
        """Names, options, numbers, and the rows that count."""
        found = []
        for names in product(*self.tables):
            both = zip(self.tables, names, strict=True)
            several = [(one[n], *VARIANTS.get(n, ()), *RARER.get(n, ())) for one, n in both]
            for parts in product(*several):
                option = {key: value for part in parts for key, value in part.items()}
                numbers, rows = self._numbers(option)
                if numbers is not None and not agree(numbers, *self.right):
                    found.append((names, option, numbers, rows))
        return found

    def _numbers(self, option: Options) -> tuple[Tensor | None, Tensor | None]:
        option = {**self.base, **option}
        return right(self.kind, self.inputs, option), with_keys(self.kind, self.inputs, option)

    def single(self, got: Tensor) -> list[str]:
        """The names alone, of a table of one mistake at a time."""
        return [names[0] for names, _ in self.names(got)]

    def names(self, got: Tensor) -> list[tuple[tuple[str, ...], dict[str, Any]]]:
        """The mistakes with these numbers, each with its options."""
        found: dict[tuple[str, ...], dict[str, Any]] = {}
        for names, option, numbers, rows in self.rows:
            if names not in found and agree(got, numbers, rows):
                found[names] = option
        return list(found.items())
