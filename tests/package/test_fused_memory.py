"""What `fused=True` saves, and where it cannot: measured with the kernels' own buffers."""

import pytest
import torch
from torch import Tensor

from attention_book import DotProductAttention, KeyValueCache, MultiHeadAttention, causal_mask, data
from attention_book.measure import allocated_bytes, peak_bytes

LENGTH, SIZE = 1024, 16
MATRIX = LENGTH * LENGTH * 4  # bytes of one float32 matrix of weights
MASK = LENGTH * LENGTH  # bytes of one boolean mask


def normal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def allocated(module: torch.nn.Module, *given: Tensor, learns: bool, **rule: object) -> int:
    leaves = [x.detach().clone().requires_grad_(learns) for x in given]

    def call() -> None:
        with torch.set_grad_enabled(learns):
            output = module(*leaves, **rule)
            if learns:
                output.sum().backward()

    return allocated_bytes(call)


pytestmark = pytest.mark.skipif(data.device.type != "cpu", reason="the kernels of a CPU")
QKV = [normal(1, LENGTH, SIZE) for _ in range(3)]
LENS = torch.tensor([LENGTH - 9])


@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("rule", [{}, {"causal": True}, {"valid_lens": LENS}])
def test_no_matrix_of_weights_is_held(rule: dict[str, object], learns: bool) -> None:
    fused = allocated(DotProductAttention(fused=True), *QKV, learns=learns, **rule)
    readable = allocated(DotProductAttention(), *QKV, learns=learns, **rule)
    assert fused < MATRIX / 2 < 2 * MATRIX <= readable


def test_one_query_behind_a_cache_needs_no_mask() -> None:
    module = DotProductAttention(fused=True)
    held = allocated(module, QKV[0][:, -1:], *QKV[1:], learns=False, causal=True)
    assert held < MASK / 8


@pytest.mark.parametrize(
    ("options", "given", "rule"),
    [
        ({"dropout": 0.1}, QKV, {}),
        ({}, [*QKV[:2], normal(1, LENGTH, SIZE // 2)], {}),
    ],
    ids=["dropout while training", "keys and values of unequal size"],
)
def test_where_the_docstring_says_that_the_matrix_is_formed_after_all(
    options: dict[str, float], given: list[Tensor], rule: dict[str, object]
) -> None:
    """If a later PyTorch does better, this fails, and the docstring can promise more."""
    assert allocated(DotProductAttention(**options, fused=True), *given, learns=False) > MATRIX


@pytest.mark.parametrize(
    ("queries", "rule"),
    [
        (QKV[0], {"mask": causal_mask(LENGTH)}),
        (QKV[0], {"valid_lens": LENS, "causal": True}),
        (QKV[0][:, 1:], {"causal": True}),
    ],
    ids=["a causal mask", "lengths and causal", "unequal lengths"],
)
def test_where_a_rule_of_each_query_is_handed_over_as_a_tensor(
    queries: Tensor, rule: dict[str, object]
) -> None:
    assert (
        allocated(DotProductAttention(fused=True), queries, *QKV[1:], learns=False, **rule) > MASK
    )


def test_several_heads_save_it_too() -> None:
    x = normal(1, LENGTH, 64)
    sizes = [
        allocated(MultiHeadAttention(64, 8, fused=fused), x, x, x, learns=False, causal=True)
        for fused in (True, False)
    ]
    assert sizes[0] < MATRIX < 8 * MATRIX < sizes[1]


@torch.no_grad()
def test_the_kernel_reads_a_shared_head_where_it_lies() -> None:
    """One token behind a cache copies no head of it for the eight that use it."""
    x, cache = normal(1, LENGTH, 64), KeyValueCache()
    module = MultiHeadAttention(64, 8, num_kv_heads=1, fused=True)
    module(x, x, x, cache=cache)
    token = x[:, -1:]
    module(token, token, token, cache=cache)  # makes room for as many again
    assert allocated_bytes(lambda: module(token, token, token, cache=cache)) < cache.bytes


def test_the_instrument_sees_what_the_other_does_not() -> None:
    q, k, v = QKV
    module = DotProductAttention(dropout=0.0, fused=True)
    assert allocated_bytes(lambda: module(q, k, v)) > peak_bytes(lambda: module(q, k, v))
    made = allocated_bytes(lambda: torch.ones(1000, 1000) + 1)
    assert 8_000_000 <= made < 8_100_000
