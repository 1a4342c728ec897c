"""Checkers of chapter 2, scoring functions."""

from __future__ import annotations

from typing import Any

import torch

from attention_book.exercises.checker import (
    Part,
    UnusableError,
    answered,
    drawn,
    exercise,
    fields,
    first_mistake,
    kind,
    lines,
    numbers,
    result,
    sentences,
    wrong_lines,
)
from attention_book.language import N_, say
from attention_book.measure import peak_bytes
from attention_book.scoring import distance_scores

#: Said of the line that is right and wasteful, and of a function like it.
TOO_MANY_BYTES = N_(
    "The numbers are right, but at its peak your function uses as much memory as the differences "
    "of all pairs take."
)

answered(
    "2.1",
    N_("The long key wins by dot product, the near key by distance."),
    Part(
        "numbers",
        [3, 2],
        {
            (2, 3): N_("The two dot scores are in the wrong order: the key (3, 0) comes first."),
            (0, 2): N_("In each dot product both products count: 1·3 + 2·0 and 1·0 + 2·1."),
        },
        N_("Compute the dot scores again, one key at a time."),
        "dot",
        N_("dot products"),
    ),
    Part(
        "numbers",
        [-4, -1],
        {
            (-1, -4): N_(
                "The two distance scores are in the wrong order: the key (3, 0) comes first."
            ),
            (4, 1): N_("A distance is small for similar vectors; a score must be large: minus."),
            (-8, -2): N_("The half is missing: −½ times the squared distance."),
            (8, 2): N_("These are squared distances; the score is −½ times that."),
            (-2.83, -1.41): N_("These are distances with a minus; square them and halve."),
            (2.83, 1.41): N_("These are distances; the score is −½ times their square."),
        },
        N_("Compute the distance scores again, one key at a time."),
        "distance",
        N_("distance scores"),
        tolerance=0.01,
    ),
    hints=(
        N_("A distance score is −½ times the squared length of the difference."),
        N_("From (1, 2) to (3, 0) the steps are 2 and −2. What is the squared length of that?"),
    ),
    importance=3,
)


def _stays(right: bool, sentence: str, name: str, label: str) -> Part:
    options = {N_("True"): True, N_("False"): False}  # the page has words of its own for them
    return Part("choice", right, {}, sentence, name, label, options=tuple(options.values()))


answered(
    "2.2",
    N_("Adding the same number to all its inputs leaves a softmax unchanged."),
    _stays(
        True,
        N_("The query's length is the same for all its keys, so its factor cancels."),
        "add the query's squared length to each score",
        N_("add the query's squared length to each score"),
    ),
    _stays(
        False,
        N_("Each key has a length of its own: the scores change by different amounts."),
        "add each key's squared length to its score",
        N_("add each key's squared length to its score"),
    ),
    _stays(
        False,
        N_("Twice the scores are twice the differences: the softmax becomes sharper."),
        "multiply every score by 2",
        N_("multiply every score by 2"),
    ),
    _stays(
        True,
        N_("The largest score is one number, the same for all keys, so its factor cancels."),
        "subtract the largest score from each",
        N_("subtract the largest score from each"),
    ),
    hints=(
        N_("Only the differences between the scores of one query matter."),
        N_("For each change ask: is the same number added to every score of this query?"),
    ),
    importance=3,
)


answered(
    "2.3",
    N_("The entry in row i and column j is the factor of q_i k_j."),
    Part(
        "rows",
        [[0, 1], [0, 0], [-1, 0]],
        {
            ((0, 0, -1), (1, 0, 0)): N_(
                "This is the transpose: W has one row per component of the query, 3 by 2."
            ),
            ((0, 1), (0, 0), (1, 0)): N_("The sign of the second term is missing."),
            ((0, -1), (0, 0), (1, 0)): N_("Both signs are reversed."),
            ((0, 1), (-1, 0), (0, 0)): N_(
                "The −1 belongs to q₃, the third row; this gives q₁k₂ − q₂k₁."
            ),
        },
        N_("Put the factor of q_i k_j into row i and column j."),
    ),
    hints=(
        N_(
            "W has a row for each component of the query and a column for each component of the "
            "key."
        ),
        N_("Each term of the score gives one entry of W, and every other entry is 0."),
    ),
)


