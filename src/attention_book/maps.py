"""The attention maps of a model while it runs, and the model without one of its heads."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention_book.attention import Attention, DotProductAttention
from attention_book.block import SelfAttentionBlock
from attention_book.multihead import MultiHeadAttention

#: Where attention layers have their output projection, and where Hugging Face's may have it.
OWN_PROJECTIONS: dict[Any, str] = {
    nn.MultiheadAttention: "out_proj",
    MultiHeadAttention: "W_o",
    SelfAttentionBlock: "dense",
}
PROJECTIONS = ("o_proj", "c_proj", "out_proj", "output.dense")
KNOWN = (
    "torch.nn.MultiheadAttention, the attention modules of attention_book, and the attention "
    "layers of Hugging Face's transformers"
)


@contextmanager
def capture(model: nn.Module) -> Iterator[list[Tensor]]:
    """Collect the attention weights of each layer of `model` while it runs in the block.

    >>> with capture(model) as maps:
    ...     model(tokens)
    >>> maps[0]  # of layer 0, (batch, heads, queries, keys)

    The list has one tensor per layer, without gradient, in the order in which the layers ran; if
    the model ran several times in the block, those of the last run. Layers with one head have a
    heads axis of size 1. A fused kernel forms no weights, so inside the block such layers compute
    as if they were not fused: the answers agree up to rounding. While a layer of PyTorch's or of
    Hugging Face's trains, its weights are those after dropout. Afterwards the model is as before,
    also after an exception.

    Raises:
        ValueError: for a model in which no attention layer is known, and at the end of the block
            for layers that ran and kept no weights.
    """
    layers = [module for module in model.modules() if _keeps_weights(module)]
    if not layers:
        raise ValueError(f"capture: the model has no attention layer of a known kind: {KNOWN}")
    maps: list[Tensor] = []
    makers: list[nn.Module] = []
    silent: set[str] = set()
    asked: list[tuple[bool, bool]] = []
    running = False

    def begin(*_: Any) -> None:
        nonlocal running
        running = True
        maps.clear()
        makers.clear()
        silent.clear()

    def end(*_: Any) -> None:
        nonlocal running
        running = False

    def keep(layer: nn.Module, weights: Tensor | None) -> None:
        if weights is None:
            if not any(inner in makers for inner in layer.modules()):
                silent.add(type(layer).__name__)
            return
        if any(weights is kept for kept in maps):  # an outer module returns what an inner one made
            return
        if layer in makers and not running:  # a layer called by itself, once more
            place = makers.index(layer)
            del maps[place], makers[place]
        maps.append(weights)
        makers.append(layer)

    def before_torch(layer: nn.Module, args: Any, kwargs: Any) -> Any:
        given = inspect.signature(layer.forward).bind(*args, **kwargs).arguments
        asked.append((given.get("need_weights", True), given.get("average_attn_weights", True)))
        return (), given | {"need_weights": True, "average_attn_weights": False}

    def after(layer: nn.Module, args: Any, result: Any) -> Any:
        weights = _weights_of(layer, result)
        keep(layer, weights)
        if not isinstance(layer, nn.MultiheadAttention):
            return result
        need_weights, averaged = asked.pop()
        given_back = result[1].mean(dim=-3) if averaged else result[1]
        return result[0], given_back if need_weights else None

    with ExitStack() as block:
        _take_slow_path(block)
        # The innermost first, and restored last: one further out also sets those inside.
        for module in reversed([*filter(_is_hugging_face, model.modules())]):
            if hasattr(config := getattr(module, "config", None), "_attn_implementation"):
                _put(block, config, "_attn_implementation", "eager")
        for layer in layers:
            if isinstance(layer, nn.MultiheadAttention):
                before = layer.register_forward_pre_hook(before_torch, with_kwargs=True)
                block.callback(before.remove)
            elif isinstance(layer, Attention):
                if isinstance(layer, DotProductAttention):
                    _put(block, layer, "fused", False)
                _put(block, layer, "attention_weights", layer.attention_weights)
            block.callback(layer.register_forward_hook(after).remove)
        if model not in layers:
            block.callback(model.register_forward_pre_hook(begin).remove)
            block.callback(model.register_forward_hook(end, always_call=True).remove)
        yield maps
        maps[:] = [kept.detach() for kept in maps]
        if silent:
            raise ValueError(
                f"capture: {', '.join(sorted(silent))} ran and kept no weights: its kernel does "
                f"not form them"
            )


@contextmanager
def without(
    model: nn.Module, layer: int, head: int, replace: Literal["zero", "mean"] = "zero"
) -> Iterator[None]:
    """Let `model` run in the block without what one head contributes to its layer.

    >>> with without(model, layer=1, head=3):
    ...     model(tokens)

    What the head hands to the layer's output projection becomes 0, or with `replace="mean"` its
    mean over all examples and positions of the call. Layers and heads count from 0, in the order
    in which the model's modules are defined, in which `capture` finds them if they also run so.

    Raises:
        ValueError: for a model in which no layer with heads is known, and another `replace`.
        IndexError: for a layer or a head that is not there.
    """
    if replace not in ("zero", "mean"):
        raise ValueError(f'without: replace must be "zero" or "mean", but is {replace!r}')
    layers = [found for module in model.modules() if (found := _with_heads(module))]
    if not layers:
        raise ValueError(f"without: the model has no layer with heads of a known kind: {KNOWN}")
    _at("layer", layer, len(layers), "the model")
    attention, projection, heads = layers[layer]
    _at("head", head, heads, f"layer {layer}")

    def edited(merged: Tensor) -> Tensor:
        by_head = merged.unflatten(-1, (heads, -1))
        mean = by_head[..., head, :].flatten(end_dim=-2).mean(dim=0)
        instead = mean if replace == "mean" else torch.zeros_like(mean)
        is_out = torch.arange(heads, device=merged.device)[:, None] == head
        return torch.where(is_out, instead, by_head).flatten(start_dim=-2)

    with ExitStack() as block:
        if isinstance(attention, nn.MultiheadAttention):
            # Its kernels project within: an identity lets the merged heads out.
            _take_slow_path(block)
            weight, bias = projection.weight, projection.bias
            identity = torch.eye(len(weight), dtype=weight.dtype, device=weight.device)
            block.callback(projection._parameters.update, weight=weight, bias=bias)
            projection._parameters.update(
                weight=nn.Parameter(identity, requires_grad=False), bias=None
            )

            handle = attention.register_forward_hook(
                lambda layer, args, result: (F.linear(edited(result[0]), weight, bias), *result[1:])
            )
        else:
            handle = projection.register_forward_pre_hook(
                lambda layer, args: (edited(args[0]), *args[1:])
            )
        block.callback(handle.remove)
        yield


def _at(name: str, index: int, count: int, owner: str) -> None:
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < count:
        raise IndexError(
            f"without: {name} must be from 0 to {count - 1}, because {owner} has {count}, but is "
            f"{index!r}"
        )


def _is_hugging_face(module: nn.Module) -> bool:
    return any(kind.__module__.startswith("transformers.") for kind in type(module).__mro__)


def _weights_of(layer: nn.Module, result: Any) -> Tensor | None:
    """The weights that an attention layer has just computed, with an axis of heads."""
    if isinstance(layer, Attention):
        weights = layer.attention_weights
        if weights is None:
            return None
        missing = 4 - weights.dim()  # one head, and for pooling one query
        return weights.reshape(len(weights), *[1] * missing, *weights.shape[1:])
    if isinstance(layer, nn.MultiheadAttention):
        return result[1].detach().reshape(-1, *result[1].shape[-3:])
    parts = result[1:] if isinstance(result, tuple) else ()
    return next((part for part in parts if isinstance(part, Tensor) and part.dim() == 4), None)


def _keeps_weights(module: nn.Module) -> bool:
    if isinstance(module, nn.MultiheadAttention | Attention):
        return True
    return _is_hugging_face(module) and type(module).__name__.endswith("Attention")


def _with_heads(module: nn.Module) -> tuple[nn.Module, Any, int] | None:
    """An attention layer, its output projection and the number of its heads."""
    for kind, name in OWN_PROJECTIONS.items():
        if isinstance(module, kind):
            return module, getattr(module, name), module.num_heads
    if not _keeps_weights(module) or isinstance(module, Attention):
        return None
    inside = dict(module.named_modules())
    projection = next((inside[name] for name in PROJECTIONS if name in inside), None)
    owners = (
        source for each in inside.values() for source in (each, getattr(each, "config", None))
    )
    counts = (
        getattr(o, name, None) for o in owners for name in ("num_heads", "num_attention_heads")
    )
    heads = next((count for count in counts if isinstance(count, int)), None)
    return (module, projection, heads) if projection is not None and heads is not None else None


def _put(block: ExitStack, owner: Any, name: str, value: object) -> None:
    """Set an attribute until the block ends."""
    block.callback(setattr, owner, name, getattr(owner, name))
    setattr(owner, name, value)


def _take_slow_path(block: ExitStack) -> None:
    """Let PyTorch's encoder layers call their modules, which their fast path leaves out."""
    block.callback(
        torch.backends.mha.set_fastpath_enabled, torch.backends.mha.get_fastpath_enabled()
    )
    torch.backends.mha.set_fastpath_enabled(False)
