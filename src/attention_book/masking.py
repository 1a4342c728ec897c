"""Masks, and the softmax that respects them. True = may attend, everywhere."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from attention_book.shapes import at_least, checked


@checked
def length_mask(valid_lens: Tensor, num_keys: int) -> Tensor:
    """Let each query attend to the first `valid_lens` keys.

    Shapes:
        valid_lens  (batch) or (batch, queries), integers from 0 to keys
        returns     (batch, 1, keys) or (batch, queries, keys), boolean

    Raises:
        ValueError: for a length below 0 or above `num_keys`.
    """
    return _within_length(valid_lens, num_keys)


def _within_length(valid_lens: Tensor, num_keys: int) -> Tensor:
    positions = torch.arange(num_keys, device=valid_lens.device)
    ends = valid_lens.reshape(-1, 1, 1) if valid_lens.dim() == 1 else valid_lens.unsqueeze(-1)
    return positions < ends


def causal_mask(
    num_queries: int, num_keys: int | None = None, *, device: torch.device | str | None = None
) -> Tensor:
    """Let each query attend to its own position and to those before it; the last sees all keys.

    Returns:
        A boolean tensor (queries, keys); `num_keys` is `num_queries` where not given.

    Raises:
        TypeError, ValueError: for a number that is not an integer or is below 0.
    """
    at_least("causal_mask", "num_queries", num_queries, least=0)
    if num_keys is None:
        num_keys = num_queries
    at_least("causal_mask", "num_keys", num_keys, least=0)
    last_key = torch.arange(num_queries, device=device) + (num_keys - num_queries)
    return torch.arange(num_keys, device=device) <= last_key.unsqueeze(-1)


class Rule(NamedTuple):
    """What a call says about which keys its queries may attend to; a key must pass all three."""

    valid_lens: Tensor | None
    mask: Tensor | None
    causal: bool = False


def allowed_keys(
    rule: Rule, num_queries: int, num_keys: int, *, axes: int, device: torch.device
) -> Tensor | None:
    """Join lengths, mask and causality into one boolean tensor that broadcasts against the scores.

    The result has the `axes` of the scores, 3 (batch, queries, keys) or 4 (batch, heads, queries,
    keys), each of full size or 1; None where every key is allowed.
    """
    parts = [rule.mask] if rule.mask is not None else []
    if rule.valid_lens is not None:
        parts.append(_within_length(rule.valid_lens, num_keys))
    if rule.causal:
        parts.append(causal_mask(num_queries, num_keys, device=device))
    allowed = None
    for part in parts:
        if part.dim() == 2:
            part = part.unsqueeze(0)
        if axes == 4 and part.dim() == 3:
            part = part.unsqueeze(1)
        allowed = part if allowed is None else allowed & part
    return allowed


@checked
def masked_softmax(
    scores: Tensor,
    valid_lens: Tensor | None = None,
    *,
    mask: Tensor | None = None,
    causal: bool = False,
) -> Tensor:
    """Turn scores into weights over the allowed keys.

    Each row of weights sums to 1 and a masked key's weight is exactly 0, whatever its score is, NaN
    included. A query that may attend to nothing gets only zeros, and its scores get zero
    gradients. No argument is written to.

    Shapes:
        scores      (batch, queries, keys) or (batch, heads, queries, keys)
        valid_lens  (batch) or (batch, queries), integers from 0 to keys
        mask        (queries, keys) or (batch, queries, keys)
                    or (batch, heads, queries, keys), boolean, sizes may be 1
        allowed     (batch, queries, keys) or (batch, heads, queries, keys), boolean, sizes may be 1
        fill        (batch, queries, 1) or (batch, heads, queries, 1), sizes may be 1
        filled      (batch, queries, keys) or (batch, heads, queries, keys)
        weights     (batch, queries, keys) or (batch, heads, queries, keys)
        returns     (batch, queries, keys) or (batch, heads, queries, keys)

    Args:
        causal: let each query attend to the keys up to its own, the last query to all of them.

    Returns:
        Probabilities, in the shape and dtype of `scores`.

    Raises:
        ShapeError, TypeError, ValueError: for arguments that do not fit the table.
    """
    rule = Rule(valid_lens, mask, causal)
    allowed = allowed_keys(rule, *scores.shape[-2:], axes=scores.dim(), device=scores.device)
    if allowed is None:
        return torch.softmax(scores, dim=-1)
    has_key = allowed.any(dim=-1, keepdim=True)
    # An empty row is filled with 0, so that its softmax is finite, and zeroed at the end.
    fill = torch.where(has_key, -torch.inf, 0.0).to(scores.dtype)
    filled = torch.where(allowed, scores, fill)
    weights = torch.softmax(filled, dim=-1) * has_key
    return weights


def zero_unseen(
    rule: Rule, num_queries: int, keys: Tensor, values: Tensor
) -> tuple[Tensor, Tensor]:
    """The keys and the values, with zeros wherever no query of the example may attend.

    A weight of 0 does not keep NaN or ∞ out of a sum, since 0 · NaN is NaN. Zeros do.
    """
    is_seen = visible_keys(rule, num_queries, keys)
    if is_seen is None:
        return keys, values
    return torch.where(is_seen, keys, 0.0), torch.where(is_seen, values, 0.0)


def finite_padding(rule: Rule, x: Tensor) -> Tensor:
    """The positions of a sequence that attends to itself, with 0 for NaN and ±∞ in its padding.

    A padded position is a query too, and the residual adds it back: its finite numbers reach only
    its own output, but NaN there would reach the gradients of all parameters.
    """
    is_seen = visible_keys(rule, x.shape[-2], x)
    return x if is_seen is None else torch.where(is_seen | x.isfinite(), x, 0.0)


def visible_keys(rule: Rule, num_queries: int, keys: Tensor) -> Tensor | None:
    """Which keys some query of their example may attend to, with the axes of `keys`, the last 1.

    None where all are seen; so it is with `causal` alone, since the last query sees all keys.
    """
    if rule.valid_lens is None and rule.mask is None:
        return None
    axes = 4 if rule.mask is not None and rule.mask.dim() == 4 else keys.dim()
    allowed = allowed_keys(rule, num_queries, keys.shape[-2], axes=axes, device=keys.device)
    assert allowed is not None
    is_seen = allowed.any(dim=-2)
    if is_seen.dim() == keys.dim():  # the mask has heads, and the keys have none
        is_seen = is_seen.any(dim=1)
    elif keys.dim() == 4 and is_seen.shape[1] > keys.shape[1]:  # a group of heads shares its keys
        is_seen = is_seen.unflatten(1, (keys.shape[1], -1)).any(dim=2)
    return is_seen.unsqueeze(-1)
