"""Every public function, with arguments of any sizes: once here, for the tests of them all.

A test traces each, others compile, map, differentiate and export it.
"""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import attention_book as book
from attention_book import data
from attention_book.transformer import DecoderLayer, EncoderLayer

#: Small sizes, at which a test computes something many times.
SMALL = SimpleNamespace(
    **{"batch": 2, "heads": 2, "queries": 5, "keys": 7, "size": 4, "query_size": 4, "key_size": 4},
    **{"value_size": 4, "hidden": 6, "d_k": 3, "d_v": 2, "d_model": 8},
)
TOKENS = 9

Make = Callable[[Any], Callable[..., Tensor]]


def normal(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return data.normal(*shape, generator=generator, dtype=torch.float64)


def tensors(s: Any, seed: int = 0) -> dict[str, Tensor]:
    """Arguments of these sizes, by name; other ones for another seed."""
    generator = torch.Generator().manual_seed(seed)

    def integers(*shape: int, highest: int) -> Tensor:
        return torch.randint(highest + 1, shape, generator=generator).to(data.device)

    shapes = {
        "queries": (s.batch, s.queries, s.size),
        "keys": (s.batch, s.keys, s.size),
        "values": (s.batch, s.keys, s.value_size),
        "own_queries": (s.batch, s.queries, s.query_size),
        "own_keys": (s.batch, s.keys, s.key_size),
        "head_queries": (s.batch, s.heads, s.queries, s.size),
        "head_keys": (s.batch, s.heads, s.keys, s.size),
        "scores": (s.batch, s.queries, s.keys),
        "sequence": (s.batch, s.keys, 2 * s.size),
        "targets": (s.batch, s.queries, 2 * s.size),
        "W": (s.query_size, s.key_size),
        "W_q": (s.hidden, s.query_size),
        "W_k": (s.hidden, s.key_size),
        "w_v": (s.hidden,),
    }
    drawn = {name: normal(*shape, seed=seed + i) for i, (name, shape) in enumerate(shapes.items())}
    return drawn | {
        "lens": integers(s.batch, highest=s.keys),
        "query_lens": integers(s.batch, s.queries, highest=s.keys),
        "sources": integers(s.batch, s.keys, highest=TOKENS - 1),
        "tokens": integers(s.batch, s.queries, highest=TOKENS - 1),
    }


def module(kind: type[nn.Module], *arguments: int, **options: object) -> nn.Module:
    """A module whose weights are those of every run and every device."""
    made = kind(*arguments, **options)
    for seed, parameter in enumerate(made.parameters()):
        parameter.data = normal(*parameter.shape, seed=seed) / 2
    return made


def multi_head(s: Any, **options: object) -> nn.Module:
    own = {f"{name}_size": getattr(s, f"{name}_size") for name in ("query", "key", "value")}
    of_heads = {"num_kv_heads": s.heads, "d_k": s.d_k, "d_v": s.d_v}
    return module(book.MultiHeadAttention, s.d_model, 2 * s.heads, **{**of_heads, **own, **options})


def sequence_of(kind: type[nn.Module], **options: object) -> Make:
    """A module of a sequence, made from its width, its heads and its hidden units."""
    return lambda s: module(kind, 2 * s.size, s.heads, s.hidden, **options)


def language_model(**options: object) -> Make:
    return lambda s: module(
        book.LanguageModel, TOKENS, 4 * s.heads, s.heads, s.hidden, 2, **options
    )


def additive(**options: object) -> Make:
    sizes = ("query_size", "key_size", "hidden")
    return lambda s: module(
        book.AdditiveAttention, *(getattr(s, name) for name in sizes), **options
    )


PAIR, CALL = "queries keys", "queries keys values query_lens"
OWN_CALL = "own_queries own_keys values query_lens"
#: What is called, made from sizes, and the names of what it is given.
EVERY: dict[str, tuple[Make, str]] = {
    "length_mask": (lambda s: partial(book.length_mask, num_keys=s.keys), "query_lens"),
    "masked_softmax": (lambda s: book.masked_softmax, "scores query_lens"),
    "masked_softmax, causal": (
        lambda s: partial(book.masked_softmax, causal=True),
        "scores query_lens",
    ),
    "dot_product_scores": (lambda s: book.dot_product_scores, PAIR),
    "scaled_dot_product_scores": (lambda s: book.scaled_dot_product_scores, PAIR),
    "distance_scores": (lambda s: book.distance_scores, PAIR),
    "distance_scores, heads": (lambda s: book.distance_scores, "head_queries head_keys"),
    "bilinear_scores": (lambda s: book.bilinear_scores, "own_queries own_keys W"),
    "additive_scores": (lambda s: book.additive_scores, "own_queries own_keys W_q W_k w_v"),
    "split_heads": (lambda s: partial(book.split_heads, num_heads=s.heads), "sequence"),
    "merge_heads": (lambda s: book.merge_heads, "head_keys"),
    "rotary_embedding": (lambda s: book.rotary_embedding, "sequence"),
    "DotProductAttention": (lambda s: book.DotProductAttention(), CALL),
    "DotProductAttention, fused": (lambda s: book.DotProductAttention(fused=True), CALL),
    "AdditiveAttention": (additive(), OWN_CALL),
    "AdditiveAttention, chunked": (additive(query_chunk=2), OWN_CALL),
    "AttentionPooling": (
        lambda s: module(book.AttentionPooling, 2 * s.size, s.hidden),
        "sequence lens",
    ),
    "MultiHeadAttention": (multi_head, OWN_CALL),
    "MultiHeadAttention, fused": (lambda s: multi_head(s, fused=True), OWN_CALL),
    "MultiHeadAttention, one per head": (
        lambda s: multi_head(s, num_kv_heads=2 * s.heads),
        OWN_CALL,
    ),
    "MultiHeadAttention, rotated": (
        lambda s: multi_head(s, d_k=4, rotary_base=9.0),
        OWN_CALL,
    ),
    "LayerNorm": (lambda s: module(book.LayerNorm, 2 * s.size), "sequence"),
    "SelfAttentionBlock": (
        lambda s: module(book.SelfAttentionBlock, 2 * s.size, s.heads),
        "sequence lens",
    ),
    "Transformer": (
        lambda s: module(book.Transformer, TOKENS, 2 * s.size, s.heads, s.hidden),
        "sources tokens lens",
    ),
    "LanguageModel": (language_model(), "sources lens"),
    "LanguageModel, fused": (language_model(fused=True), "sources lens"),
}
#: Layers that are no public names, but have tables of their own.
LAYERS: dict[str, tuple[Make, str]] = {
    "EncoderLayer": (sequence_of(EncoderLayer), "sequence lens"),
    "DecoderLayer": (sequence_of(DecoderLayer), "targets sequence lens"),
}


def given_to(names: str, s: Any, seed: int = 0) -> tuple[Tensor, ...]:
    """The arguments of these names."""
    drawn = tensors(s, seed)
    return tuple(drawn[name] for name in names.split())
