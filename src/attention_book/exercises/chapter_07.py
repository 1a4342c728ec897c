"""Checkers of chapter 7, multi-head attention."""

from __future__ import annotations

from typing import Any

import torch

from attention_book.exercises.checker import NotAnsweredError, exercise, result, same


@exercise("7.1", "4 heads of 5 make 20, 4 heads of 3 make 12, and each head has its own weights.")
def head_shapes(answer: Any) -> str | None:
    if ... in answer.values():
        raise NotAnsweredError
    projected, weights, merged = (
        tuple(answer[name]) for name in ("projected_keys", "weights", "merged")
    )
    if projected == (2, 9, 5):
        return "One projection serves all heads: its width is heads times d_k."
    if projected == (2, 9, 24):
        return "The width is d_model only where heads times d_k happen to be d_model."
    if projected != (2, 9, 20):
        return "The projected keys have one row a key, as wide as all heads' keys together."
    if weights == (2, 7, 9):
        return "Each head has weights of its own; only the framework's default averages them."
    if weights != (2, 4, 7, 9):
        return "The weights have one map of queries and keys for each head of each example."
    if merged == (2, 7, 20):
        return "What is merged are means of values: their size is d_v, not d_k."
    if merged == (2, 7, 24):
        return "The width becomes d_model only after W_o."
    return None if merged == (2, 7, 12) else "Merged heads have one row a query."


@exercise("7.2", "Four matrices of 256 by 256; the number of heads does not enter.")
def num_parameters(answer: Any) -> str | None:
    if same(answer, 196608):
        return "These are the three input matrices; W_o is missing."
    if same(answer, 263168):
        return "You counted biases; here there are none."
    if same(answer, 8 * 262144):
        return "You gave each head the full width; each has 32 of the 256."
    if same(answer, 32768):
        return "These are the four matrices of one head; there are 8."
    return None if same(answer, 262144) else "Count W_q, W_k, W_v and W_o, each inputs × outputs."


@exercise("7.3", "The last axis is cut, and then heads and positions change places.")
def split(answer: Any) -> str | None:
    x = torch.arange(2 * 6 * 12, dtype=torch.float64).reshape(2, 6, 12)
    got = result(answer, x, 3)
    by_head = x.unflatten(-1, (3, 4))
    if same(got, x.reshape(2, 3, 6, 4)):
        return "Right shape, wrong numbers: view alone cuts the sequence, not the width."
    if same(got, by_head):
        return "Heads and positions have still to change places."
    if same(got, x.unflatten(-1, (4, 3)).permute(0, 3, 1, 2)):
        return "You dealt the numbers out in turn; each head takes a stretch of neighbours."
    if same(got, by_head.permute(0, 2, 3, 1)):
        return "The last two axes are swapped: positions come before the numbers of one."
    if not same(got, by_head.transpose(1, 2)):
        return f"Expected the shape {(2, 3, 6, 4)}: cut the last axis, then swap axes 1 and 2."
    return None


@exercise("7.4", "First the swap, then the join: the reverse of the split.")
def merge(answer: Any) -> str | None:
    x = torch.arange(2 * 3 * 6 * 4, dtype=torch.float64).reshape(2, 3, 6, 4)
    got = result(answer, x)
    if same(got, x.reshape(2, 6, 12)):
        return "Right shape, wrong numbers: heads and positions must change places first."
    if same(got, x.permute(0, 2, 3, 1).flatten(2)):
        return "Heads must come before their numbers, so that each head's stay together."
    if same(got, x.sum(1)) or same(got, x.mean(1)):
        return "Heads are put side by side, not added."
    if not same(got, x.transpose(1, 2).flatten(2)):
        return f"Expected the shape {(2, 6, 12)}: swap axes 1 and 2, then join the last two."
    return None


@exercise("7.5", "Each length is repeated in place, so that the heads of one example share it.")
def folded_lens(answer: Any) -> str | None:
    valid_lens = torch.tensor([1, 4, 0])
    got = result(answer, valid_lens, 2)
    if same(got, valid_lens.repeat(2)):
        return "The lengths take turns, so a head gets the length of another example."
    if same(got, valid_lens):
        return "There is one length an example still; each head of it needs one."
    if same(got, valid_lens[:, None].expand(3, 2)):
        return "The numbers are right; join the two axes to one, batch*heads."
    if same(got, 2 * valid_lens):
        return "The lengths themselves do not change; there are more of them."
    right = same(got, valid_lens.repeat_interleave(2))
    return None if right else "Expected a tensor of shape (6,): each length, once for each head."
