"""Dot-product, additive and pooling attention: values and promises."""

import copy
import math

import hypothesis
import oracles
import pytest
import torch
from cases import (
    DTYPES,
    LAYOUTS,
    Problem,
    close,
    every_rule,
    laid_out,
    largest,
    problems,
    refuses,
    untouched,
)
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.nn import functional as F

from attention_book import (
    AdditiveAttention,
    AttentionPooling,
    DotProductAttention,
    MultiHeadAttention,
    ShapeError,
    causal_mask,
    data,
)


def normal(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    return data.normal(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def on_device(numbers: object) -> Tensor:
    return torch.tensor(numbers, device=data.device)


def additive(
    query_size: int,
    key_size: int,
    hidden: int,
    dtype: torch.dtype = torch.float64,
    **options: object,
) -> AdditiveAttention:
    """Additive attention whose weights are those of every run and every device."""
    module = AdditiveAttention(query_size, key_size, hidden, **options)
    for seed, parameter in enumerate(module.parameters()):
        parameter.data = normal(*parameter.shape, dtype=dtype, seed=seed)
    return module


def multi_head(**options: object) -> MultiHeadAttention:
    """Three heads for the tensors of this file, with answers as wide as the values."""
    sizes = {"d_k": 2, "d_v": 2, "query_size": 4, "key_size": 4, "value_size": 2}
    module = MultiHeadAttention(2, 3, **sizes, **options)
    for seed, parameter in enumerate(module.parameters()):
        parameter.data = normal(*parameter.shape, seed=seed) / 2
    return module


def additive_score(module: AdditiveAttention) -> object:
    W_q, W_k, w_v = (
        weight.detach().double().tolist()
        for weight in (module.W_q.weight, module.W_k.weight, module.w_v.weight)
    )

    def score(query: list[float], key: list[float]) -> float:
        return math.fsum(
            v * math.tanh(oracles.dot(q, query) + oracles.dot(k, key))
            for q, k, v in zip(W_q, W_k, w_v[0], strict=True)
        )

    return score


def scaled(query: list[float], key: list[float]) -> float:
    return oracles.dot(query, key) / math.sqrt(len(query))


def agrees(attention: nn.Module, problem: Problem, score: object, reach: float) -> None:
    """Hold output and weights against the loops; `reach` is that of the scores."""
    with untouched(*problem.tensors()):
        output = problem.call(attention)
    scores = oracles.scores(problem.queries, problem.keys, score)
    weights = oracles.weights(scores, problem.valid_lens, problem.mask)
    result = oracles.attend(weights, problem.values)
    assert output.dtype == problem.values.dtype
    # What the scores lose by rounding changes a weight by as much of itself.
    close(output, result, reach=2 * max(reach, 1.0) * largest(problem.values))
    if getattr(attention, "fused", False):
        assert attention.attention_weights is None
    else:
        close(attention.attention_weights, weights, reach=2 * reach)


# Cases worked out in the sources


def test_equal_keys_give_the_mean_of_the_valid_values() -> None:
    values = torch.arange(40.0).reshape(1, 10, 4).repeat(2, 1, 1).to(data.device)
    queries = normal(2, 1, 2, dtype=torch.float32)
    keys = torch.ones(2, 10, 2, device=data.device)
    for attention in (DotProductAttention(dropout=0.5), DotProductAttention(fused=True)):
        output = attention.eval()(queries, keys, values, on_device([2, 6]))
        close(output[:, 0], torch.tensor([[2.0, 3, 4, 5], [10, 11, 12, 13]]))


def test_additive_attention_takes_queries_and_keys_of_unlike_sizes() -> None:
    attention = additive(20, 2, 8, torch.float32, dropout=0.1).eval()
    values = torch.arange(40.0).reshape(1, 10, 4).repeat(2, 1, 1).to(data.device)
    keys = torch.ones(2, 10, 2, device=data.device)
    queries = normal(2, 4, 20, dtype=torch.float32)
    output = attention(queries, keys, values, on_device([2, 6]))
    assert output.shape == (2, 4, 4)
    close(output[0], torch.tensor([[2.0, 3, 4, 5]]).expand(4, 4))
    close(output[1], torch.tensor([[10.0, 11, 12, 13]]).expand(4, 4))
    assert attention.attention_weights is not None
    assert (attention.attention_weights[0, :, 2:] == 0).all()


# Against loops


@pytest.mark.parametrize("fused", [False, True])
@hypothesis.given(problem=problems(heads=(0, 1, 2, 3)))
def test_dot_product_attention_equals_the_loops(fused: bool, problem: Problem) -> None:
    queries, keys = problem.queries, problem.keys
    reach = queries.shape[-1] ** 0.5 * largest(queries) * largest(keys)
    agrees(DotProductAttention(fused=fused), problem, scaled, reach)


@hypothesis.given(
    problem=problems(sizes=(3, 4, 2)),
    query_chunk=st.none() | st.integers(1, 7),
    learns=st.booleans(),
)
def test_additive_attention_equals_the_loops(
    problem: Problem, query_chunk: int | None, learns: bool
) -> None:
    attention = additive(3, 4, 5, problem.queries.dtype, query_chunk=query_chunk)
    summed = 9 * largest(problem.queries) + 12 * largest(problem.keys)  # no weight is above 3
    with torch.set_grad_enabled(learns):
        agrees(attention, problem, additive_score(attention), 5 * 3 * (1 + summed))


@hypothesis.given(problem=problems(sizes=(4, 4, 4)))
def test_pooling_equals_the_loops(problem: Problem) -> None:
    x, lens = problem.keys, problem.valid_lens
    lens = None if lens is None or lens.dim() == 2 else lens
    pooling = AttentionPooling(4, 3)
    pooling.W.weight.data = normal(3, 4, dtype=x.dtype)
    pooling.w_v.weight.data = normal(1, 3, dtype=x.dtype)
    with untouched(x, lens):
        output = pooling(x, lens)
    hidden = list(zip(pooling.W.weight.tolist(), pooling.w_v.weight[0].tolist(), strict=True))

    def score(_: list[float], position: list[float]) -> float:
        return math.fsum(v * math.tanh(oracles.dot(row, position)) for row, v in hidden)

    scores = oracles.scores(torch.zeros(x.shape[0], 1, 4), x, score)
    weights = oracles.weights(scores, lens, None)
    reach = 2 * 3 * 3 * (1 + 4 * 3 * largest(x))  # no weight is above 3
    assert output.dtype == x.dtype
    close(output, oracles.attend(weights, x).squeeze(1), reach=reach * largest(x))
    assert pooling.attention_weights is not None
    close(pooling.attention_weights, weights.squeeze(1), reach=reach)


# Against the framework


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("scale", [None, 0.0, 0.3, 1.0])
def test_same_answer_as_the_kernel_of_the_framework(fused: bool, scale: float | None) -> None:
    queries, keys = normal(3, 2, 5, 11), normal(3, 2, 7, 11, seed=1)
    values = normal(3, 2, 7, 19, seed=2)
    attention = DotProductAttention(scale=scale, fused=fused)
    mask = (normal(3, 2, 5, 7, seed=3) > 0) | (torch.arange(7) == 0).to(data.device)
    for given in (None, mask, mask[:, :1], mask[:1, :1], causal_mask(5, 7, device=data.device)):
        kernel = F.scaled_dot_product_attention(queries, keys, values, attn_mask=given, scale=scale)
        close(attention(queries, keys, values, mask=given), kernel)
    square = normal(3, 2, 7, 11, seed=5)
    causal = F.scaled_dot_product_attention(square, keys, values, is_causal=True, scale=scale)
    close(attention(square, keys, values, mask=causal_mask(7, device=data.device)), causal)


# Every attention, on the same tensors

ATTENTIONS = {
    "dot product": lambda **options: DotProductAttention(**options),
    "fused": lambda **options: DotProductAttention(fused=True, **options),
    "additive": lambda **options: additive(4, 4, 5, **options),
    "chunked": lambda **options: additive(4, 4, 5, query_chunk=2, **options),
    "multi-head": lambda **options: multi_head(**options),
    "multi-head, fused": lambda **options: multi_head(fused=True, **options),
}
EVERY = pytest.mark.parametrize("make", ATTENTIONS.values(), ids=ATTENTIONS.keys())
#: Those that weigh the values themselves.
PLAIN = pytest.mark.parametrize("make", [*ATTENTIONS.values()][:4], ids=[*ATTENTIONS][:4])


def tensors(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    return (
        normal(3, 5, 4, dtype=dtype),
        normal(3, 7, 4, dtype=dtype, seed=1),
        normal(3, 7, 2, dtype=dtype, seed=2),
    )


@EVERY
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_dtype_and_layout(make: object, dtype: torch.dtype, layout: str) -> None:
    attention = make().to(dtype)
    arguments = [laid_out(tensor, layout) for tensor in tensors(dtype)]
    lens = on_device([2, 7, 0])
    with torch.no_grad(), untouched(*arguments, lens):
        output = attention(*arguments, lens)
    assert output.dtype == dtype
    reference = make()
    reference.load_state_dict(attention.state_dict())
    close(output, reference(*(tensor.double() for tensor in arguments), lens), dtype)


@EVERY
def test_every_kind_of_lengths_and_mask_is_one_mask_of_all_pairs(make: object) -> None:
    attention = make()
    heads = 3 if isinstance(attention, MultiHeadAttention) else 0
    alike = torch.zeros(3, *[heads] * (heads > 0), 5, 7)
    for lens, mask in every_rule(3, 5, 7, heads=heads):
        allowed = oracles.weights(alike, lens, mask) > 0
        output = attention(*tensors(), lens, mask=mask)
        close(output, attention(*tensors(), mask=allowed.to(data.device)))


@EVERY
def test_gradients_are_those_of_finite_differences(make: object) -> None:
    attention = make()
    arguments = [tensor.requires_grad_() for tensor in tensors()]
    parameters = list(attention.parameters())
    lens = on_device([2, 7, 0])
    mask = causal_mask(5, 7, device=data.device)

    def function(*inputs: Tensor) -> Tensor:
        return attention(*inputs[:3], lens, mask=mask)

    assert gradcheck(function, (*arguments, *parameters))


@PLAIN
def test_dropout_drops_single_weights_keeps_the_mean_and_rests_in_evaluation(make: object) -> None:
    attention = make(dropout=0.25)
    queries, keys = tensors()[:2]
    weights_as_output = torch.eye(7, dtype=torch.float64, device=data.device).expand(3, 7, 7)
    lens = on_device([2, 7, 4])
    weights = attention.eval()(queries, keys, weights_as_output, lens)
    close(weights.sum(-1), torch.ones(3, 5, dtype=torch.float64))

    attention.train()
    torch.manual_seed(0)
    runs = torch.stack([attention(queries, keys, weights_as_output, lens) for _ in range(400)])
    kept = runs != 0
    close(runs[kept], (weights / 0.75).expand_as(runs)[kept])
    share = kept.double().mean(0)[weights != 0]
    # 400 draws: a share's standard deviation is 0.022, and no row is dropped as one.
    assert ((share - 0.75).abs() < 0.1).all()
    assert abs(share.mean() - 0.75) < 0.01
    assert ((runs.mean(0) - weights).abs() < 0.12).all()
    patterns = kept[:, 1, 0]
    assert not (patterns == patterns[:, :1]).all()


@PLAIN
def test_recorded_weights_are_those_before_dropout(make: object) -> None:
    attention = make(dropout=0.9)
    arguments = tensors()
    lens = on_device([2, 7, 4])
    assert attention.attention_weights is None
    attention(*arguments, lens)
    recorded = attention.attention_weights
    attention.eval()(*arguments, lens)
    if attention.__dict__.get("fused"):
        assert recorded is None
    else:
        assert recorded.shape == (3, 5, 7)
        assert torch.equal(recorded, attention.attention_weights)
        close(recorded.sum(-1), torch.ones(3, 5, dtype=torch.float64))
        assert (recorded[0, :, 2:] == 0).all()
        assert not recorded.requires_grad


# Said by torch of its fused kernel: mapped, it runs once for each.
@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
@EVERY
def test_functional_gradients_and_maps_see_through_it(make: object) -> None:
    attention = make()
    queries, keys, values = tensors()
    lens = on_device([2, 7, 0])

    def of_one_example(q: Tensor, k: Tensor, v: Tensor, n: Tensor) -> Tensor:
        return attention(q[None], k[None], v[None], n[None]).squeeze(0)

    mapped = torch.vmap(of_one_example)(queries, keys, values, lens)
    copy.deepcopy(attention)  # keeps nothing of the map, which could be copied no more
    close(mapped, attention(queries, keys, values, lens))
    torch.func.grad(lambda q: attention(q, keys, values, lens).sum())(queries)
    copy.deepcopy(attention)


@EVERY
def test_under_autocast_dtypes_may_mix_as_in_the_modules_of_the_framework(make: object) -> None:
    attention = make().float()
    queries, keys, values = (tensor.float() for tensor in tensors())
    with pytest.raises(TypeError, match=r"keys holds torch\.bfloat16, but queries holds"):
        attention(queries, keys.bfloat16(), values.bfloat16())
    with torch.autocast(data.device.type, torch.bfloat16):
        output = attention(queries, keys.bfloat16(), values.bfloat16())
    close(output, attention(queries, keys, values), torch.bfloat16)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("learns", [False, True])
def test_chunks_lose_no_digits_in_half_precision(dtype: torch.dtype, learns: bool) -> None:
    """Weights of one sign, whose sum is far larger than the scores."""
    generator = torch.Generator().manual_seed(0)
    given = [data.normal(2, 16, 8, generator=generator) for _ in range(3)]
    whole = additive(8, 8, 256).float()
    nn.init.constant_(whole.w_v.weight, 0.25)
    chunked = additive(8, 8, 256, query_chunk=4).float()
    chunked.load_state_dict(whole.state_dict())
    whole(*given)
    truth = whole.attention_weights
    errors = []
    for attention in (whole.to(dtype), chunked.to(dtype)):
        with torch.set_grad_enabled(learns):
            attention(*(tensor.to(dtype) for tensor in given))
        errors.append((attention.attention_weights.float() - truth).abs().max())
    assert errors[1] <= 1.5 * errors[0]


@pytest.mark.parametrize("fused", [False, True])
def test_the_first_axis_of_a_3d_mask_is_the_batch_also_where_heads_equal_batch(fused: bool) -> None:
    queries, keys, values = (
        normal(3, 3, 5, 4),
        normal(3, 3, 7, 4, seed=1),
        normal(3, 3, 7, 6, seed=2),
    )
    mask = normal(3, 5, 7, seed=3) > 0
    output = DotProductAttention(fused=fused)(queries, keys, values, mask=mask)
    each_head = mask.unsqueeze(1).expand(3, 3, 5, 7)
    explicit = DotProductAttention()(queries, keys, values, mask=each_head)
    close(output, explicit)


def test_parameters_have_the_names_of_the_formula_and_no_bias() -> None:
    module = AdditiveAttention(13, 17, 23)
    shapes = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    assert shapes == {"W_q.weight": (23, 13), "W_k.weight": (23, 17), "w_v.weight": (1, 23)}
    assert not DotProductAttention().state_dict()
    chunked = AdditiveAttention(13, 17, 23, query_chunk=2)
    assert chunked.state_dict().keys() == module.state_dict().keys()


def test_pooling_gives_one_vector_a_sequence() -> None:
    pooling = AttentionPooling(16, 10).to(data.device)
    x = normal(32, 10, 16, dtype=torch.float32)
    assert pooling(x).shape == (32, 16)
    empty = pooling(x, on_device([0] * 32))
    assert (empty == 0).all()
    torch.testing.assert_close(pooling(x[:, :1])[:, :], x[:, 0])


@EVERY
def test_lengths_cost_no_synchronisation(make: object) -> None:
    """Seen on tensors without data, of which nothing can be read back."""
    lens = torch.empty(3, dtype=torch.int64, device="meta")
    arguments = [tensor.to("meta") for tensor in tensors()]
    assert make().to("meta")(*arguments, lens).shape == (3, 5, 2)


# What a module shows and keeps


@pytest.mark.parametrize(
    ("module", "pieces"),
    [
        (DotProductAttention(0.1, scale=2.0, fused=True), ["scale=2.0", "fused=True", "p=0.1"]),
        (DotProductAttention(), ["scale=1/√size"]),
        (AdditiveAttention(2, 3, 4, query_chunk=5), ["query_chunk=5"]),
        (MultiHeadAttention(8, 4, num_kv_heads=2), ["num_heads=4, num_kv_heads=2"]),
        (MultiHeadAttention(8, 4, rotary_base=9.0, fused=True), ["rotary_base=9.0, fused=True"]),
    ],
)
def test_a_printed_module_shows_what_it_was_made_with(
    module: torch.nn.Module, pieces: list[str]
) -> None:
    assert all(piece in repr(module) for piece in pieces)


def test_pooling_takes_a_mask_for_padding_on_the_left() -> None:
    torch.manual_seed(0)
    pooling = AttentionPooling(4, 6).to(data.device)
    x = data.normal(2, 5, 4, generator=torch.Generator().manual_seed(0))
    is_real = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]], dtype=torch.bool, device=data.device)
    pooled = pooling(x, mask=is_real)
    close(pooled[0], pooling(x[:1, 2:])[0])
    close(pooled[1], pooling(x[1:])[0])
    none = pooling(x, mask=torch.zeros_like(is_real))
    assert (none == 0).all()
    with refuses(ShapeError, "AttentionPooling", "'length' is 4 in mask"):
        pooling(x, mask=is_real[:, 1:])
