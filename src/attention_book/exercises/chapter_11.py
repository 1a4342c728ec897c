"""Checkers of chapter 11, a model that continues text."""

from __future__ import annotations

import math
from typing import Any

import torch

from attention_book.exercises.checker import (
    TWO_DECIMALS,
    Part,
    UnusableError,
    answered,
    boolean,
    borrowed,
    exercise,
    first_mistake,
    in_parts,
    lines,
    result,
    sentences,
    wrong_lines,
)
from attention_book.language import N_, say


@exercise(
    "11.1",
    N_("Each merge changes the pairs that the next one counts."),
    Part(
        "choice",
        ("an", "ana", "ban"),
        {
            ("an", "na", "ana"): N_(
                "After the first merge most of these n are inside “an”, so count the pairs again."
            ),
            ("an", "and", "ban"): N_(
                "The second token joins “an” with the character that follows it most often."
            ),
            ("an", "ana", "nd"): N_(
                "The third token begins two words: “b” and “an” are neighbours twice."
            ),
        },
        N_("Count the pairs again after each merge."),
        options=(
            ("an", "na", "ana"),
            ("an", "and", "ban"),
            ("an", "ana", "ban"),
            ("an", "ana", "nd"),
        ),
    ),
    question=N_("Which three tokens does it make, in this order?"),
    hints=(
        N_("Count the pairs of neighbours over all words, and merge the most frequent one."),
        N_(
            "Write the words anew with the new token, and count the pairs of what you have written."
        ),
    ),
    importance=3,
)
def new_tokens(answer: Any) -> str | None:
    given = in_parts(answer, 3, say("the new tokens in their order"))
    if not all(isinstance(token, str) for token in given):
        raise UnusableError(say("Each token is a string, such as “ab”."))
    if given[0] != "an":
        return N_("The most frequent pair of characters is another: count them over all words.")
    not_counted_again, another_second, another_third = sentences("11.1")
    if given[1] == "na":
        return not_counted_again
    if given[1] != "ana":
        return another_second
    if given[2] != "ban":
        return another_third
    return None


answered(
    "11.2",
    N_("The losses are ln 2, 2 ln 2, ln 2 and 0; e to the power of their mean is 2."),
    Part(
        "number",
        math.log(2),
        {
            1.0: N_("That is in bits: take the natural logarithm."),
            4 * math.log(2): N_("That is the sum; divide it by the number of words."),
            -math.log(2): N_("The sign is missing: the loss is minus the logarithm."),
            -math.log(0.5625): N_("Take the logarithms first, and their mean then."),
            4 * math.log(2) / 3: N_("The word with the probability 1 counts too, with the loss 0."),
        },
        N_("Take minus the logarithm of each probability, then the mean of the four."),
        "cross-entropy",
        N_("cross-entropy"),
        tolerance=TWO_DECIMALS,
        unit="nats",
    ),
    Part(
        "number",
        2.0,
        {
            2**0.6931: N_("A loss in nats needs the base e, not 2."),
            16.0: N_("That comes from the sum of the losses; the perplexity needs their mean."),
            0.5: N_("The sign is missing: a perplexity is at least 1."),
        },
        N_("The perplexity is e to the power of the cross-entropy."),
        "perplexity",
        N_("perplexity"),
        tolerance=2 * TWO_DECIMALS,
    ),
    hints=(
        N_("The loss at one word is minus the natural logarithm of the probability that it got."),
        N_("A probability of ½ costs ln 2, and ¼ costs twice as much. What does 1 cost?"),
    ),
    importance=3,
)


@exercise(
    "11.3",
    N_("A token belongs to the nucleus if those before it do not reach p yet."),
    hints=(
        N_("Whether a token belongs depends on the likelier ones, so the order matters."),
        N_("Sort, take the running sum, and think about the token with which it crosses p."),
    ),
    importance=3,
)
def nucleus_of(answer: Any) -> str | None:
    probabilities = torch.tensor([0.0625, 0.5, 0.1875, 0.25], dtype=torch.float64)
    cases = {0.4: [1], 0.6: [1, 3], 0.9: [1, 2, 3], 1.0: [0, 1, 2, 3]}
    rights, got, crossing, unsorted, lone = [], [], [], [], []
    for p, kept in cases.items():
        mask = boolean(result(answer, probabilities, p))
        got.append(mask)
        rights.append(torch.isin(torch.arange(4), torch.tensor(kept)))
        ranked, order = probabilities.sort(descending=True)
        crossing.append(torch.zeros(4, dtype=torch.bool).scatter(0, order, ranked.cumsum(0) <= p))
        unsorted.append(probabilities.cumsum(0) - probabilities < p)
        lone.append(
            torch.zeros(4, dtype=torch.bool).scatter(0, torch.arange(4), ranked >= 0)
            & (ranked.cumsum(0) - ranked < p)
        )
    if any(mask.shape != (4,) for mask in got):
        return say("The mask must have one entry per token, but got {0}.", tuple(got[0].shape))
    mistakes = [
        (~torch.stack(rights), N_("Your True means dropped; here True = may be drawn.")),
        (
            torch.stack(crossing),
            N_(
                "The token with which the sum reaches p belongs to the nucleus; without it, p = "
                "0.4 keeps nothing."
            ),
        ),
        (torch.stack(unsorted), N_("The probabilities are not sorted: begin with the largest.")),
        (
            torch.stack(lone),
            N_(
                "The mask is in the order of the sorted probabilities; put it back into that of "
                "the tokens."
            ),
        ),
    ]
    hint = N_("Sort, add up, and keep a token if the sum before it is still below p.")
    return first_mistake(torch.stack(got), torch.stack(rights), mistakes, hint)


