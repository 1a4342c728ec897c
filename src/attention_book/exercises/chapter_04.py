"""Checkers of chapter 4, batched matrix multiplication."""

from __future__ import annotations

from typing import Any

from attention_book.exercises.checker import (
    Part,
    answered,
    called,
    drawn,
    exercise,
    first_mistake,
    lines,
    result,
    wrong_lines,
)
from attention_book.language import N_

#: PyTorch's names for a matrix product.
PRODUCTS = {
    *("matmul", "__matmul__", "__rmatmul__", "bmm", "mm", "mv", "dot", "vdot", "inner", "einsum"),
    *("tensordot", "baddbmm", "addmm", "linear", "cdist", "scaled_dot_product_attention"),
}


answered(
    "4.1",
    N_("Row 2 of Q meets row 1 of K: 6 + 1 − 1."),
    Part(
        "number",
        6,
        {
            2: N_("This is entry (1, 2), the first query with the second key."),
            4: N_("This is entry (1, 1), the first query with the first key."),
            3: N_("This is entry (2, 2), the second query with the second key."),
            8: N_("Check the sign of the last product: it is −1 · 1."),
        },
        N_("Multiply (3, 1, −1) and (2, 1, 1) component by component, then add."),
    ),
    hints=(
        N_("The columns of Kᵀ are the rows of K."),
        N_("The second query is (3, 1, −1) and the first key is (2, 1, 1)."),
    ),
)


answered(
    "4.2",
    N_("The letter of the keys is in both inputs and not in the output, so it is summed."),
    Part(
        "letters",
        "abc,acd->abd",  # the letters of an answer in the order in which they come
        {
            "abc,acd->adb": N_(
                "The output is transposed: the queries come before the value components."
            ),
            "abc,dce->abe": N_(
                "The batch has two letters, so one of them is summed: the examples are mixed."
            ),
            "abc,acd->abcd": N_(
                "The letter of the keys is still in the output, so nothing is summed."
            ),
            "abc,acd->bd": N_(
                "The letter of the batch is missing in the output: the examples are added up."
            ),
            "abc,acd->ab": N_(
                "The last letter of the values is missing in the output: their components are "
                "added."
            ),
            "abc,ade->abe": N_(
                "The keys have two letters, so each weight meets the sum of all values."
            ),
            "abc,acd->acd": N_(
                "The queries are summed instead of the keys: each value is multiplied by the "
                "sum of its column."
            ),
        },
        N_("Use one letter each for batch, queries, keys and components, and sum over the keys."),
        options=((2, 3, 5), (2, 5, 7)),
    ),
    hints=(
        N_("Give each axis a letter; axes that meet in both tensors share one."),
        N_("The sum runs over the letters that the output does not have. Which one must go?"),
    ),
)


answered(
    "4.3",
    N_("A step along the last axis is 1; along another, the product of the sizes after it."),
    Part(
        "shape",
        (15, 3, 1),
        {
            (2, 5, 3): N_("This is the shape; a stride is the distance in memory of one step."),
            (1, 2, 10): N_(
                "You counted from the first axis; in memory the last axis is contiguous."
            ),
            (5, 3, 1): N_("One example has 5 · 3 numbers, so the first stride is 15."),
        },
        N_("For a fresh tensor, a stride is the product of all sizes after its axis."),
        "fresh",
        N_("fresh"),
    ),
    Part(
        "shape",
        (15, 1, 3),
        {
            (15, 5, 1): N_(
                "These are the strides of a fresh (2, 3, 5) tensor; transposing copies nothing."
            ),
            (15, 3, 1): N_("With the same strides nothing would be transposed; two of them swap."),
        },
        N_("Swap the strides of the two axes, no more."),
        "transposed",
        N_("transposed"),
    ),
    hints=(
        N_("A stride says how many numbers of the memory one step along an axis passes."),
        N_(
            "One step along the last axis passes 1 number, one along the middle axis a row of 3. "
            "And one along the first?"
        ),
    ),
)


@exercise(
    "4.4",
    N_("The new axes make the pairs, and the sum removes the components."),
    lines(
        "(queries.unsqueeze(2) * keys.unsqueeze(1)).sum(-1)",
        3,
        {
            "(queries.unsqueeze(1) * keys.unsqueeze(2)).sum(-1)": N_(
                "These are transposed, one row per key: the two new axes are swapped."
            ),
            "queries.unsqueeze(2) * keys.unsqueeze(1)": N_(
                "The products of the components are not summed yet."
            ),
            "(queries.unsqueeze(2) + keys.unsqueeze(1)).sum(-1)": N_(
                "You added queries and keys; a dot product multiplies them."
            ),
        },
    ),
    question=N_("Which expression gives the scores?"),
    hints=(
        N_("Give both tensors four axes: batch, queries, keys, components."),
        N_(
            "The queries have no axis of the keys yet, and the keys no axis of the queries: where "
            "must `unsqueeze` put them?"
        ),
    ),
)
def scores_by_broadcasting(answer: Any) -> str | None:
    queries, keys = drawn(44, (2, 3, 7), (2, 5, 7))
    products = queries.unsqueeze(2) * keys.unsqueeze(1)
    scores = products.sum(-1)
    mistakes = [
        *wrong_lines("4.4", queries=queries, keys=keys),
        (
            products.mean(-1),
            N_("This is the mean over the components; a dot product is their sum."),
        ),
        (
            products.sum(-1, keepdim=True),
            N_("One axis of size 1 is left over: sum without keepdim."),
        ),
        (scores / 7**0.5, N_("The task asks for the plain dot product, without a scale.")),
    ]
    hint = N_("Each score is the sum, over the components, of a query times a key.")
    mistake = first_mistake(result(answer, queries, keys), scores, mistakes, hint)
    if mistake is None and PRODUCTS & set(called(answer, queries, keys)):
        return N_("The numbers are right, but you used a matrix product: use unsqueeze, * and sum.")
    return mistake


answered(
    "4.5",
    N_(
        "One multiplication for each example, query, key and component; and 4nd² = 2n²d at n = 2d, "
        "however many heads there are."
    ),
    Part(
        "number",
        8 * 12 * 20 * 64,
        {
            8 * 12 * 20: N_("This is the number of entries; each takes 64 multiplications."),
            12 * 20 * 64: N_("This is the work for one example; there are 8."),
            2 * 8 * 12 * 20 * 64: N_(
                "You counted the additions as well; the task asks for multiplications."
            ),
        },
        N_("For the multiplications, multiply batch, queries, keys and size."),
        "multiplications",
        N_("multiplications"),
    ),
    Part(
        "number",
        2 * 768,
        {
            4 * 768: N_("This is where one product equals the four projections; there are two."),
            768 / 2: N_("This counts one projection; a layer has four projections."),
            1.5 * 768: N_("This counts three projections; a layer has four projections."),
            2 * 64: N_(
                "You used the size of one head. All heads together do n²d multiplications in "
                "each product."
            ),
        },
        N_("For the positions, solve 2n²d = 4nd² for n."),
        "positions",
        N_("positions"),
    ),
    hints=(
        N_("One entry of the scores takes as many multiplications as a vector has components."),
        N_(
            "A projection of n positions takes n·d² multiplications, and each of the two products "
            "n²·d over all heads."
        ),
    ),
)
