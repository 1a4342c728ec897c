"""The causal rule, the key–value cache, and greedy decoding with it."""

import copy
import pickle

import pytest
import torch
from cases import DTYPES, close, refuses
from torch import Tensor

import attention_book as book
from attention_book import ShapeError, data
from attention_book.data import START, words_to_reverse
from attention_book.measure import peak_bytes
from attention_book.transformer import DecoderCache, DecoderLayer, EncoderLayer


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return data.normal(*shape, generator=generator, dtype=torch.float64).to(dtype)


def made(kind: type, *sizes: int, dtype: torch.dtype = torch.float64, **options: object) -> object:
    torch.manual_seed(0)
    return kind(*sizes, **options).to(data.device, dtype)


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
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_kv_heads": 1},
        {"num_kv_heads": 2, "fused": True},
        {"num_kv_heads": 2, "rotary_base": 50.0},
    ],
)
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


def filled(
    length: int = 5, *, batch: int = 3, dtype: torch.dtype = torch.float64
) -> tuple[book.MultiHeadAttention, Tensor, book.KeyValueCache]:
    """An attention, a sequence, and a cache that holds the beginning of it, in pieces."""
    module = made(book.MultiHeadAttention, 8, 4, num_kv_heads=2, rotary_base=100.0, dtype=dtype)
    x, cache = normal(batch, 9, 8, dtype=dtype), book.KeyValueCache()
    with torch.no_grad():
        for part in x[:, :length].split(2, dim=1):
            module(part, part, part, causal=True, cache=cache)
    return module, x, cache


@torch.no_grad()
@pytest.mark.parametrize("length", [0, 1, 5])
def test_a_cache_cut_back_goes_on_from_there(length: int) -> None:
    module, x, cache = filled()
    held = cache.keys
    before = held.clone()
    cache.truncate(length)
    assert cache.length == length
    other = normal(3, 4, 8, seed=7)
    edited = torch.cat([x[:, :length], other], dim=1)
    later = [module(part, part, part, causal=True, cache=cache) for part in other.split(1, dim=1)]
    close(torch.cat(later, dim=1), module(edited, edited, edited, causal=True)[:, length:])
    assert torch.equal(held, before)  # what was read from it before is not written to


@torch.no_grad()
@pytest.mark.parametrize("rows", [[2, 0], [1, 1, 1, 1], [], torch.tensor([0, 2, 1])])
def test_rows_of_a_cache_go_on_as_their_texts_do(rows: object) -> None:
    module, x, cache = filled()
    cache.select(rows)
    later = [
        module(part, part, part, causal=True, cache=cache)
        for part in x[rows, 5:].split([1, 2, 1], dim=1)
    ]
    close(torch.cat(later, dim=1), module(x, x, x, causal=True)[rows, 5:])


@torch.no_grad()
def test_one_beginning_serves_several_texts() -> None:
    module, x, cache = filled(batch=1)
    for seed in (1, 2):
        branch, new = copy.copy(cache), normal(1, 4, 8, seed=seed)
        whole = torch.cat([x[:, :5], new], dim=1)
        later = [module(part, part, part, causal=True, cache=branch) for part in new.split(2, 1)]
        close(torch.cat(later, dim=1), module(whole, whole, whole, causal=True)[:, 5:])
    assert cache.length == 5
    for same in (copy.deepcopy(cache), pickle.loads(pickle.dumps(cache))):
        assert torch.equal(same.keys, cache.keys)
        assert same.length == 5


@torch.no_grad()
def test_a_copy_and_its_original_go_on_in_turn() -> None:
    module, x, cache = filled(batch=1)
    texts = [(copy.copy(cache), normal(1, 4, 8, seed=1)), (cache, normal(1, 4, 8, seed=2))]
    later = [[], []]
    for place in range(4):
        for (own, new), outputs in zip(texts, later, strict=True):
            part = new[:, place : place + 1]
            outputs.append(module(part, part, part, causal=True, cache=own))
    for (_, new), outputs in zip(texts, later, strict=True):
        whole = torch.cat([x[:, :5], new], dim=1)
        close(torch.cat(outputs, dim=1), module(whole, whole, whole, causal=True)[:, 5:])


@torch.no_grad()
def test_a_cache_moves_with_its_model() -> None:
    module, x, cache = filled(dtype=torch.float32)
    assert cache.to(torch.float64) is cache
    module.double()
    x = x.double()
    last = module(x[:, 5:], x[:, 5:], x[:, 5:], causal=True, cache=cache)
    close(last, module(x, x, x, causal=True)[:, 5:], torch.float32)
    assert cache.values.dtype == torch.float64
    assert book.KeyValueCache().to("meta").length == 0
    assert cache.to("meta").device == torch.device("meta")


def test_wrong_cuts_and_rows_are_refused() -> None:
    _, _, cache = filled()
    with refuses(ValueError, "KeyValueCache.truncate", "length is 6", "holds 5"):
        cache.truncate(6)
    with refuses(ValueError, "length must be at least 0", -1):
        cache.truncate(-1)
    with refuses(TypeError, "length must be an integer"):
        cache.truncate(1.0)
    with refuses(ValueError, "rows hold 3", "holds 3 examples"):
        cache.select([0, 3])
    with refuses(ValueError, "rows hold -1"):
        cache.select([-1])
    with refuses(TypeError, "rows must be integers"):
        cache.select([0.5])
    with refuses(TypeError, "rows must be integers"):
        cache.select(torch.tensor([True, False, True]))
    with refuses(ValueError, "the cache is empty"):
        book.KeyValueCache().select([0])
    assert cache.length == 5


@torch.no_grad()
def test_a_token_costs_no_copy_of_all_that_is_held() -> None:
    cache = book.KeyValueCache()
    new = normal(1, 2, 1, 64)
    cache.append(normal(1, 2, 1000, 64), normal(1, 2, 1000, 64))
    cache.append(new, new)  # makes room for as many again
    made_anew = peak_bytes(lambda: [cache.append(new, new) for _ in range(20)])
    assert cache.length == 1021
    assert made_anew < cache.bytes / 20


def test_a_cache_of_several_calls_has_the_gradients_of_one_pass() -> None:
    module, x, _ = filled()
    module.zero_grad()
    module(x, x, x, causal=True).square().sum().backward()
    truth = [p.grad.clone() for p in module.parameters()]
    module.zero_grad()
    cache = book.KeyValueCache()
    parts = [module(p, p, p, causal=True, cache=cache) for p in x.split([2, 1, 1, 5], dim=1)]
    torch.cat(parts, dim=1).square().sum().backward()
    for parameter, gradient in zip(module.parameters(), truth, strict=True):
        close(parameter.grad, gradient, reach=100)


def test_a_cache_filled_in_inference_mode_goes_on_outside() -> None:
    module, x, _ = filled()
    cache = book.KeyValueCache()
    with torch.inference_mode():
        for part in x[:, :5].split(1, dim=1):
            module(part, part, part, causal=True, cache=cache)
    with torch.no_grad():
        last = [module(p, p, p, causal=True, cache=cache) for p in x[:, 5:].split(1, dim=1)]
        close(torch.cat(last, dim=1), module(x, x, x, causal=True)[:, 5:])


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
