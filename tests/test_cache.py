"""Grouped heads, the causal rule, the key–value cache, and greedy decoding with it."""

import pytest
import torch
from cases import DTYPES, close, refuses
from torch import Tensor
from torch.nn import functional as F

import attention_book as book
from attention_book import ShapeError, data
from attention_book.data import START, words_to_reverse
from attention_book.transformer import DecoderCache, DecoderLayer, EncoderLayer


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return data.normal(*shape, generator=generator, dtype=torch.float64).to(dtype)


def made(kind: type, *sizes: int, dtype: torch.dtype = torch.float64, **options: object) -> object:
    torch.manual_seed(0)
    return kind(*sizes, **options).to(data.device, dtype)


# Grouped-query and multi-query attention


@pytest.mark.parametrize("num_kv_heads", [1, 2, 3, 6])
@pytest.mark.parametrize("fused", [False, True])
def test_query_heads_share_heads_of_keys_and_values(num_kv_heads: int, fused: bool) -> None:
    module = made(
        book.MultiHeadAttention, 37, 6, num_kv_heads=num_kv_heads, d_k=5, d_v=7, fused=fused
    )
    queries, keys, values = (normal(2, n, 37, seed=n) for n in (4, 9, 9))
    by_head = [
        book.split_heads(linear(x), heads)
        for linear, x, heads in [
            (module.W_q, queries, 6),
            (module.W_k, keys, num_kv_heads),
            (module.W_v, values, num_kv_heads),
        ]
    ]
    truth = F.scaled_dot_product_attention(*by_head, enable_gqa=True)
    close(module(queries, keys, values), module.W_o(book.merge_heads(truth)))


def test_each_query_head_uses_the_heads_of_its_own_group() -> None:
    """Head i uses i // 2: keys of group 1 changed, heads 0 and 1 stay as they were."""
    module = made(book.MultiHeadAttention, 8, 4, num_kv_heads=2)
    x = normal(1, 5, 8)
    module(x, x, x)
    before = module.attention_weights
    with torch.no_grad():
        module.W_k.weight[2:] += 1
    module(x, x, x)
    changed = (module.attention_weights != before).flatten(2).any(dim=-1)
    assert changed.tolist() == [[False, False, True, True]]


def test_fewer_key_value_heads_have_fewer_parameters() -> None:
    sizes = [
        made(book.MultiHeadAttention, 32, 8, num_kv_heads=heads).W_k.weight.shape[0]
        for heads in (8, 2, 1)
    ]
    assert sizes == [32, 8, 4]


@pytest.mark.parametrize("wrong", [0, 4, 12, True, 2.0])
def test_key_value_heads_that_do_not_divide_the_heads_are_refused(wrong: object) -> None:
    kind = TypeError if isinstance(wrong, bool | float) else ValueError
    with refuses(kind, "MultiHeadAttention", "num_kv_heads"):
        book.MultiHeadAttention(36, 6, num_kv_heads=wrong)


# Causal


