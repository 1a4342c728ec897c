# The helpers of the checks: run this cell once. You need not read it.
import json
import math

import torch

seed = 0


def numbers(seed, *shape):
    """Random numbers, the same for the same seed."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def spread(start, *shape):
    """Numbers between −2 and 2 that are the same with every version of PyTorch."""
    steps = torch.arange(1, math.prod(shape) + 1, dtype=torch.float64) + 100 * start
    return (steps * 0.7548776662466927 % 1 * 4 - 2).float().reshape(shape)


def gradient_of(function, inputs, *others):
    """The gradient of the sum of the squared results, with respect to `inputs`."""
    inputs = inputs.clone().requires_grad_()
    return torch.autograd.grad(function(inputs, *others).square().sum(), inputs)[0]


#: What the checks say in another language, by the English sentence; nothing for English.
other_words = {}


def say(sentence, *values):
    """A sentence in the reader's language, with its values."""
    said = other_words.get(sentence, sentence)
    return said.format(*values) if values else said


def fail(sentence, *values):
    """Say what went wrong, with its values, to whom the check tells it."""
    raise AssertionError(say(sentence, *values))


def tell(question, results):
    """Print in a line each what the checks of a question found, and how many pass."""
    found = {}
    for passed, message in results:
        error, _, said = message.split("\n", 3)[-1].partition(": ")
        said = said if error == "AssertionError" else f"{error}: {said}"
        if not passed:
            found[said] = found.get(said, 0) + 1
    for said, number in found.items():
        print("✗", said if number == 1 else say("{0} checks: {1}", number, said))
    right = sum(passed for passed, _ in results)
    if right == len(results):
        print("✓", say("{0}: all checks in this notebook pass.", question))
    else:
        print(say("{0}: {1} of {2} checks in this notebook pass.", question, right, len(results)))


def wrong_dtype(got, right):
    """Whether one of two tensors alone is boolean, or whole numbers are asked for and not given."""
    if (got.dtype == torch.bool) != (right.dtype == torch.bool):
        return True
    return got.is_floating_point() and not right.is_floating_point()


def same(got, right):
    """Whether two tensors agree in shape and in about half of the digits of `right`'s dtype."""
    if got.shape != right.shape or wrong_dtype(got, right):
        return False
    close = torch.finfo(right.dtype).eps ** 0.5 if right.is_floating_point() else 0.0
    right = right.double()
    size = right[right.isfinite()].abs().amax().item() if right.isfinite().any() else 0.0
    return torch.allclose(got.double(), right, rtol=close, atol=close * size / 16, equal_nan=True)


def expect(got, right, mistakes=()):
    """Pass where `got` is right; else name the known mistake that has the same result."""
    if got is None or got is ...:
        fail(
            "Your answer is empty: the function returns nothing, "
            "or no value is assigned to the name."
        )
    if isinstance(got, int | float):
        got = torch.tensor(got, dtype=right.dtype)
    if not isinstance(got, torch.Tensor):
        fail("Expected a tensor, but your answer is of type {0}.", type(got).__name__)
    if same(got, right):
        return
    for sentence, wrong in mistakes:
        if isinstance(wrong, torch.Tensor) and same(got, wrong):
            fail(sentence)
    if got.shape != right.shape:
        fail("The result has shape {0}; expected {1}.", tuple(got.shape), tuple(right.shape))
    if wrong_dtype(got, right):
        fail("The result has the dtype {0}; expected {1}.", got.dtype, right.dtype)
    if got.isnan().any():
        fail("The result contains NaN.")
    if not right.is_floating_point():
        wrong = (got != right).sum().item()
        fail(
            "Wrong entries: {0} of {1}. It is none of the known mistakes.",
            wrong,
            right.numel(),
        )
    gap = (got.double() - right.double()).abs().max().item()
    fail("The result is off by up to {0}, and it is none of the known mistakes.", f"{gap:.4g}")


def expect_zero(weights, where):
    """Pass where the weights at these places are exactly 0."""
    if (weights[where] != 0).any():
        fail(
            "The number that you fill with is not low enough: a masked key can get weight. "
            "Fill with −inf."
        )


def as_letter(answer):
    """The letter that an answer names, in whatever way it is written."""
    if answer is None or answer is ...:
        fail("The cause is empty: write one of the letters a to d in quotes.")
    found = str(answer).strip(" \t\n.,:;()[]'\"").lower()
    if found not in ("a", "b", "c", "d"):
        fail(
            "The cause is one of the letters a to d in quotes; {0} is not.", repr(str(answer)[:20])
        )
    return found


def as_number(answer):
    """The number that an answer gives."""
    if answer is None or answer is ...:
        fail("The number is empty.")
    try:
        return float(answer) if not isinstance(answer, str | bool) else fail("")
    except (AssertionError, TypeError, ValueError, RuntimeError):
        fail("Expected a number, but your answer is of type {0}.", type(answer).__name__)


def expect_number(got, right, mistakes=(), within=0.0):
    """Pass where a number is right; `within` is one unit of the last digit that is asked for."""
    got = as_number(got)
    if abs(got - right) <= within:
        return
    for sentence, wrong in mistakes:
        if abs(got - wrong) <= within:
            fail(sentence)
    fail("The number is not right, and it is none of the known mistakes.")


def expect_case(name, function, *inputs):
    """Compare a function's result with the stored example of this name."""
    right, mistakes = stored_examples[name]
    known = [(why, stored_tensor(wrong)) for why, wrong in mistakes]
    expect(function(*inputs), stored_tensor(right), known)


#: For each check its right result, then the known mistakes, each with its own result.
stored_examples = json.loads("{}")


def stored_tensor(entry):
    """A stored tensor: its dtype, its shape, its entries."""
    dtype, shape, entries = entry
    return torch.tensor(entries, dtype=getattr(torch, dtype)).reshape(shape)