@exercise(
    "2.4",
    N_("One matrix product, and two squared lengths that broadcasting adds."),
    lines(
        "queries @ keys.mT - 0.5 * queries.square().sum(-1, keepdim=True) "
        "- 0.5 * keys.square().sum(-1).unsqueeze(1)",
        2,
        {
            "-0.5 * (queries.unsqueeze(2) - keys.unsqueeze(1)).square().sum(-1)": TOO_MANY_BYTES,
            "queries @ keys.mT - 0.5 * queries.square().sum(-1, keepdim=True)": N_(
                "The key's length is missing, and that changes the weights."
            ),
            (
                "queries @ keys.mT - queries.square().sum(-1, keepdim=True) "
                "- keys.square().sum(-1).unsqueeze(1)"
            ): N_("Halve the two squared lengths, but not the dot product."),
        },
    ),
    question=N_("Which expression gives all the scores in few bytes?"),
    hints=(
        N_("Multiply out ‖q − k‖². Which of the three terms is a matrix product?"),
        N_(
            "The other two terms are one number per query and one per key; give them the axes that "
            "broadcasting needs."
        ),
    ),
)
def lean_distance_scores(answer: Any) -> str | None:
    queries, keys = drawn(24, (2, 30, 11), (2, 40, 11))
    dots = queries @ keys.mT
    of_queries = queries.square().sum(-1, keepdim=True)
    of_keys = keys.square().sum(-1).unsqueeze(1)
    right = distance_scores(queries, keys)
    mistakes = [
        (-right, N_("The sign is reversed: the nearest key must have the largest score.")),
        (2 * right, N_("The half is missing: −½ times the squared distance.")),
        (-2 * right, N_("This is the squared distance; the score is −½ times that.")),
        ((-2 * right).sqrt(), N_("This is the distance; the score is −½ times its square.")),
        (right / 11, N_("This is the mean over the components; the squares are summed.")),
        (dots, N_("This is the dot product: both squared lengths are missing.")),
        (dots - of_keys / 2, N_("The weights would be right, but the query's length is missing.")),
        *wrong_lines("2.4", queries=queries, keys=keys),
        (dots + of_queries / 2 + of_keys / 2, N_("Subtract the squared lengths; you added them.")),
        (right.mT, N_("The scores are transposed: one row per query.")),
    ]
    hint = N_("Multiply out −½‖q − k‖²: it has three terms, and one is a matrix product.")
    mistake = first_mistake(result(answer, queries, keys), right, mistakes, hint)
    if mistake is None and (
        peak_bytes(lambda: answer(queries, keys)) >= right.numel() * queries.shape[-1] * 8
    ):
        return TOO_MANY_BYTES
    return mistake


def _sum(name: str, right: object, why: str) -> Part:
    return Part("shape", right, {}, why, name, name, words=("error", "错误", "报错"))


answered(
    "2.5",
    N_("Aligned on the right, sizes fit if they are equal or one of them is 1."),
    _sum(
        "(2, 3) + (2, 3, 4)",
        "error",
        N_("Shapes are aligned on the right, where 3 meets 4: neither is 1, so it is an error."),
    ),
    _sum(
        "(2, 1, 4) + (2, 3, 4)",
        (2, 3, 4),
        N_("Only the middle sizes differ, and 1 is repeated to 3."),
    ),
    _sum(
        "(3, 1) + (4)",
        (3, 4),
        N_(
            "From the right, 1 meets 4 and is repeated; then 3 meets a missing axis, which counts "
            "as 1."
        ),
    ),
    _sum(
        "(3) + (3, 1)",
        (3, 3),
        N_(
            "From the right, 3 meets 1, and then a missing axis, which counts as 1, meets 3: both "
            "are repeated."
        ),
    ),
    hints=(
        N_("Write the two shapes below each other, with their right ends in one column."),
        N_("In each column the sizes must be equal, or one of them 1 or missing."),
    ),
    importance=3,
)


