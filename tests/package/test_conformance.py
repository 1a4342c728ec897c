"""The cases as data: they are the reference's, and the runner names mistakes with NumPy alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from runpy import run_path
from typing import Any

import conformance
import numpy as np
import pytest
from conformance import FOLDER, OUTPUTS

from attention_book.mistakes import MISTAKES
from attention_book.mistakes.reference import OPTIONS

RUNNER = run_path(str(FOLDER / "runner.py"))
array = RUNNER["array"]


def stored(kind: str) -> list[dict[str, Any]]:
    return json.loads((FOLDER / f"{kind}.json").read_text(encoding="utf-8"))["cases"]


def told(case: dict[str, Any]) -> dict[str, Any]:
    """All of a case but the answers."""
    return {
        "id": case["id"],
        "stage": case["stage"],
        "inputs": case["inputs"],
        "mistakes": [(one["names"], one.get("detail")) for one in case["mistakes"]],
        "accepted": [one["note"] for one in case["accepted"]],
    }


def answers(case: dict[str, Any]) -> list[np.ndarray]:
    others = [one["got"] for one in case["mistakes"] + case["accepted"]]
    return [array(numbers) for numbers in (case["expected"], *others)]


@pytest.mark.parametrize("kind", OUTPUTS)
def test_the_files_are_what_the_tool_writes(kind: str) -> None:
    assert (FOLDER / f"{kind}.json").stat().st_size <= 150_000
    fresh, old = conformance.cases(kind), stored(kind)
    assert [told(case) for case in fresh] == [told(case) for case in old], "run make conformance"
    for case, before in zip(fresh, old, strict=True):
        for one, other in zip(answers(case), answers(before), strict=True):
            np.testing.assert_allclose(one, other, 1e-12, 1e-12, err_msg=case["id"])


def test_the_files_fit_the_schema() -> None:
    command = [Path(sys.executable).parent / "check-jsonschema", "--schemafile"]
    files = [FOLDER / f"{kind}.json" for kind in (*OUTPUTS, "stories")]
    said = subprocess.run(
        [*command, FOLDER / "schema.json", *files], capture_output=True, text=True
    )
    assert said.returncode == 0, said.stdout


@pytest.mark.parametrize("kind", OUTPUTS)
def test_each_mistake_of_the_reference_is_shown_and_none_looks_right(kind: str) -> None:
    shown = set()
    for case in stored(kind):
        right, *wrong = answers(case)
        for entry, got in zip(case["mistakes"], wrong, strict=False):
            assert entry["names"], case["id"]
            assert not RUNNER["same"](right, got), f"{case['id']}: {entry['names']}"
            shown |= set(entry["names"])
    assert shown == set(OPTIONS[kind]) <= set(MISTAKES)


# --- attention in NumPy, and slips in it ----------------------------------------------------------


def softmax(scores, allowed=None, lengths=None, causal=False, axis=-1, fill=-np.inf, peak=True):
    """Weights; a query that may attend to no key gets zeros."""
    num_queries, num_keys = scores.shape[-2:]
    seen = np.ones(scores.shape, dtype=bool) if allowed is None else allowed & True
    if lengths is not None:
        seen = seen & (np.arange(num_keys) < lengths.reshape(-1, 1, 1, 1))
    if causal:
        seen = seen & np.tri(num_queries, num_keys, num_keys - num_queries, dtype=bool)
    filled = np.where(seen, scores, fill)
    top = np.max(filled, axis, keepdims=True) if peak else np.zeros(1)
    with np.errstate(all="ignore"):
        powers = np.exp(filled - np.where(np.isfinite(top), top, 0))
        weights = powers / powers.sum(axis, keepdims=True)
    return np.where(seen.any(-1, keepdims=True), weights, 0)


def attention(queries, keys, values, divisor=None, aligned=True, **rest):
    group = queries.shape[1] // keys.shape[1]
    keys, values = keys.repeat(group, axis=1), values.repeat(group, axis=1)
    scores = queries @ keys.swapaxes(-1, -2) / (divisor or queries.shape[-1] ** 0.5)
    if not aligned and rest.pop("causal", False):
        rest["allowed"] = np.tri(*scores.shape[-2:], dtype=bool)
    return softmax(scores, **rest) @ values


def of_no_divisor(queries, keys, values, **rest):
    return attention(queries, keys, values, 1.0, **rest)


def over_queries(scores, **rest):
    return softmax(scores, axis=-2, **rest)


def filled_with_zeros(scores, **rest):
    return softmax(scores, fill=0.0, **rest)


def without_a_peak(scores, **rest):
    return softmax(scores, peak=False, **rest)


def aligned_to_the_first(queries, keys, values, **rest):
    return attention(queries, keys, values, aligned=False, **rest)


def verdicts(kind: str, function: Callable[..., np.ndarray]) -> dict[str, str]:
    return dict(RUNNER["run"](FOLDER / f"{kind}.json", function))


@pytest.mark.parametrize(("kind", "function"), [("softmax", softmax), ("attention", attention)])
def test_the_runner_finds_a_right_function_right(kind: str, function: Any) -> None:
    assert set(verdicts(kind, function).values()) == {"right"}


@pytest.mark.parametrize(
    ("kind", "function", "case", "name"),
    [
        ("attention", of_no_divisor, "one-example", "scale-missing"),
        ("softmax", over_queries, "one-example", "softmax-over-queries"),
        ("softmax", filled_with_zeros, "mask-of-each-example", "fill-zero"),
        ("softmax", without_a_peak, "large-scores", "overflow-large-scores"),
        (
            "attention",
            aligned_to_the_first,
            "causal-of-the-last-queries",
            "causal-aligned-to-first",
        ),
    ],
)
def test_the_runner_names_a_mistake(kind: str, function: Any, case: str, name: str) -> None:
    said = verdicts(kind, function)
    assert name in said[case].split(" or ")
    first = next(verdict for verdict in said.values() if verdict != "right")
    assert name in first.split(" or ")


def test_the_runner_is_a_command(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("def rotate(x, **rest):\n    return x\n", encoding="utf-8")
    command = [sys.executable, FOLDER / "runner.py", FOLDER / "rotation.json", f"{mine}:rotate"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 1
    assert ran.stdout.splitlines()[0] == "halves-from-0: unknown"