answered(
    "11.4",
    N_("The label must be at the thing before anyone asks for it; the next layer finds it there."),
    Part(
        "numbers",
        [6, 5],
        {
            (5, 6): N_("A word cannot look ahead; the thing looks back at the name."),
            (13, 5): N_("In layer 0 the label is written, at the thing, from the name before it."),
            (13, 6): N_(
                "In layer 0 the query cannot find the thing: it does not say yet whose it is."
            ),
            (2, 1): N_("That labels Ben's thing."),
            (10, 9): N_("That labels Ben's thing."),
        },
        N_("The look of layer 0 goes from Ana's thing to the name just before it."),
        "layer 0",
        N_("layer 0: from, to"),
    ),
    Part(
        "numbers",
        [13, 6],
        {
            (13, 5): N_("That is the same name; its value says nothing of tea."),
            (6, 13): N_("A word cannot look ahead; the last name looks back."),
            (6, 5): N_("That is the look of layer 0: the label is written."),
            (13, 2): N_("That is Ben's thing."),
            (13, 10): N_("That is Ben's thing."),
        },
        N_("The look of layer 1 goes from the last name to what that person had."),
        "layer 1",
        N_("layer 1: from, to"),
    ),
    hints=(
        N_("The second look needs what the first one wrote. Where must the label stand?"),
        N_(
            "Number the words. The second look begins at the last word, where the model names the "
            "thing."
        ),
    ),
    importance=3,
)


answered(
    "11.5",
    N_("The look still ends at the same place, and the value there brings the other thing."),
    Part(
        "choice",
        "values",
        {
            "queries": N_("The query is made at the last name, which is the same in both texts."),
            "keys": N_("A key says whose the thing is, and that is the same in both texts."),
        },
        N_("Ask which of the three brings the thing itself."),
        options=("queries", "keys", "values"),
    ),
    hints=(
        N_("Who ordered at which place is the same in both texts. Where does “ana” look?"),
        N_("The look ends at Ana's order. Which of the three then says what it was?"),
    ),
    importance=3,
)


@exercise(
    "11.6",
    N_("A word sees itself and what is before it in its own text."),
    lines(
        "(text_of(lengths).unsqueeze(1) == text_of(lengths)).tril()",
        2,
        {
            "text_of(lengths).unsqueeze(1) == text_of(lengths)": N_(
                "The future can still be seen."
            ),
            "torch.ones(sum(lengths), sum(lengths), dtype=torch.bool).tril()": N_(
                "The texts before can still be seen."
            ),
            "(text_of(lengths).unsqueeze(1) == text_of(lengths)).tril(-1)": N_(
                "The diagonal is missing: each word sees itself as well."
            ),
        },
    ),
    question=N_(
        "`text_of(lengths)` is the number of each word's text. Which expression is the mask?"
    ),
    hints=(
        N_("Two rules must hold for a word to be seen: the same text, and not ahead."),
        N_("Give each word the number of its text; `repeat_interleave` does that."),
    ),
    importance=3,
)
def packed_mask(answer: Any) -> str | None:
    lengths = [2, 3, 1]
    number = torch.tensor([0, 0, 1, 1, 1, 2])
    same = number.unsqueeze(1) == number.unsqueeze(0)
    right = same.tril()
    mistakes = [
        (~right, N_("Your True means blocked; here True = may attend.")),
        *wrong_lines("11.6", text_of=lambda _: number, lengths=lengths),
        (
            same | torch.ones(6, 6, dtype=torch.bool).tril(),
            N_("You joined the two with or: use and."),
        ),
        (same.triu(), N_("This lets each word see itself and the future: reverse the comparison.")),
    ]
    hint = N_("Entry (i, j) is True where j is at most i and both belong to the same text.")
    mistake = first_mistake(boolean(result(answer, lengths)), right, mistakes, hint)
    if mistake is None and (names := borrowed(answer)):
        return say("The mask is right, but the task is to write it without `{0}`.", names[0])
    return mistake


answered(
    "11.7",
    N_("ln 90 makes up for the number of keys, and ln 9 gives the weight 0.9: 6.70 together."),
    Part(
        "number",
        math.log(810),
        {
            math.log(90): N_(
                "With this score the right key has the same weight as all others: 0.5."
            ),
            math.log(9): N_("That would be enough for one wrong key; there are 90."),
            math.log(0.9 * 90): N_("Divide by the weight of the others, 0.1, as well."),
            810.0: N_("That is e to the power of the score."),
        },
        N_("Solve e^s / (e^s + 90) = 0.9 for s."),
        tolerance=TWO_DECIMALS,
    ),
    hints=(
        N_("A wrong key with the score 0 counts e⁰ = 1 in the softmax. What do all of them count?"),
        N_("The right key must count nine times as much as all the wrong ones together."),
    ),
)
