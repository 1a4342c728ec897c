"""The shape explorer: a walk to choose from, at the sizes of published models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attention_book.attention import AdditiveAttention, DotProductAttention
from attention_book.block import SelfAttentionBlock
from attention_book.cache import KeyValueCache
from attention_book.language import N_
from attention_book.masking import masked_softmax
from attention_book.multihead import MultiHeadAttention
from attention_book.shapes import Shapes, trace
from attention_book.transformer import DecoderLayer, EncoderLayer, Transformer
from attention_book.walk.steps import shared, start_of, walk_of
from attention_book.walk.walk import ShapeWalk

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Model:
    """A published model: its sizes, where they stand, and the longest sequence to look at."""

    name: str
    source: str
    d_model: int
    heads: int
    kv_heads: int
    hidden: int
    layers: int
    length: int
    tokens: int
    writes: bool = True  # token by token, so that a cache is of use
    fits: tuple[str, ...] = ()  # layers that it is made of, besides attention

    def sizes(self) -> dict[str, int]:
        """The size of each dimension, under all the names that it has in tables."""
        d_k = self.d_model // self.heads
        sizes = {"batch": 1, "heads": self.heads, "hidden": self.hidden, "tokens": self.tokens}
        sizes |= dict.fromkeys(("size", "value_size", "d_k", "d_v"), d_k)
        sizes |= dict.fromkeys(("d_model", "query_size", "key_size"), self.d_model)
        sizes |= dict.fromkeys(("queries", "keys", "length"), self.length)
        return {**sizes, "kv_heads": self.kv_heads, "cached": self.length - 1}


ENCODER_DECODER = ("encoder layer", "decoder layer", "Transformer")
MODELS = [
    Model(
        "Transformer base",
        N_("Vaswani et al. (2017), table 3"),
        *(512, 8, 8, 2048, 6, 512, 37_000),
        fits=ENCODER_DECODER,
    ),
    Model(
        "Transformer big",
        N_("Vaswani et al. (2017), table 3"),
        *(1024, 16, 16, 4096, 6, 512, 37_000),
        fits=ENCODER_DECODER,
    ),
    Model(
        "BERT-base",
        N_("Devlin et al. (2019), section 3"),
        *(768, 12, 12, 3072, 12, 512, 30_522),
        writes=False,
        fits=("self-attention block", "encoder layer"),
    ),
    Model(
        "GPT-2 small",
        N_("Radford et al. (2019), table 2 and the published parameters"),
        *(768, 12, 12, 3072, 12, 1024, 50_257),
    ),
    Model(
        "Llama 3 8B",
        N_("Grattafiori et al. (2024), table 3"),
        *(4096, 32, 8, 14_336, 32, 8192, 128_000),
    ),
]


@dataclass(frozen=True)
class Case:
    """A call to look at: `run` makes it at any sizes, `start` are small ones."""

    start: dict[str, int]
    run: Callable[[Sizes], object]
    depth: int | None = 1
    grouped: bool | None = None  # models with fewer key and value heads, without, or either
    models: bool = True

    def trace(self, sizes: Sizes | None = None) -> Shapes:
        with trace(self.depth) as shapes, torch.no_grad():
            self.run(self.start if sizes is None else sizes)
        return shapes


def _zeros(sizes: Sizes, *names: str) -> Tensor:
    return torch.zeros([sizes[name] for name in names])


def _softmax(s: Sizes) -> Tensor:
    lengths = torch.zeros(s["batch"], dtype=torch.int64)
    return masked_softmax(_zeros(s, "batch", "heads", "queries", "keys"), lengths)


def _dot_product(s: Sizes) -> Tensor:
    queries, keys = _zeros(s, "batch", "queries", "size"), _zeros(s, "batch", "keys", "size")
    return DotProductAttention()(queries, keys, _zeros(s, "batch", "keys", "value_size"))


def _additive(s: Sizes) -> Tensor:
    attention = AdditiveAttention(s["query_size"], s["key_size"], s["hidden"])
    return attention(
        _zeros(s, "batch", "queries", "query_size"),
        _zeros(s, "batch", "keys", "key_size"),
        _zeros(s, "batch", "keys", "value_size"),
    )


def attention_of(s: Sizes) -> MultiHeadAttention:
    """The multi-head attention that has these sizes; those of keys and values may be one."""
    return MultiHeadAttention(
        s["d_model"],
        s["heads"],
        num_kv_heads=s.get("kv_heads"),
        d_k=s["d_k"],
        d_v=s["d_v"],
        query_size=s["query_size"],
        key_size=s.get("key_size", s["query_size"]),
        value_size=s.get("key_size", s["query_size"]),
    )


def _multi_head(s: Sizes) -> Tensor:
    memory = _zeros(s, "batch", "keys", "key_size")
    return attention_of(s)(_zeros(s, "batch", "queries", "query_size"), memory, memory)


def _cached(s: Sizes) -> Tensor:
    cache = KeyValueCache()
    cache.keys = _zeros(s, "batch", "kv_heads", "cached", "d_k")
    cache.values = _zeros(s, "batch", "kv_heads", "cached", "d_v")
    x = _zeros(s, "batch", "queries", "query_size")
    return attention_of(s)(x, x, x, causal=True, cache=cache)


def _block(s: Sizes) -> Tensor:
    return SelfAttentionBlock(s["d_model"], s["heads"])(_zeros(s, "batch", "length", "d_model"))


def _encoder(s: Sizes) -> Tensor:
    layer = EncoderLayer(s["d_model"], s["heads"], s["hidden"])
    return layer(_zeros(s, "batch", "length", "d_model"))


def _decoder(s: Sizes) -> Tensor:
    layer = DecoderLayer(s["d_model"], s["heads"], s["hidden"])
    return layer(_zeros(s, "batch", "queries", "d_model"), _zeros(s, "batch", "keys", "d_model"))


def _transformer(s: Sizes) -> Tensor:
    model = Transformer(s["tokens"], s["d_model"], s["heads"], s["hidden"])
    sources, targets = (
        torch.zeros(s["batch"], s[name], dtype=torch.int64) for name in ("keys", "queries")
    )
    return model(sources, targets)


_SMALL = {"batch": 2, "queries": 5, "keys": 7}
_HEADS = {"d_model": 12, "query_size": 12, "heads": 4, "d_k": 3, "d_v": 3}
CASES = {
    N_("masked softmax"): Case(
        {**_SMALL, "heads": 3},
        _softmax,
    ),
    N_("dot-product attention"): Case({**_SMALL, "size": 4, "value_size": 6}, _dot_product),
    N_("additive attention"): Case(
        {**_SMALL, "query_size": 6, "key_size": 4, "value_size": 6, "hidden": 8},
        _additive,
        models=False,
    ),
    N_("multi-head attention"): Case(
        {**_SMALL, **_HEADS, "key_size": 12}, _multi_head, grouped=False
    ),
    N_("grouped-query attention"): Case(
        {**_SMALL, **_HEADS, "key_size": 12, "kv_heads": 2}, _multi_head, grouped=True
    ),
    N_("a step with a cache"): Case(
        {"batch": 2, "queries": 1, "cached": 6, **_HEADS, "kv_heads": 2}, _cached, grouped=True
    ),
    N_("self-attention block"): Case(
        {"batch": 2, "length": 5, "d_model": 12, "heads": 4}, _block, grouped=False
    ),
    N_("encoder layer"): Case(
        {"batch": 2, "length": 5, "d_model": 12, "heads": 4, "hidden": 16},
        _encoder,
        depth=None,
        grouped=False,
    ),
    N_("decoder layer"): Case(
        {**_SMALL, "d_model": 12, "heads": 4, "hidden": 16}, _decoder, depth=2, grouped=False
    ),
    "Transformer": Case(
        {**_SMALL, "d_model": 12, "heads": 4, "hidden": 16, "tokens": 10},
        _transformer,
        depth=2,
        grouped=False,
    ),
}

#: Cases that only some models are made of.
_LAYERS = {"self-attention block", *ENCODER_DECODER}


def _fits(model: Model, name: str, case: Case) -> bool:
    if not case.models or (name in _LAYERS and name not in model.fits):
        return False
    return case.grouped is None or case.grouped == (model.kv_heads < model.heads)


def model_of(model: Model, walks: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """A model as the page needs it: the sizes of each walk that it fits, and its cache."""
    known = model.sizes()
    sizes = {
        name: {dim: 1 if case.start.get(dim) == 1 else known[dim] for dim in start_of(walks[name])}
        for name, case in CASES.items()
        if _fits(model, name, case)
    }
    cache = {
        "layers": model.layers,
        "kv_heads": model.kv_heads,
        "d_k": model.d_model // model.heads,
        "context": model.length,
    }
    entry = {"name": model.name, "source": model.source, "sizes": sizes}
    return {**entry, "cache": cache} if model.writes else entry


class ShapeExplorer(ShapeWalk):
    """A walk to choose, with published models to choose its sizes from.

    It opens at multi-head attention in `model`, or in a small example if that is empty.
    """

    def __init__(self, model: str = "BERT-base") -> None:
        walks = {name: walk_of(case.trace(), name) for name, case in CASES.items()}
        models = {each.name: model_of(each, walks) for each in MODELS}
        opened = walks["multi-head attention"]
        self._open(shared([*walks.values()], models=[*models.values()]), opened)
        if model:
            self.preset, self.sizes = model, models[model]["sizes"][opened["name"]]