@exercise(
    "2.6",
    N_("The length of key i acts on row i, so the weights are those of the plain dot product."),
    Part(
        "choice",
        "2 queries, keys (2, 1) and (4, 2)",
        {
            "1 query, keys (2, 1) and (4, 2)": (
                N_(
                    "With one query and {0} keys the result has the shape (1, {0}, {0}): the "
                    "mistake shows in the shape."
                ),
                2,
            ),
            "3 queries, keys (2, 1) and (4, 2)": (
                N_(
                    "With {0} queries and {1} keys their function raises an error: choose the "
                    "numbers so that it does not."
                ),
                *(3, 2),
            ),
            "2 queries, keys (2, 1) and (1, 2)": N_(
                "Your keys are equally long, so the weights are right: no such test finds the bug."
            ),
        },
        "",
        options=(
            N_("1 query, keys (2, 1) and (4, 2)"),
            N_("3 queries, keys (2, 1) and (4, 2)"),
            N_("2 queries, keys (2, 1) and (1, 2)"),
            N_("2 queries, keys (2, 1) and (4, 2)"),
        ),
    ),
    question=N_(
        "All queries are (2, 1). Which test shows the bug, with scores of the right shape?"
    ),
    hints=(
        N_(
            "Which axis of the scores does `half_key_squares` meet, that of the queries or that of"
            " the keys?"
        ),
        N_(
            "With as many queries as keys, row i gets one number for the whole row. What does a "
            "softmax make of it? Then choose keys that differ in length."
        ),
    ),
)
def revealing_case(answer: Any) -> str | None:
    vectors = []
    for name, given in zip(("queries", "keys"), fields(answer, "queries", "keys"), strict=True):
        found = numbers(given)
        if found is not None and found.dim() == 3 and len(found) == 1:
            found = found[0]  # with an axis for the batch, of one example
        if found is None or found.dim() != 2 or 0 in found.shape:
            raise UnusableError(
                say(
                    "{0}: expected a list of vectors, such as [[1, 2], [3, 4]], but got {1}.",
                    name,
                    kind(given),
                )
            )
        if not found.isfinite().all():
            return say("{0}: with NaN or infinity no weights can be compared.", name)
        vectors.append(found)
    queries, keys = vectors
    if queries.shape[-1] != keys.shape[-1]:
        return say(
            "Queries and keys must have the same size, but yours have {0} and {1} components.",
            queries.shape[-1],
            keys.shape[-1],
        )
    if len(keys) == 1:
        return N_("With a single key every weight is 1, so no weight can be on the wrong key.")
    (one_query, _), (unlike, *_), _ = sentences("2.6")
    if len(queries) == 1:
        return say(one_query, len(keys))
    if len(queries) != len(keys):
        return say(unlike, len(queries), len(keys))
    return _verdict(queries, keys)


def _verdict(queries: torch.Tensor, keys: torch.Tensor) -> str | None:
    """What their function makes of as many queries as keys; None where a favourite is wrong."""
    dots = queries @ keys.mT
    right = dots - 0.5 * keys.square().sum(-1)  # up to a constant per row
    theirs = dots.argmax(-1, keepdim=True)  # a constant per row does not change it
    if (right.gather(-1, theirs) < right.amax(-1, keepdim=True) - 1e-6).any():
        return None
    lengths = keys.norm(dim=-1)
    if lengths.max() - lengths.min() < 1e-6:
        return sentences("2.6")[-1]
    return N_(
        "Each query's largest weight is on the right key here. Think of a long key that the dot "
        "product prefers and the distance does not."
    )
