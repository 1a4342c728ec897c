"""Write conformance/KIND.json, the cases as data: `make conformance`, two seconds.

Each case has the right answer of the readable reference and the answer of each mistake whose
numbers differ from it. Inputs have one decimal, so that they are the same everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attention_book.mistakes.reference import (
    AXES,
    MASK,
    OPTIONS,
    SCORES,
    VARIANTS,
    WEIGHTS,
    NotPossibleError,
    reference,
)

FOLDER = Path(__file__).resolve().parent.parent / "conformance"
VERSION = 1
#: What the cases hold: the output, or its gradient with respect to the first input.
OUTPUTS = {
    "softmax": "weights",
    "attention": "output",
    "heads": "output",
    "rotation": "rotated",
    "decoder": "logits",
}
#: What a query without any key gets elsewhere. It stays a mistake where nobody says it.
UNDOCUMENTED = {
    "empty-row-nan": "NaN where no key is allowed, if the documentation says so, as that of "
    "torch.nn.MultiheadAttention does",
    "empty-row-uniform": "all keys alike where none is allowed, if the documentation says so: a "
    "finite fill such as -1e9 gives it",
}
Case = dict[str, Any]


def numbers(*sizes: int, seed: int = 0, tenths: int = 20) -> Tensor:
    """Multiples of 0.1, from -2 to 2: whole numbers are drawn alike by every processor."""
    drawn = torch.Generator().manual_seed(seed)
    return torch.randint(-tenths, tenths + 1, sizes, generator=drawn).double() / 10


def booleans(*sizes: int, seed: int = 0) -> Tensor:
    """A mask in which each row allows its first key, and of the others about two in three."""
    allowed = torch.randint(0, 3, sizes, generator=torch.Generator().manual_seed(seed)) > 0
    allowed[..., 0] = True
    return allowed


# --- the inputs of each kind: (id, stage, inputs) -------------------------------------------------

Inputs = Iterator[tuple[str, str, Case]]


def emptied(queries: int, keys: int) -> Case:
    """A mask whose second query may attend to no key."""
    allowed = booleans(1, 1, queries, keys, seed=3)
    allowed[:, :, 1] = allowed[..., 1] = False
    return {"allowed": allowed}


def rules(batch: int, queries: int, keys: int) -> Iterator[tuple[str, str, Case]]:
    """Each rule with its name and its stage, for scores of one head or of several alike."""
    yield "mask", "mask", {"allowed": booleans(1, 1, queries, keys, seed=1)}
    yield "mask-of-each-example", "mask", {"allowed": booleans(batch, 1, 1, keys, seed=9)}
    yield "lengths", "mask", {"lengths": torch.tensor([2, keys - 1, 3][:batch])}
    yield "causal-of-the-last-queries", "causal", {"causal": True}
    yield "empty-row", "empty rows", emptied(queries, keys)


def softmax() -> Inputs:
    yield "one-example", "weights", {"scores": numbers(1, 1, 3, 5)}
    yield "examples-and-heads", "weights", {"scores": numbers(2, 3, 1, 5, seed=1)}
    for name, stage, rule in rules(2, 3, 5):
        heads = 3 if name == "lengths" else 1
        queries = 1 if name == "lengths" else 3
        batch = 1 if name in ("mask", "empty-row") else 2
        yield name, stage, {"scores": numbers(batch, heads, queries, 5, seed=2), **rule}
    yield (
        "mask-of-a-square",
        "mask",
        {"scores": numbers(1, 1, 4, 4), "allowed": booleans(1, 1, 4, 4)},
    )
    yield "causal", "causal", {"scores": numbers(1, 1, 4, 4, seed=3), "causal": True}
    large = torch.tensor([[[[1000.0, 999, 1001.5], [3, 1, 2]]]], dtype=torch.float64)
    yield "large-scores", "numerics", {"scores": large}
    low = torch.tensor([[[[-1000.0, -999, -1001.5], [-3, -1, -2]]]], dtype=torch.float64)
    yield "low-scores", "numerics", {"scores": low}
    upstream = numbers(1, 1, 2, 3, seed=5)
    yield "gradient", "gradients", {"scores": numbers(1, 1, 2, 3, seed=4), "upstream": upstream}
    inputs = {"scores": numbers(1, 1, 2, 3, seed=4), **emptied(2, 3), "upstream": upstream}
    yield "gradient-of-an-empty-row", "gradients", inputs


def vectors(batch: int, heads: int, queries: int, keys: int, size: int, width: int) -> Case:
    return {
        "queries": numbers(batch, heads, queries, size, seed=queries),
        "keys": numbers(batch, heads, keys, size, seed=keys + 10),
        "values": numbers(batch, heads, keys, width, seed=width + 20),
    }


def attention() -> Inputs:
    yield "one-example", "scores", vectors(1, 1, 3, 5, 7, 2)
    yield "examples-and-heads", "scores", vectors(2, 3, 4, 5, 7, 1)
    yield "as-many-queries-as-keys", "scores", vectors(1, 1, 4, 4, 3, 3)
    groups = vectors(1, 4, 3, 5, 7, 1)
    groups |= {name: groups[name][:, :2] for name in ("keys", "values")}
    yield "fewer-heads-of-keys", "scores", groups
    for name, stage, rule in rules(2, 3, 5):
        yield name, stage, {**vectors(2, 2 if name == "lengths" else 1, 3, 5, 7, 1), **rule}
    yield "causal", "causal", {**vectors(1, 1, 5, 5, 7, 2), "causal": True}
    large = vectors(1, 1, 3, 5, 4, 2)
    large["queries"] = torch.tensor([600.0, 1, -600]).reshape(1, 1, 3, 1) * large["queries"]
    yield "large-scores", "numerics", large
    gradient = {**vectors(1, 1, 3, 5, 2, 1), "upstream": numbers(1, 1, 3, 1, seed=7)}
    yield "gradient-of-queries", "gradients", gradient
    yield "gradient-of-an-empty-row", "gradients", {**gradient, **emptied(3, 5)}


def projections(width: int, *, kv: int | None = None, bias: bool = False) -> Case:
    rows = {"q": width, "k": kv or width, "v": kv or width, "o": width}
    found = {
        f"W_{n}": numbers(r, width, seed=30 + i, tenths=9) for i, (n, r) in enumerate(rows.items())
    }
    if bias:
        found |= {f"b_{n}": numbers(r, seed=40 + i) for i, (n, r) in enumerate(rows.items())}
    return found


def sequences(batch: int, queries: int, keys: int | None, width: int) -> Case:
    """Three sequences: all the same one, or keys and values from a memory."""
    own = numbers(batch, queries, width, seed=queries)
    memory = own if keys is None else numbers(batch, keys, width, seed=keys + 50)
    return {"queries": own, "keys": memory, "values": memory}


def heads() -> Inputs:
    three = {**projections(6), "num_heads": 3}
    two = {**projections(4), "num_heads": 2}
    yield "self-attention", "projections", {**sequences(1, 4, None, 6), **three}
    biased = {**projections(4, bias=True), "num_heads": 2}
    yield "biases", "projections", {**sequences(1, 3, None, 4), **biased}
    yield "two-examples", "projections", {**sequences(2, 3, None, 4), **two}
    yield "cross-attention", "projections", {**sequences(1, 3, 5, 6), **three}
    third = {"values": numbers(1, 3, 4, seed=60)}
    yield "three-sequences", "projections", {**sequences(1, 3, 3, 4), **third, **two}
    grouped = {**projections(8, kv=4), "num_heads": 4}
    yield "fewer-heads-of-keys", "projections", {**sequences(1, 3, None, 8), **grouped}
    for name, stage, rule in rules(2, 3, 5):
        several = name in ("mask-of-each-example", "lengths")
        batch, queries = (2, 1) if several else (1, 3)
        yield name, stage, {**sequences(batch, queries, 5, 4), **two, **rule}
    yield "causal", "causal", {**sequences(1, 4, None, 4), **two, "causal": True}
    large = {**sequences(1, 2, 3, 4), **two}
    large["queries"] = torch.tensor([600.0, 1]).reshape(1, 2, 1) * large["queries"]
    yield "large-scores", "numerics", large
    gradient = {**sequences(1, 2, 3, 4), **two, "upstream": numbers(1, 2, 4, seed=7)}
    yield "gradient-of-queries", "gradients", gradient
    yield "gradient-of-an-empty-row", "gradients", {**gradient, **emptied(2, 3)}


def rotation() -> Inputs:
    for pairing in ("halves", "neighbours"):
        told = {"pairing": pairing, "base": 10000.0}
        at = {"x": numbers(1, 1, 3, 6), "positions": torch.tensor([0, 1, 2])}
        yield f"{pairing}-from-0", "rotation", {**at, **told}
        later = {"x": numbers(1, 1, 3, 4, seed=1), "positions": torch.tensor([5, 6, 7])}
        yield f"{pairing}-later", "rotation", {**later, **told}
        gaps = {"x": numbers(1, 1, 4, 2, seed=2), "positions": torch.tensor([9, 0, 4, 4])}
        yield f"{pairing}-in-any-order", "rotation", {**gaps, **told}
        axes = {"x": numbers(2, 3, 5, 4, seed=3)[:, :, :, :4], "positions": torch.arange(5)}
        yield f"{pairing}-examples-and-heads", "rotation", {**axes, **told}
        other = {**later, "pairing": pairing, "base": 500.0}
        yield f"{pairing}-of-another-base", "rotation", other
        gradient = {**later, **told, "upstream": numbers(1, 1, 3, 4, seed=4)}
        yield f"{pairing}-gradient", "gradients", gradient


def decoder() -> Inputs:
    for batch in (1, 2):
        tokens = torch.tensor([[1, 2, 0, 3, 1, 4], [3, 3, 1, 0, 2, 4]])[:batch]
        model = {"tokens": tokens, "embedding": numbers(5, 3), "places": numbers(9, 3, seed=1)}
        maps = {name: matrix for name, matrix in projections(3).items()}
        size = "one-text" if batch == 1 else "two-texts"
        for chunks in ((), (1,) * 6, (4, 1, 1), (2, 1, 3), (3, 3), (1, 5)):
            stage, how = ("whole", "") if not chunks else ("cache", "-".join(map(str, chunks)))
            name = "-".join(filter(None, [size, how]))
            yield name, stage, {**model, **maps, **({"chunks": chunks} if chunks else {})}


# --- the answers ----------------------------------------------------------------------------------


def answer(kind: str, inputs: Case, option: Case) -> Tensor | None:
    """What a mistake gives; nothing where it cannot be made with inputs of these sizes."""
    given = {name: value for name, value in inputs.items() if name != "upstream"}
    first = next(iter(given))
    if "upstream" in inputs:
        given[first] = given[first].clone().requires_grad_()
    try:
        output = reference(kind, given, **option)[OUTPUTS[kind]]
        if "upstream" not in inputs:
            return output
        if output.shape != inputs["upstream"].shape or not output.requires_grad:
            return None
        return torch.autograd.grad(output, given[first], inputs["upstream"])[0]
    except NotPossibleError:
        return None


def same(one: Tensor, other: Tensor) -> bool:
    """Whether nobody can tell two answers apart: to nine digits they are the same."""
    near = {"rtol": 1e-9, "atol": 1e-9, "equal_nan": True}
    return one.shape == other.shape and torch.allclose(one, other, **near)


def options(kind: str) -> list[tuple[str, Case, bool]]:
    """Each mistake of a kind, then further ways to make it, where a file has room for them."""
    first = [(name, dict(option), False) for name, option in OPTIONS[kind].items()]
    further = [
        (name, dict(option), True)
        for name in OPTIONS[kind]
        if kind in ("rotation", "decoder") or (name in MASK and kind != "heads")
        for option in VARIANTS.get(name, ())
    ]
    return first + further


def over_one(kind: str, inputs: Case, option: Case) -> bool:
    """Whether a mistake takes an axis of size 1 for another: its numbers say nothing of it."""
    if kind == "heads" and option.get("over") == "heads":
        return inputs["num_heads"] == 1
    axis = option.get("axis", AXES.get(option.get("over", "keys"), -1))
    return axis != -1 and next(iter(inputs.values())).shape[axis] == 1


def entries(kind: str, stage: str, inputs: Case) -> list[Case]:
    """The mistakes that these inputs show; those that nobody can tell apart in one entry."""
    right = answer(kind, inputs, {})
    found: list[tuple[Tensor, Case]] = []
    for name, option, is_further in options(kind):
        if kind == "heads" and stage != "projections" and name in {**SCORES, **WEIGHTS}:
            continue  # an earlier stage shows it
        if over_one(kind, inputs, option):
            continue
        got = answer(kind, inputs, option)
        if got is None or same(got, right):
            continue
        twin = next((entry for numbers, entry in found if same(numbers, got)), None)
        if twin is None:
            detail = ", ".join(f"{key} {value}" for key, value in option.items())
            more = {"detail": detail} if is_further else {}
            found.append((got, {"names": [name], **more, "got": written(got)}))
        elif not is_further:
            twin["names"].append(name)
    return [entry for _, entry in found]


def accepted(kind: str, inputs: Case, mistakes: list[Case]) -> list[Case]:
    """Other answers that are right somewhere, each with what it takes to be right."""
    found = []
    if kind == "rotation":
        back = {**inputs, "positions": -inputs["positions"]}
        other = "neighbours" if inputs["pairing"] == "halves" else "halves"
        notes = {
            "turned the other way: scores of rotated queries and keys are the same": back,
            f"pairs of {other}, whatever was asked for: the rows of the projections have to be "
            "ordered for it": {**inputs, "pairing": other},
        }
        for note, changed in notes.items():
            got, right = answer(kind, changed, {}), answer(kind, inputs, {})
            if not same(got, right):
                found.append({"note": note, "got": written(got)})
    if "upstream" not in inputs:
        for mistake in mistakes:
            for name in set(UNDOCUMENTED) & set(mistake["names"]):
                found.append({"note": UNDOCUMENTED[name], "got": mistake["got"]})
    return found


def written(value: Any) -> Any:
    """A tensor as lists: whole numbers without a point, and what JSON lacks as words."""
    if isinstance(value, Tensor):
        return written(value.tolist())
    if isinstance(value, list | tuple):
        return [written(one) for one in value]
    if isinstance(value, float):
        if value != value or abs(value) == float("inf"):
            return str(value)
        return int(value) if abs(value) < 1e15 and value == int(value) else value
    return value


def cases(kind: str) -> list[Case]:
    """All cases of a kind, in the order in which an implementation should meet them."""
    makers = {
        "softmax": softmax,
        "attention": attention,
        "heads": heads,
        "rotation": rotation,
        "decoder": decoder,
    }
    found = []
    for name, stage, inputs in makers[kind]():
        mistakes = entries(kind, stage, inputs)
        found.append(
            {
                "id": name,
                "stage": stage,
                "inputs": {key: written(value) for key, value in inputs.items()},
                "expected": written(answer(kind, inputs, {})),
                "mistakes": mistakes,
                "accepted": accepted(kind, inputs, mistakes),
            }
        )
    return found


def store(kind: str, found: list[Case]) -> None:
    """Write a file of cases, a line for each, so that a change is legible."""
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in found)
    head = f'"kind": "{kind}", "version": {VERSION}, "licence": "MIT"'
    text = f'{{{head}, "cases": [\n{lines}\n]}}\n'
    (FOLDER / f"{kind}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for kind in OUTPUTS:
        store(kind, cases(kind))
