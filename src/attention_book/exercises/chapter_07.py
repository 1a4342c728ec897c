"""Checkers of chapter 7, multi-head attention."""

from __future__ import annotations

from typing import Any

import torch

from attention_book.exercises.checker import (
    borrowed,
    exercise,
    fields,
    first_mistake,
    result,
)


@exercise("7.1", "4 heads of 5 make 20, 4 heads of 3 make 12, and each head has its own weights.")
def head_shapes(answer: Any) -> str | None:
    projected, weights, merged = fields(answer, "projected_keys", "weights", "merged")
    return (
        first_mistake(
            projected,
            (2, 9, 20),
            [
                ((2, 9, 5), "One projection serves all heads: its width is heads times d_k."),
                ((2, 9, 24), "The width is d_model only where heads times d_k equals d_model."),
                ((2, 9, 12), "This is the width of the projected values: heads times d_v."),
            ],
            "The projected keys have one row per key, as wide as the keys of all heads together.",
        )
        or first_mistake(
            weights,
            (2, 4, 7, 9),
            [
                (
                    (2, 7, 9),
                    "Each head has its own weights; PyTorch's own module averages them by default.",
                ),
                ((2, 4, 9, 7), "The rows are the queries, the columns are the keys."),
            ],
            "The weights have one map of queries and keys for each head of each example.",
        )
        or first_mistake(
            merged,
            (2, 7, 12),
            [
                ((2, 7, 20), "What is merged are means of values: their size is d_v, not d_k."),
                ((2, 7, 24), "The width becomes d_model only after W_o."),
            ],
            "Merged heads have one row per query, as wide as the values of all heads together.",
        )
    )


@exercise("7.2", "Four matrices of 256 by 256; the number of heads makes no difference.")
def num_parameters(answer: Any) -> str | None:
    mistakes = [
        (196608, "These are the three input matrices; W_o is missing."),
        (263168, "You counted biases; here there are none."),
        (8 * 262144, "You gave each head the full width; each has 32 of the 256."),
        (32768, "These are the four matrices of one head; there are 8."),
    ]
    hint = "Count W_q, W_k, W_v and W_o, each inputs × outputs."
    return first_mistake(answer, 262144, mistakes, hint)


@exercise("7.3", "The last axis is split, and then heads and positions are swapped.")
def split(answer: Any) -> str | None:
    x = torch.arange(2 * 6 * 12, dtype=torch.float64).reshape(2, 6, 12)
    by_head = x.unflatten(-1, (3, 4))
    mistakes = [
        (
            x.reshape(2, 3, 6, 4),
            "Right shape, wrong numbers: view alone cuts the sequence, not the width.",
        ),
        (by_head, "The axes of heads and positions are not swapped yet."),
        (
            x.unflatten(-1, (4, 3)).permute(0, 3, 1, 2),
            "You gave every third feature to a head; a head takes features that are neighbours.",
        ),
        (
            by_head.permute(0, 2, 3, 1),
            "The last two axes are swapped: positions come before the features of one head.",
        ),
    ]
    hint = "Split the last axis into (heads, size), then swap axes 1 and 2."
    mistake = first_mistake(result(answer, x, 3), by_head.transpose(1, 2), mistakes, hint)
    if mistake is None and "split_heads" in borrowed(answer):
        return "The numbers are right, but the task is to write it without `split_heads`."
    return mistake


@exercise("7.4", "First the swap, then the join: the reverse of the split.")
def merge(answer: Any) -> str | None:
    x = torch.arange(2 * 3 * 6 * 4, dtype=torch.float64).reshape(2, 3, 6, 4)
    added = "Heads are put side by side, not added."
    mistakes = [
        (
            x.reshape(2, 6, 12),
            "Right shape, wrong numbers: heads and positions must be swapped first.",
        ),
        (
            x.permute(0, 2, 3, 1).flatten(2),
            "Heads must come before their features, so that the features of a head stay together.",
        ),
        (x.transpose(1, 2), "The axes are swapped; the last two are not joined yet."),
        (x.sum(1), added),
        (x.mean(1), added),
    ]
    hint = "Swap axes 1 and 2, then join the last two."
    mistake = first_mistake(result(answer, x), x.transpose(1, 2).flatten(2), mistakes, hint)
    if mistake is None and "merge_heads" in borrowed(answer):
        return "The numbers are right, but the task is to write it without `merge_heads`."
    return mistake


@exercise("7.5", "Each length is repeated in place, so that the heads of one example share it.")
def folded_lens(answer: Any) -> str | None:
    valid_lens = torch.tensor([1, 4, 0])
    mistakes = [
        (
            valid_lens.repeat(2),
            "The lengths alternate, so that a head gets the length of another example.",
        ),
        (valid_lens, "This is one length per example; each of its heads needs one."),
        (
            valid_lens[:, None].expand(3, 2),
            "The numbers are right; join the two axes into one, batch*heads.",
        ),
        (2 * valid_lens, "The lengths themselves do not change; there are more of them."),
    ]
    right = valid_lens.repeat_interleave(2)
    hint = "Each length appears once for each head, and the heads of one example are neighbours."
    return first_mistake(result(answer, valid_lens, 2), right, mistakes, hint)
