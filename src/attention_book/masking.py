"""Masks, and the softmax that respects them. True = may attend, everywhere."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from attention_book.shapes import checked, positive, unchecked


@checked
def length_mask(valid_lens: Tensor, num_keys: int) -> Tensor:
    """Let each query attend to the first `valid_lens` keys.

    Shapes:
        valid_lens  (batch) or (batch, queries), integers from 0 to keys
        positions   (keys), integers
        ends        (batch, 1, 1) or (batch, queries, 1), integers
        returns     (batch, 1, keys) or (batch, queries, keys), boolean

    Raises:
        ValueError: for a length below 0 or above `num_keys`.
    """
    positions = torch.arange(num_keys, device=valid_lens.device)
    ends = valid_lens.view(-1, 1, 1) if valid_lens.dim() == 1 else valid_lens.unsqueeze(-1)
    return positions < ends


_length_mask = unchecked(length_mask)


def causal_mask(
    num_queries: int, num_keys: int | None = None, *, device: torch.device | str | None = None
) -> Tensor:
    """Let each query attend to its own position and to those before it; the last sees all keys.

    Returns:
        A boolean tensor (queries, keys); `num_keys` is `num_queries` where not given.

    Raises:
        TypeError, ValueError: for a number that is no integer or below 0.
    """
    positive("num_queries", num_queries, least=0)
    num_keys = num_queries if num_keys is None else positive("num_keys", num_keys, least=0)
    every = torch.ones(num_queries, num_keys, dtype=torch.bool, device=device)
    return every.tril(diagonal=num_keys - num_queries)


def allowed_keys(
    valid_lens: Tensor | None, mask: Tensor | None, num_keys: int, *, with_heads: bool
) -> Tensor | None:
    """Join lengths and mask into one boolean tensor that broadcasts against the scores.

    A key must pass both. The lengths are checked already. The result has the axes of the scores,
    (batch, queries, keys) or (batch, heads, queries, keys), each of full size or 1; None where
    every key is allowed.
    """
    if mask is not None:
        if mask.dim() == 2:
            mask = mask.unsqueeze(0)
        if with_heads and mask.dim() == 3:
            mask = mask.unsqueeze(1)
    if valid_lens is None:
        return mask
    lengths = _length_mask(valid_lens, num_keys)
    if with_heads:
        lengths = lengths.unsqueeze(1)
    return lengths if mask is None else lengths & mask


@checked
def masked_softmax(
    scores: Tensor, valid_lens: Tensor | None = None, *, mask: Tensor | None = None
) -> Tensor:
    """Turn scores into weights over the allowed keys.

    Each row of weights sums to 1 and a masked key's weight is exactly 0. A query that may attend
    to nothing gets only zeros, and its scores get zero gradients. No argument is written to.

    Shapes:
        scores      (batch, queries, keys) or (batch, heads, queries, keys)
        valid_lens  (batch) or (batch, queries), integers from 0 to keys
        mask        (queries, keys) or (batch, queries, keys)
                    or (batch, heads, queries, keys), boolean, sizes may be 1
        allowed     (batch, queries, keys) or (batch, heads, queries, keys), boolean, sizes may be 1
        ceiling     (batch, queries, keys) or (batch, heads, queries, keys), sizes may be 1
        filled      (batch, queries, keys) or (batch, heads, queries, keys)
        weights     (batch, queries, keys) or (batch, heads, queries, keys)
        returns     (batch, queries, keys) or (batch, heads, queries, keys)

    Returns:
        Probabilities, in the shape and dtype of `scores`.

    Raises:
        ShapeError, TypeError, ValueError: for arguments that do not fit the table.
    """
    num_keys = scores.shape[-1]
    allowed = allowed_keys(valid_lens, mask, num_keys, with_heads=scores.dim() == 4)
    if allowed is None:
        return torch.softmax(scores, dim=-1)
    # Without a mask the empty rows are those of length 0.
    counts = valid_lens if valid_lens is not None and mask is None else allowed.any(dim=-1)
    has_key = None if is_known_true(counts) else allowed.any(dim=-1, keepdim=True)
    # The lower of score and ceiling is the score or −inf: what masked_fill gives, at a quarter of
    # its time where the mask broadcasts. (A sum with −inf would turn a masked +inf into NaN.)
    ceiling = _ceiling(allowed, scores.dtype)
    capped = _lower(scores, ceiling)
    # An empty row is filled with 0, so that its softmax is finite, and zeroed at the end.
    filled = capped if has_key is None else capped.masked_fill(~has_key, 0.0)
    finite = _softmax_of_temporary(filled)
    weights = finite if has_key is None else finite.masked_fill(~has_key, 0.0)
    return weights


def _ceiling(allowed: Tensor, dtype: torch.dtype) -> Tensor:
    """+inf over allowed keys, −inf over the others."""
    ceiling = torch.where(allowed, torch.inf, -torch.inf)
    return ceiling if ceiling.dtype == dtype else ceiling.to(dtype)


def _lower(scores: Tensor, ceiling: Tensor) -> Tensor:
    if scores.requires_grad and runs_plainly():
        return _LowerBeforeSoftmax.apply(scores, ceiling)  # type: ignore[no-any-return]
    return torch.minimum(scores, ceiling)


class _LowerBeforeSoftmax(torch.autograd.Function):
    """torch.minimum for training, in a third of the time: it compares nothing on the way back.

    The gradient passes unchanged, since a softmax sends none to a score of −inf anyway.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, ceiling: Tensor) -> Tensor:
        return torch.minimum(scores, ceiling)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None


def _softmax_of_temporary(temporary: Tensor) -> Tensor:
    """Softmax over the last axis, in the memory of `temporary` where no gradient needs it."""
    if temporary.requires_grad or not runs_plainly():
        return torch.softmax(temporary, dim=-1)
    return torch.softmax(temporary, dim=-1, out=temporary)


def is_known_true(flags: Tensor) -> bool:
    """Whether all are True, or not 0; False where finding out would force a synchronisation."""
    if not flags.is_cpu or not runs_plainly():
        return False
    # A batch of lengths is short, and Python looks through it in a fraction of the time.
    return all(flags.tolist()) if flags.dim() == 1 else bool(flags.all())


def runs_plainly() -> bool:
    """Whether operations run now and on numbers alone, so that they may write into memory.

    Not so under torch.compile, under torch.vmap and its like, and in forward-mode differentiation.
    """
    return not (
        torch.compiler.is_compiling()
        or torch._C._functorch.peek_interpreter_stack() is not None
        or forward_ad._current_level >= 0
    )


def is_transformed() -> bool:
    """Whether torch.vmap, torch.func.grad or their like run the code, on tensors of their own."""
    if torch.compiler.is_compiling():
        return False
    return torch._C._functorch.peek_interpreter_stack() is not None
