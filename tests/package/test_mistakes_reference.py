"""The readable reference: right without an option, and each option changes some result."""

from __future__ import annotations

from itertools import chain

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention_book import MultiHeadAttention, rotary_embedding
from attention_book.mistakes import MISTAKES
from attention_book.mistakes.reference import (
    OPTIONS,
    VARIANTS,
    NotPossibleError,
    reference,
)

LENGTHS = torch.tensor([4, 0])


def numbers(*sizes: int, seed: int = 0) -> Tensor:
    drawn = torch.Generator().manual_seed(seed)
    return torch.randn(sizes, generator=drawn, dtype=torch.float64)


def cases(kind: str) -> list[dict]:
    """Inputs of a kind: with as many queries as keys and with fewer, with each rule."""
    rules = [{}, {"lengths": LENGTHS}, {"causal": True}]
    rules.append({"allowed": numbers(2, 1, 5, 5, seed=9) > -0.5})
    found = []
    for given in rules:
        for queries in (5,) if "allowed" in given else (3, 5):
            scores = 800 * numbers(2, 4, queries, 5)
            vectors = {
                "queries": numbers(2, 4, queries, 6),
                "keys": numbers(2, 2, 5, 6, seed=1),
                "values": numbers(2, 2, 5, 6, seed=2),
            }
            sequences = {
                "queries": numbers(2, queries, 8),
                "keys": numbers(2, 5, 8, seed=1),
                "values": numbers(2, 5, 8, seed=2),
            }
            maps = {f"W_{name}": numbers(8, 8, seed=ord(name)) for name in "qkvo"}
            biases = {f"b_{name}": numbers(8, seed=ord(name)) for name in "qkvo"}
            if kind == "softmax":
                found += [{"scores": scores, **given}, {"scores": scores / 800, **given}]
            elif kind == "attention":
                found += [{**vectors, **given}]
                found += [{**vectors, "queries": 1000 * vectors["queries"], **given}]
            elif kind == "heads":
                found.append({**sequences, **maps, **biases, "num_heads": 2, **given})
                grouped = {name: x[:4] for name, x in (maps | biases).items() if name[2] in "kv"}
                found.append({**sequences, **maps, **biases, **grouped, "num_heads": 4, **given})
    if kind == "rotation":
        found.append({"x": numbers(2, 3, 5, 6), "positions": torch.arange(2, 7)})
    if kind == "decoder":
        model = {"tokens": torch.tensor([[1, 2, 0, 3, 1, 4]]), "embedding": numbers(5, 4)}
        model |= {"places": numbers(9, 4, seed=1)}
        model |= {f"W_{name}": numbers(4, 4, seed=ord(name)) for name in "qkvo"}
        found += [model, {**model, "chunks": (2, 1, 3)}]
    return found


def outcome(kind: str, inputs: dict, **option) -> Tensor | None:
    """All outputs in a row, and the gradients of the first input; None where not possible."""
    name = next(iter(inputs))
    given = dict(inputs)
    if given[name].is_floating_point():
        given[name] = given[name].clone().requires_grad_()
    try:
        outputs = reference(kind, given, **option)
    except NotPossibleError:
        return None
    flat = torch.cat([x.flatten() for x in outputs.values()])
    if not flat.requires_grad:
        return flat.detach()
    flat.nan_to_num(posinf=0.0, neginf=0.0).square().sum().backward()
    gradient = given[name].grad
    return flat.detach() if gradient is None else torch.cat([flat.detach(), gradient.flatten()])


PAIRS = [
    (kind, name, option)
    for kind, table in OPTIONS.items()
    for name, first in table.items()
    for option in chain([first], VARIANTS.get(name, ()))
]


@pytest.mark.parametrize(("kind", "name", "option"), PAIRS, ids=lambda x: str(x)[:40])
def test_each_option_changes_the_numbers_of_some_case(kind, name, option) -> None:
    assert name in MISTAKES
    differ = [
        wrong is not None and not torch.equal(wrong.nan_to_num(7.0), right.nan_to_num(7.0))
        for case in cases(kind)
        for right, wrong in [(outcome(kind, case), outcome(kind, case, **option))]
    ]
    assert any(differ), f"{kind}: no case shows {name}"


def test_without_an_option_attention_is_that_of_pytorch() -> None:
    q, k, v = numbers(2, 4, 3, 6), numbers(2, 2, 5, 6, seed=1), numbers(2, 2, 5, 7, seed=2)
    allowed = torch.tensor([True, False, True, True, False])
    right = F.scaled_dot_product_attention(q, k, v, allowed.expand(3, 5), enable_gqa=True)
    ours = reference("attention", {"queries": q, "keys": k, "values": v, "allowed": allowed})
    torch.testing.assert_close(ours["output"], right)


def test_without_an_option_heads_are_those_of_the_book_and_of_pytorch() -> None:
    case = cases("heads")[8]
    book = MultiHeadAttention(8, 2, bias=True).double()
    pytorch = nn.MultiheadAttention(8, 2, batch_first=True).double()
    with torch.no_grad():
        for name in "qkvo":
            linear = getattr(book, f"W_{name}")
            linear.weight.copy_(case[f"W_{name}"])
            linear.bias.copy_(case[f"b_{name}"])
        pytorch.in_proj_weight.copy_(torch.cat([case[f"W_{name}"] for name in "qkv"]))
        pytorch.in_proj_bias.copy_(torch.cat([case[f"b_{name}"] for name in "qkv"]))
        pytorch.out_proj.weight.copy_(case["W_o"])
        pytorch.out_proj.bias.copy_(case["b_o"])
        sequences = [case[name] for name in ("queries", "keys", "values")]
        ours = reference("heads", case)["output"]
        torch.testing.assert_close(ours, book(*sequences, causal=case["causal"]))
        unmasked = reference("heads", {**case, "causal": False})["output"]
        torch.testing.assert_close(unmasked, pytorch(*sequences)[0])


def test_without_an_option_rotation_is_that_of_the_book() -> None:
    x = numbers(2, 3, 5, 6)
    ours = reference("rotation", {"x": x, "positions": torch.arange(4, 9)})["rotated"]
    torch.testing.assert_close(ours, rotary_embedding(x, 4))


def test_without_an_option_a_decoder_with_its_cache_gives_the_logits_of_one_without() -> None:
    whole, pieces = cases("decoder")
    torch.testing.assert_close(
        reference("decoder", whole)["logits"], reference("decoder", pieces)["logits"]
    )


@pytest.mark.parametrize("empty", ["zeros", "repaired"])
def test_a_repaired_row_has_the_numbers_of_zeros_and_a_gradient_of_nan(empty: str) -> None:
    scores = torch.zeros(1, 1, 1, 2, dtype=torch.float64, requires_grad=True)
    none = torch.zeros(1, 1, 1, 2, dtype=torch.bool)
    weights = reference("softmax", {"scores": scores, "allowed": none}, empty=empty)["weights"]
    weights.sum().backward()
    assert weights.tolist() == [[[[0.0, 0.0]]]]
    assert scores.grad.isnan().any() == (empty == "repaired")
