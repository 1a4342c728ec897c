"""Checkers of chapter 3, masking."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attention_book.exercises.checker import exercise, result, same
from attention_book.masking import length_mask, masked_softmax


@exercise("3.1", "Only the allowed keys stand in the sum: 1 : 3, divided by 4.")
def weights_by_pencil(answer: Any) -> str | None:
    if same(answer, torch.tensor([1.0, 3, 5, 7]) / 16, 1e-3):
        return "These are the weights without a mask."
    if same(answer, torch.tensor([1.0, 3, 0, 0]) / 16, 1e-3):
        return (
            "You masked after the softmax: the row sums to 1/4. Leave the padding out of the sum."
        )
    if same(answer, torch.tensor([1.0, 3, 1, 1]) / 6, 1e-3):
        return "You gave the padding the score 0, and e to the 0 is 1. Its score must be −∞."
    if not same(answer, torch.tensor([1.0, 3, 0, 0]) / 4, 1e-3):
        return "Four weights: e raised to each valid score, over the sum of these; 0 for padding."
    return None


@exercise("3.2", "The size-1 axis stands for the queries: one mask for all of them.")
def padding_mask(answer: Any) -> str | None:
    tokens = torch.tensor([[5, 3, 0], [0, 7, 0], [4, 1, 2]])  # batch = length: the accident fits
    real = tokens != 0
    mask = result(answer, tokens)
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        return "The mask must be a boolean tensor."
    if same(mask, real):
        return (
            "A mask (batch, length) is read as (queries, keys). Where batch = length it fits by "
            "accident; give it an axis for the queries."
        )
    if same(mask, ~real) or same(mask, ~real[:, None]):
        return "The polarity is inverted: True = may attend, so True where the token is real."
    if same(mask, real[:, :, None]):
        return "The mask lies on the query axis: (batch, length, 1) forbids padding to look."
    if not same(mask.expand(3, 3, 3) if mask.dim() == 3 else mask, real[:, None].expand(3, 3, 3)):
        return f"Three axes, (batch, 1, length); yours has shape {tuple(mask.shape)}."
    return None


@exercise("3.3", "Two masks joined: not the future, and not too long ago.")
def window_mask(answer: Any) -> str | None:
    def band(oldest: int, newest: int) -> Tensor:
        offset = torch.arange(7)[None, :] - torch.arange(7)[:, None]
        return (offset >= oldest) & (offset <= newest)

    mask = result(answer, 7)
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        return "The mask must be a boolean tensor."
    mistakes = {
        "This lets each query see the whole past; the window is missing.": band(-7, 0),
        "The window is one position too long.": band(-3, 0),
        "The window is one position too short: itself and the two before.": band(-1, 0),
        "The query itself must be seen too.": band(-2, -1),
        "The window reaches into the future.": band(-2, 2),
        "The window lies in the future: rows are queries, columns are keys.": band(0, 2),
        "The polarity is inverted: True = may attend.": ~band(-2, 0),
    }
    for mistake, wrong in mistakes.items():
        if same(mask, wrong):
            return mistake
    return None if same(mask, band(-2, 0)) else "Row i is True at the columns i−2, i−1 and i."


@exercise("3.4", "Exact zeros, sums of 1, and a finite gradient for an empty row.")
def my_masked_softmax(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(34)
    scores = torch.randn(2, 3, 4, generator=generator)
    lens = torch.tensor([[1, 4, 2], [3, 2, 4]])
    mask = length_mask(lens, 4)
    given = scores.clone()
    got = result(answer, given, mask.clone())
    if not same(given, scores):
        return "It writes into its argument: the caller's scores have changed."
    if mistake := _mistake_in_weights(got, scores, mask):
        return mistake
    low = torch.full((1, 1, 4), -2e6)
    if not same(result(answer, low, mask[1:, 1:2]), torch.tensor([[[0.5, 0.5, 0, 0]]])):
        return "Real scores of −2·10⁶ lose their weight: fill with −∞, lower than every score."
    half = result(answer, scores.half(), mask)
    if not isinstance(half, Tensor) or not half.isfinite().all():
        return "In float16 it gives NaN or infinity."
    mask[0, 1] = False
    leaf = scores.clone().requires_grad_()
    empty = result(answer, leaf, mask)
    if empty[0, 1].isnan().any():
        return "A query that may attend to nothing gets NaN; it must get zeros."
    if not same(empty[0, 1], torch.zeros(4)):
        return "A query that may attend to nothing gets weights on masked keys; it must get zeros."
    empty.square().sum().backward()
    if leaf.grad is None or not leaf.grad.isfinite().all():
        return "The weights are right, but an empty row has NaN for a gradient: mend the scores."
    return None


def _mistake_in_weights(got: Any, scores: Tensor, mask: Tensor) -> str | None:
    if not isinstance(got, Tensor) or got.shape != scores.shape:
        return "The weights must have the shape of the scores."
    got = got.nan_to_num()  # where a wrong axis or polarity leaves nothing to attend to
    plain = torch.softmax(scores, dim=-1)
    if same(got, plain):
        return "The mask has no effect."
    if same(got, plain * mask):
        return "You masked after the softmax: the rows do not sum to 1."
    if same(got, torch.softmax(scores * mask, dim=-1)):
        return "A masked score of 0 still gets weight, because e to the 0 is 1."
    for axis in (0, 1):
        if same(got, torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=axis).nan_to_num()):
            return "The softmax runs along the wrong axis: the keys are last."
    if same(got, masked_softmax(scores, mask=~mask)):
        return "The polarity is inverted: True = may attend."
    if (got[~mask] != 0).any():
        return "A masked key keeps some weight; it must be exactly 0."
    if not same(got, masked_softmax(scores, mask=mask)):
        return "The allowed weights of a row must be the softmax of the allowed scores."
    return None


@exercise("3.5", "Two libraries, two polarities: say what True means.")
def key_padding_mask(answer: Any) -> str | None:
    lens = torch.tensor([3, 1, 0])
    allowed = length_mask(lens, 4).squeeze(1)
    mask = result(answer, lens, 4)
    if same(mask, allowed):
        return "Here True = blocked; yours is True where a key is valid."
    if same(mask, ~allowed[:, None]):
        return "The polarity is right; drop the axis of size 1: (batch, keys)."
    if same(mask, allowed[:, None]):
        return "Here True = blocked, and the shape must be (batch, keys)."
    if not same(mask, ~allowed):
        return "Row b is False at its first valid_lens[b] positions, and True after them."
    return None if mask.dtype == torch.bool else "The mask must be boolean."
