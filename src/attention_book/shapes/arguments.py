"""Plain arguments: sizes, counts, factors and probabilities, refused in one sentence."""

from __future__ import annotations

import numbers

import torch

# An abstract class takes long to ask, so `int` and `float` come before theirs.


def at_least(owner: object, name: str, value: int, least: int = 1) -> int:
    """Return `value`, an integer of at least `least`.

    `owner` is the module whose argument it is, or the name of a function; messages begin with it.
    A symbolic size of torch.export is an integer too.

    Raises:
        TypeError, ValueError: for anything else.
    """
    if not isinstance(value, (int, numbers.Integral, torch.SymInt)) or isinstance(value, bool):
        raise TypeError(
            f"{_name(owner)}: {name} must be an integer, but is of type {type(value).__name__}"
        )
    if value < least:
        raise ValueError(f"{_name(owner)}: {name} must be at least {least}, but is {value}")
    return value


def number(owner: object, name: str, value: float) -> float:
    """Return `value`, an integer or a float; raise TypeError otherwise."""
    if not isinstance(value, (int, float, numbers.Real)) or isinstance(value, bool):
        raise TypeError(
            f"{_name(owner)}: {name} must be a number, but is of type {type(value).__name__}"
        )
    return value


def probability(owner: object, name: str, value: float) -> float:
    """Return `value`, a number from 0 to 1; raise TypeError or ValueError otherwise."""
    if not 0 <= number(owner, name, value) <= 1:
        raise ValueError(f"{_name(owner)}: {name} must lie between 0 and 1, but is {value}")
    return value


def _name(owner: object) -> str:
    return owner if isinstance(owner, str) else type(owner).__name__
