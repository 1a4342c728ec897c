"""Checkers of chapter 7, multi-head attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attention_book.exercises.checker import (
    Part,
    answered,
    borrowed,
    drawn,
    exercise,
    first_mistake,
    lines,
    result,
    wrong_lines,
)
from attention_book.language import N_, say
from attention_book.multihead import merge_heads, split_heads

answered(
    "7.1",
    N_(
        "2 key heads of 5 make 10, 4 query heads of 3 make 12; each query head has its own weights."
    ),
    Part(
        "shape",
        (2, 9, 10),
        {
            (2, 9, 20): N_("There are only 2 heads of keys; 4 is the number of query heads."),
            (2, 9, 5): N_("One projection makes the keys of both heads: 2 times d_k."),
            (2, 9, 24): N_("The width is d_model only where heads times d_k equals d_model."),
            (2, 9, 6): N_("This is the shape of the projected values; a key has size d_k = 5."),
            (2, 2, 9, 5): N_("This is the shape after the split; before it, heads share an axis."),
        },
        N_("The projected keys have one row per key, as wide as the keys of both heads together."),
        "projected_keys",
        N_("projected keys"),
    ),
    Part(
        "shape",
        (2, 4, 7, 9),
        {
            (2, 7, 9): N_(
                "Each head has its own weights; PyTorch's own module averages them by default."
            ),
            (2, 4, 9, 7): N_("The rows are the queries, the columns are the keys."),
            (2, 2, 7, 9): N_(
                "Heads of keys are shared, but each query head has weights of its own."
            ),
        },
        N_("For each example, each of the 4 query heads has one map of queries and keys."),
        "weights",
        N_("weights"),
    ),
    Part(
        "shape",
        (2, 7, 12),
        {
            (2, 7, 20): N_("What is merged are means of values: their size is d_v, not d_k."),
            (2, 7, 6): N_("Each of the 4 query heads has an output, though heads share values."),
            (2, 7, 24): N_("The width becomes d_model only after W_o."),
        },
        N_("Merged heads have one row per query, as wide as the outputs of all 4 heads together."),
        "merged",
        N_("merged heads"),
    ),
    hints=(
        N_("Which heads are there 4 of, and which only 2?"),
        N_("A projection makes all heads of its kind at once, side by side on the last axis."),
    ),
    importance=3,
)


def _cut(x: Tensor, num_heads: int) -> Tensor:
    """The wrong split: heads are stretches of the sequence."""
    batch, length, width = x.shape
    return x.reshape(batch, num_heads, length, width // num_heads)


def _strided(x: Tensor, num_heads: int) -> Tensor:
    """Another wrong split: a head takes every num_heads-th feature."""
    return x.unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2)


@exercise(
    "7.2",
    N_("Project, split, attend in each head, merge, project: nothing else is needed."),
    hints=(
        N_("Write a small function that splits the width into heads; you need it three times."),
        N_(
            "Split the last axis into `(num_heads, size)`, then swap that axis of heads with the "
            "axis of positions. After attention do both steps backwards."
        ),
    ),
    importance=3,
)
def multi_head(answer: Any) -> str | None:
    x, W_q, W_k, W_v, W_o = drawn(72, (2, 5, 8), (8, 12), (8, 12), (8, 6), (6, 8))
    num_heads = 3

    def attended(
        split: Callable[[Tensor, int], Tensor] = split_heads, scale: float = 0.5, axis: int = -1
    ) -> Tensor:
        q, k, v = (split(x @ W, num_heads) for W in (W_q, W_k, W_v))
        return torch.softmax(q @ k.mT * scale, dim=axis) @ v

    def joined(heads: Tensor) -> Tensor:
        return heads.reshape(2, 5, 6)

    one_head = torch.softmax(x @ W_q @ (x @ W_k).mT / 12**0.5, dim=-1) @ (x @ W_v) @ W_o
    cut = N_(
        "The split is wrong: reshape alone cuts the sequence. Split the width, then transpose."
    )
    mistakes = [
        (merge_heads(attended()), N_("The heads are merged; W_o is not applied yet.")),
        (
            joined(attended()) @ W_o,
            N_("The merge is wrong: transpose heads and positions before the reshape."),
        ),
        (joined(attended(_cut)) @ W_o, cut),
        (merge_heads(attended(_cut)) @ W_o, cut),
        (
            merge_heads(attended(_strided)) @ W_o,
            N_("A head takes neighbouring features; yours takes every third one."),
        ),
        (one_head, N_("This is one head of the full width: the heads are not split.")),
        (
            merge_heads(attended(scale=1.0)) @ W_o,
            N_("The scores are not scaled; divide them by √d_k, the root of the size of one head."),
        ),
        (
            merge_heads(attended(scale=12**-0.5)) @ W_o,
            N_(
                "The scores are divided by √(3 · d_k); divide them by √d_k, the root of the size "
                "of one head."
            ),
        ),
        (
            merge_heads(attended(scale=8**-0.5)) @ W_o,
            N_(
                "The scores are divided by √d_model; divide them by √d_k, the root of the size of "
                "one head."
            ),
        ),
        (
            merge_heads(attended(scale=0.25)) @ W_o,
            N_(
                "The scores are divided by d_k, not its root; divide them by √d_k, the root of the "
                "size of one head."
            ),
        ),
        (
            merge_heads(attended(axis=-2)) @ W_o,
            N_("The softmax runs over the queries; each query's weights sum to 1 over the keys."),
        ),
    ]
    hint = N_(
        "Project, split the width, transpose, attend with √d_k, transpose back, join, apply W_o."
    )
    right = merge_heads(attended()) @ W_o
    got = result(answer, x, W_q, W_k, W_v, W_o, num_heads)
    mistake = first_mistake(got, right, mistakes, hint)
    if mistake is None and (names := borrowed(answer)):
        return say("The numbers are right, but the task is to write it without `{0}`.", names[0])
    return mistake


@exercise(
    "7.3",
    N_("The query heads of a group are neighbours, so each head is repeated in place."),
    lines(
        "heads.repeat_interleave(num_heads // heads.shape[1], dim=1)",
        1,
        {
            "heads.repeat(1, num_heads // heads.shape[1], 1, 1)": N_(
                "The heads alternate: index i holds head i % 2, but its group is i // 3."
            ),
            "heads": N_("Nothing is repeated: 6 query heads need 6 entries on axis 1."),
            "heads[:, :1].expand(-1, num_heads, -1, -1)": N_(
                "This is multi-query attention: only head 0 is used. Here there are 2 groups."
            ),
        },
    ),
    question=N_("Which expression repeats the heads as their groups need them?"),
    hints=(
        N_("With 6 query heads and 2 groups, which query heads share head 0?"),
        N_("Neighbours share a head, so each head is repeated before the next one comes."),
    ),
)
def share(answer: Any) -> str | None:
    heads = torch.arange(2 * 2 * 3 * 5, dtype=torch.float64).reshape(2, 2, 3, 5)
    right = heads.repeat_interleave(3, dim=1)
    mistakes = [
        *wrong_lines("7.3", heads=heads, num_heads=6),
        (
            heads.repeat(1, 2, 1, 1)[:, :4],
            N_(
                "There is one copy for each group; each group needs one for each of its query "
                "heads."
            ),
        ),
        (
            heads[:, :, None].expand(2, 2, 3, 3, 5),
            N_("The copies are right; join the two axes of groups and of heads within a group."),
        ),
    ]
    hint = N_(
        "With 6 query heads and 2 groups, entries 0, 1, 2 are head 0 and entries 3, 4, 5 head 1."
    )
    mistake = first_mistake(result(answer, heads, 6), right, mistakes, hint)
    if mistake is None and (names := borrowed(answer)):
        return say("The numbers are right, but the task is to write it without `{0}`.", names[0])
    return mistake


answered(
    "7.4",
    N_("2 · 80 · 8 · 128 numbers per token, 2 bytes each: 320 KiB per token, 10 GiB in all."),
    Part(
        "number",
        10,
        {
            5: N_("The cache keeps keys and values, not only one of the two."),
            80: N_("Only the 8 heads of keys and values are kept, not all 64 query heads."),
            20: N_("This is with 4 bytes per number; here there are 2."),
            10 * 2**30 / 1e9: N_("This is in gigabytes of 10⁹ bytes; divide by 2³⁰."),
            10 * 2**30: N_("This is the number of bytes; divide by 2³⁰."),
            1 / 8: N_("This is one layer; each of the 80 has a cache of its own."),
            1.25: N_("This is one head of keys and values; there are 8."),
        },
        N_("Multiply: keys and values, layers, their heads, the head size, bytes, tokens."),
        unit="GiB",
    ),
    hints=(
        N_("What is kept for each token, in each layer?"),
        N_("Count the numbers of one token first: keys and values, of 8 heads, in 80 layers."),
    ),
    importance=3,
)
