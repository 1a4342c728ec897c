"""The cases on real weights: they are those of the model, and they name each mistake of another."""

import json
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import stories_cases
from llama import Llama

from attention_book.data import stories
from attention_book.mistakes import MISTAKES

FILE = json.loads(stories_cases.TARGET.read_text(encoding="utf-8"))["cases"]
CASES = {case["id"]: case for case in FILE}
LOGITS, HIDDEN = CASES["logits"], CASES["hidden-states"]
#: A number of float32 is this near to its own case, and at least ten times as far from each other.
NEAR = 1e-3


def answers(model: Llama) -> dict[str, Any]:
    """What an implementation says to the two cases with numbers."""
    of_logits, of_hidden = LOGITS["inputs"], HIDDEN["inputs"]
    logits = model.run(of_logits["tokens"])[0]
    states = model.run(of_hidden["tokens"])[1]
    return {
        "logits": logits[np.ix_(of_logits["places"], of_logits["columns"])],
        "hidden-states": states[:, of_hidden["place"], of_hidden["components"]],
    }


def verdict(case: dict[str, Any], got: Any) -> list[tuple[str, str]]:
    """What the case says of these numbers: the names that have them, with their details."""
    known = [{"names": ["right"], "got": case["expected"]}, *case["mistakes"]]
    return [
        (name, one.get("detail", ""))
        for one in known
        if np.abs(np.array(one["got"]) - got).max() < NEAR
        for name in one["names"]
    ]


def test_the_file_is_what_the_tool_writes():
    fresh = stories_cases.cases()
    assert [case["id"] for case in fresh] == list(CASES)
    for case, stored in zip(fresh, FILE, strict=True):
        assert [one["names"] for one in case["mistakes"]] == [
            one["names"] for one in stored["mistakes"]
        ]
        for new, old in [
            (case["expected"], stored["expected"]),
            *(
                (a["got"], b["got"])
                for a, b in zip(case["mistakes"], stored["mistakes"], strict=True)
            ),
        ]:
            np.testing.assert_allclose(new, old, rtol=0, atol=1e-7)


def test_every_name_is_in_the_catalogue():
    for case in FILE:
        assert {n for one in case["mistakes"] for n in one["names"]} <= MISTAKES.keys()


@pytest.mark.parametrize("case", [LOGITS, HIDDEN], ids=["logits", "hidden states"])
def test_no_two_answers_are_alike(case: dict[str, Any]):
    for one, other in combinations([case["expected"], *(m["got"] for m in case["mistakes"])], 2):
        assert np.abs(np.array(one) - np.array(other)).max() > 10 * NEAR


def test_a_right_implementation_is_right():
    got = answers(Llama(stories().folder))
    np.testing.assert_allclose(got["logits"], LOGITS["expected"], rtol=0, atol=1e-8)
    np.testing.assert_allclose(got["hidden-states"], HIDDEN["expected"], rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("names", "detail"), [(m["names"], m.get("detail", "")) for m in LOGITS["mistakes"]]
)
def test_each_mistake_is_named(names: list[str], detail: str):
    got = answers(Llama(stories().folder, names[0], detail))
    expected = [(name, detail) for name in names]
    assert verdict(LOGITS, got["logits"]) == verdict(HIDDEN, got["hidden-states"]) == expected