@pytest.mark.parametrize("lengths", [(5, 5), (3, 7), (1, 6), (6, 4)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_causal_is_the_causal_mask_aligned_to_the_last_key(
    lengths: tuple[int, int], dtype: torch.dtype
) -> None:
    num_queries, num_keys = lengths
    queries, keys, values = (
        normal(3, n, 8, seed=n, dtype=dtype) for n in (num_queries, num_keys, num_keys)
    )
    mask = book.causal_mask(num_queries, num_keys, device=data.device)
    assert mask[-1].all()
    assert mask.sum() == sum(max(0, num_keys - i) for i in range(num_queries))
    lens = torch.tensor([num_keys, 0, 2], device=data.device)
    for module in [
        made(book.DotProductAttention, dtype=dtype),
        made(book.DotProductAttention, fused=True, dtype=dtype),
        made(book.AdditiveAttention, 8, 8, 6, dtype=dtype),
        made(book.AdditiveAttention, 8, 8, 6, query_chunk=2, dtype=dtype),
        made(book.MultiHeadAttention, 8, 2, dtype=dtype),
        made(book.MultiHeadAttention, 8, 2, fused=True, dtype=dtype),
    ]:
        for valid_lens in (None, lens):
            close(
                module(queries, keys, values, valid_lens, causal=True),
                module(queries, keys, values, valid_lens, mask=mask),
            )
    scores = normal(3, num_queries, num_keys, dtype=dtype)
    close(book.masked_softmax(scores, causal=True), book.masked_softmax(scores, mask=mask))


def test_causal_blocks_equal_their_mask() -> None:
    x = normal(2, 5, 8)
    mask = book.causal_mask(5, device=data.device)
    for fused in (False, True):
        block = made(book.SelfAttentionBlock, 8, 2, fused=fused)
        encoder = made(EncoderLayer, 8, 2, 6, fused=fused)
        for module in (block, encoder):
            close(module(x, causal=True), module(x, mask=mask))
        decoder = made(DecoderLayer, 8, 2, 6, fused=fused)
        close(decoder(x, x), decoder(x, x, mask=mask, causal=False))
        assert not torch.allclose(decoder(x, x), decoder(x, x, causal=False))


def test_a_transformer_takes_masks_for_each_of_its_three_uses() -> None:
    model = made(book.Transformer, 9, 8, 2, 6)
    sources = torch.tensor([[8, 8, 1, 2], [3, 4, 5, 6]], device=data.device)
    targets = torch.tensor([[1, 2, 3], [4, 5, 6]], device=data.device)
    is_real = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]], dtype=torch.bool, device=data.device)
    left = model(
        sources, targets, source_mask=is_real.unsqueeze(1), memory_mask=is_real.unsqueeze(1)
    )
    other = sources.clone()
    other[0, :2] = 7  # other tokens in the padding on the left
    again = model(
        other, targets, source_mask=is_real.unsqueeze(1), memory_mask=is_real.unsqueeze(1)
    )
    close(left, again)
    assert not torch.allclose(left, model(other, targets))
    own = torch.eye(3, dtype=torch.bool, device=data.device)
    alone = model(sources, targets, target_mask=own)
    assert not torch.allclose(alone, model(sources, targets))


# The cache


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("pieces", [[1] * 7, [4, 1, 2], [7], [0, 7]])
@pytest.mark.parametrize("options", [{}, {"num_kv_heads": 1}, {"num_kv_heads": 2, "fused": True}])
def test_pieces_with_a_cache_equal_one_causal_pass(
    pieces: list[int], options: dict[str, object], dtype: torch.dtype
) -> None:
    module = made(book.MultiHeadAttention, 8, 4, dtype=dtype, **options)
    x = normal(2, 7, 8, dtype=dtype)
    cache = book.KeyValueCache()
    outputs = [module(part, part, part, causal=True, cache=cache) for part in x.split(pieces, 1)]
    close(torch.cat(outputs, dim=1), module(x, x, x, causal=True))
    assert cache.length == 7
    per_position = 2 * 2 * module.num_kv_heads * 2 * dtype.itemsize  # two tensors, batch 2, d_k 2
    assert cache.bytes == 7 * per_position


def test_rotated_pieces_equal_one_rotated_pass() -> None:
    x = normal(2, 7, 8)
    whole = book.rotary_embedding(x)
    pieces = [book.rotary_embedding(x[:, a:b], offset=a) for a, b in [(0, 3), (3, 4), (4, 7)]]
    close(torch.cat(pieces, dim=1), whole)


def test_lengths_and_masks_count_the_cached_keys_too() -> None:
    module = made(book.MultiHeadAttention, 8, 2)
    x = normal(2, 6, 8)
    for rule in [
        {"valid_lens": torch.tensor([6, 5], device=data.device)},
        {"mask": torch.rand(2, 2, 6, generator=torch.Generator().manual_seed(0)).to(x) < 0.5},
    ]:
        cache = book.KeyValueCache()
        module(x[:, :4], x[:, :4], x[:, :4], cache=cache)
        with_cache = module(x[:, 4:], x[:, 4:], x[:, 4:], cache=cache, **rule)
        close(with_cache, module(x[:, 4:], x, x, **rule))


