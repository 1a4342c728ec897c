"""Laws: change one thing, and look at what else changes.

What no option of the reference gives still breaks a law. After a cause is named, the expected
numbers are those of the reference *with* that mistake, so that one cause is not told twice.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from attention_book.examine.identification import agree
from attention_book.examine.reading import Inputs, Reading
from attention_book.examine.subject import Refused, Subject, differs

#: A fill that is a note, not a finding, hides a key whose row has no score above this.
LOW, VERY_LOW = -5e3, -1e10


def draws(subject: Subject, call: Callable[[], Tensor]) -> str | None:
    """Whether two calls differ, by the numbers that are drawn or by what is kept.

    A state that is the same after two calls, though not before them, is one that the subject sets.
    """
    outputs, states = [], []
    for seed in (1013, 1013, 2027):  # which no subject is likely to set
        for sow in (torch.manual_seed, np.random.seed, random.seed):
            sow(seed)
        outputs.append(call())
        states.append(subject.changed)
    both = set(states[1]) & set(states[2])
    subject.unsettles = any(not differs(states[1][i], states[2][i]) for i in both)
    if not agree(outputs[0], outputs[1]):
        return "remembers-last-call"
    return None if agree(outputs[0], outputs[2]) else "dropout-in-eval"


def remembers(
    subject: Subject, plain: Reading, bare: Inputs, masked: Reading, x: Inputs, y: Inputs
) -> bool:
    """Whether a call with `y` changes the answer to `x` or `bare`, or makes the next call fail."""
    thing, alone = subject.fresh(), masked.compute(subject, x)
    first = plain.compute(subject, bare, thing)
    masked.compute(subject, y, thing)
    try:
        again = agree(first, plain.compute(subject, bare, thing))
        return not (again and agree(alone, masked.compute(subject, x, thing)))
    except Refused:
        return True


def sums(weights: Tensor) -> str | None:
    """Over which axis weights sum to 1, where it is not the keys."""

    def ones(total: Tensor) -> bool:
        return agree(total, torch.ones_like(total))

    if ones(weights.sum(-1)) or (weights < 0).any():
        return None
    for name, axis in {"queries": 2, "heads": 1, "batch": 0}.items():
        if weights.shape[axis] > 1 and ones(weights.sum(axis)):
            return f"softmax-over-{name}"
    return "softmax-over-everything" if ones(weights.sum()) else None


def broken(subject: Subject, reading: Reading, inputs: Inputs) -> str | None:
    """Which law wrong numbers break: examples stay apart, and the order of keys is no matter."""
    before = reading.compute(subject, inputs)
    if reading.sizes.batch > 1:
        moved = {name: x.clone() for name, x in inputs.items() if name in MOVING}
        for x in moved.values():
            x[-1] = x[-1].flip(0) + 1
        after = reading.compute(subject, {**inputs, **moved})
        if not agree(before[0], after[0]):
            return "examples-mixed"
    if reading.kind == "attention" and reading.causal != "always":
        turned = {name: inputs[name].flip(-2) for name in ("keys", "values")}
        if not agree(before, reading.compute(subject, {**inputs, **turned})):
            return "order-of-keys-matters"
    return None


MOVING = {"scores", "queries", "keys", "values", "x"}


def with_scores(reading: Reading, inputs: Inputs, scores: Tensor) -> Inputs:
    """The inputs with these scores (batch, 1, queries, keys), whatever the kind makes them from.

    For attention each key is a direction of its own where there are dimensions enough; so a score
    is written into queries and keys by their first component.
    """
    if reading.kind == "softmax":
        return {**inputs, "scores": scores.expand(inputs["scores"].shape).contiguous()}
    queries, keys = (torch.zeros_like(inputs[name]) for name in ("queries", "keys"))
    size = queries.shape[-1]
    keys[..., 0] = scores[..., -1, :]
    queries[..., 0] = size**0.5
    return {**inputs, "queries": queries, "keys": keys}


def low_scores(reading: Reading, inputs: Inputs, hidden: Tensor, low: float) -> Inputs:
    """Inputs where all that is allowed scores as low as `low`, and what is hidden 0.

    For heads, whose parameters stand between, scores so far apart that some row has it so.
    """
    if reading.kind == "heads":
        return scaled(inputs, abs(low) ** 0.5)
    return with_scores(reading, inputs, torch.where(hidden, 0.0, low + ramp(inputs)))


def scaled(inputs: Inputs, factor: float) -> Inputs:
    """The same sequences, larger."""
    return {n: x * factor if n in MOVING else x for n, x in inputs.items()}


def grown(inputs: Inputs) -> Inputs:
    """Sequences so large that scores are some 1000, and none as low as the fill of GPT-2."""
    size = len(inputs["W_q"]) // inputs["num_heads"]
    pairs = (("queries", "W_q"), ("keys", "W_k"))
    q, k = ((inputs[n] @ inputs[W].mT).unflatten(-1, (-1, size)).norm(dim=-1) for n, W in pairs)
    return scaled(inputs, (5000 * size**0.5 / float(q.max() * k.max())) ** 0.5)


def large(reading: Reading) -> Iterator[tuple[str, Change]]:
    """How inputs become such that exponentials overflow, or vanish beside those of another row."""
    if reading.kind == "heads":
        yield "overflow-large-scores", grown
        return
    yield "overflow-large-scores", lambda inputs: with_scores(reading, inputs, ramp(inputs) + 1000)
    yield "overflow-large-scores", lambda inputs: with_scores(reading, inputs, ramp(inputs) - 1000)
    yield "max-not-per-row", lambda inputs: apart(reading, inputs)


def apart(reading: Reading, inputs: Inputs) -> Inputs:
    """The last row of scores far below the others."""
    probe = with_scores(reading, inputs, ramp(inputs) + 2000)
    probe["scores" if reading.kind == "softmax" else "queries"][..., -1, :] *= -1
    return probe


def ramp(inputs: Inputs) -> Tensor:
    """Scores that rise by 1 from key to key: whole steps, which a softmax in float32 keeps."""
    keys = inputs["scores"].shape[-1] if "scores" in inputs else inputs["keys"].shape[-2]
    return torch.arange(keys, dtype=torch.float64).reshape(1, 1, 1, keys)


Change = Callable[[Inputs], Inputs]


def refuses_half(subject: Subject, reading: Reading, inputs: Inputs) -> bool:
    """Whether float16 fails because a constant is no number of float16."""
    kept, subject.dtype = subject.dtype, torch.float16
    try:
        reading.compute(subject, inputs)
        return False
    except Refused as error:
        return "overflow" in str(error)
    finally:
        subject.dtype = kept


def one_example(inputs: Inputs) -> Inputs:
    """The first example alone."""
    return {n: x[:1] if n in MOVING | {"allowed", "lengths"} else x for n, x in inputs.items()}


def gradients(subject: Subject, reading: Reading, inputs: Inputs) -> list[Tensor | None]:
    """The gradient of each sequence; nothing where the output has none, or they fail aloud."""
    output = None if reading.numpy else reading.tried(subject, inputs, grad=True)
    if output is None or not output.requires_grad:
        return []
    try:
        output.square().sum().backward()
    except RuntimeError:
        return []
    return [x.grad for x in subject.leaves[: len(reading.roles)]]


def strides_matter(subject: Subject, reading: Reading, inputs: Inputs, plain: Tensor) -> bool:
    """Whether the same numbers, stored in another order, give another output than `plain`."""
    args, kwargs = reading.arguments(inputs)
    args = [x.mT.contiguous().mT if isinstance(x, Tensor) and x.dim() > 1 else x for x in args]
    try:
        return not agree(plain, reading.back(subject.call(args, kwargs), inputs))
    except Refused:  # a view() that says so
        return False