def test_what_one_call_hides_a_later_one_may_see() -> None:
    module = made(book.MultiHeadAttention, 8, 2)
    x = normal(1, 3, 8)
    cache = book.KeyValueCache()
    hidden = torch.tensor([[True, False]], device=data.device)
    module(x[:, :1], x[:, :2], x[:, :2], mask=hidden, cache=cache)
    close(module(x[:, 2:], x[:, 2:], x[:, 2:], cache=cache), module(x[:, 2:], x, x))


def test_a_cache_that_does_not_fit_is_refused_before_anything_is_computed() -> None:
    module, x = made(book.MultiHeadAttention, 8, 4, num_kv_heads=2), normal(2, 3, 8)
    cache = book.KeyValueCache()
    module(x, x, x, cache=cache)
    held = cache.keys.clone()
    other_batch = normal(3, 1, 8)
    with refuses(ShapeError, "'batch' is 3 in queries", "2 in the cache"):
        module(other_batch, other_batch, other_batch, cache=cache)
    with refuses(ShapeError, "'kv_heads' is 2 in the cache", "4 in this module"):
        made(book.MultiHeadAttention, 8, 4)(x, x, x, cache=cache)
    with refuses(ShapeError, "'d_k' is 2 in the cache", "5 in this module"):
        made(book.MultiHeadAttention, 8, 4, num_kv_heads=2, d_k=5)(x, x, x, cache=cache)
    with refuses(ValueError, "valid_lens", 2, "between the number of cached keys, 3, and"):
        module(x, x, x, torch.tensor([6, 2], device=data.device), cache=cache)
    with refuses(ShapeError, "'cached+keys' is 5 in mask", 6):
        mask = torch.ones(3, 5, dtype=torch.bool, device=data.device)
        module(x, x, x, mask=mask, cache=cache)
    cache.keys = cache.keys.to("meta")
    with refuses(ValueError, "queries is on", "the cache is on meta"):
        module(x, x, x, cache=cache)
    cache.keys = held
    assert cache.length == 3
    assert repr(cache) == "KeyValueCache(length=3, batch=2, kv_heads=2, d_k=2, d_v=2)"
    assert repr(book.KeyValueCache()) == "KeyValueCache(length=0)"
    assert book.KeyValueCache().bytes == 0


# Decoding


@pytest.mark.parametrize("num_layers", [1, 3])
@pytest.mark.parametrize("fused", [False, True])
def test_greedy_decoding_with_the_cache_writes_the_same_tokens(
    num_layers: int, fused: bool
) -> None:
    model = made(book.Transformer, 28, 16, 4, 32, num_layers, fused=fused)
    words = words_to_reverse(20, generator=torch.Generator().manual_seed(0))
    arguments = {"start": START, "num_steps": 12}
    for lens in (None, words.source_lens, words.source_lens - 3):
        with_cache = model.greedy_decode(words.sources, lens, **arguments)
        without = model.greedy_decode(words.sources, lens, use_cache=False, **arguments)
        assert torch.equal(with_cache, without)
        assert len(with_cache.unique()) > 5  # not one token again and again


def test_a_decoder_layer_reads_the_memory_once() -> None:
    layer = made(DecoderLayer, 8, 2, 6)
    x, memory = normal(2, 4, 8), normal(2, 5, 8, seed=1)
    lens = torch.tensor([5, 2], device=data.device)
    cache = DecoderCache()
    steps = [layer(x[:, i : i + 1], memory, lens, cache=cache) for i in range(4)]
    close(torch.cat(steps, dim=1), layer(x, memory, lens))
    assert cache.memory.length == 5
    assert cache.targets.length == 4
    assert cache.bytes == (5 + 4) * 2 * 2 * 8 * 8  # keys and values, batch 2, 8 numbers of 8 bytes


def test_a_decoder_cache_of_another_batch_is_refused() -> None:
    layer, cache = made(DecoderLayer, 8, 2, 6), DecoderCache()
    x = normal(2, 4, 8)
    layer(x, x, cache=cache)
    with refuses(ShapeError, "'batch' is 1 in x", "2 in the cache"):
        layer(x[:1], x[:1], cache=cache)
