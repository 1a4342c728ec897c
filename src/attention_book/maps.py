"""The attention maps of a model while it runs, and the model without one of its heads."""

from __future__ import annotations

import inspect
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from attention_book.attention import Attention, DotProductAttention
from attention_book.block import SelfAttentionBlock
from attention_book.multihead import MultiHeadAttention

#: Where attention layers have their output projection, and where Hugging Face's may have it.
OWN_PROJECTIONS: dict[Any, str] = {
    nn.MultiheadAttention: "out_proj",
    MultiHeadAttention: "W_o",
    SelfAttentionBlock: "dense",
}
PROJECTIONS = ("o_proj", "c_proj", "out_proj", "output.dense", "o")
#: Layers of Hugging Face's whose four axes are others, or that return two parts of their weights.
OTHERWISE = ("XLNet", "Longformer", "LEDEncoder", "T5Gemma2Merged")
KNOWN = "torch.nn.MultiheadAttention, the attention modules of attention_book, and Hugging Face's"
#: For each thing that open blocks have set, how to undo it, in the order in which they set it.
UNDO: defaultdict[Any, list[Callable[[], object]]] = defaultdict(list)


@contextmanager
def capture(model: nn.Module) -> Iterator[list[Tensor]]:
    """Collect the attention weights of each layer of `model` while it runs in the block.

    >>> with capture(model) as maps:
    ...     model(tokens)
    >>> maps[0]  # of layer 0, (batch, heads, queries, keys)

    The list has one tensor per layer, without gradient, in the order in which the layers ran; if
    the model ran several times in the block, those of the last run. Layers with one head have a
    heads axis of size 1. A fused kernel forms no weights, so inside the block such layers compute
    as if they were not fused, and a compiled model runs uncompiled: the answers agree up to
    rounding, except at padded positions, where PyTorch's encoder gives 0 on its fast path and
    numbers in the block, and other kernels may differ, too. While a layer of PyTorch's or of
    Hugging Face's trains, its weights are those after dropout. Afterwards the model is as before,
    also after an exception.

    Raises:
        TypeError: for a model that is not a module.
        ValueError: for a model in which no attention layer is known, and at the end of the block
            for layers that ran and kept no weights.
    """
    mend = "attention layers); let a layer of your own return its weights, for AttentionLens"
    layers = _known("capture", model, lambda layer: layer if _keeps_weights(layer) else None, mend)
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
        _run_as_written(block)
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
                f"capture: {', '.join(sorted(silent))} ran and returned no weights (batch, heads, "
                f"queries, keys); if the model takes output_attentions=True, call it so outside "
                f"the block and take the attentions that it returns"
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
    in which the model's modules are defined, in which `capture` finds them if they also run so. As
    in `capture`, a compiled model runs uncompiled, and PyTorch's encoder without its fast path.

    Raises:
        TypeError: for a model that is not a module.
        ValueError: for a model in which no layer with heads is known, and another `replace`.
        IndexError: for a layer or a head that is not there.
    """
    if replace not in ("zero", "mean"):
        raise ValueError(f'without: replace must be "zero" or "mean", but is {replace!r}')
    mend = "layers as in Llama, GPT-2, BERT and T5); in code of your own, multiply the head by 0"
    layers = _known("without", model, _with_heads, mend)
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
        _run_as_written(block)
        if isinstance(attention, nn.MultiheadAttention):
            # Its kernel projects within: for the call a stand-in with an identity lets the merged
            # heads out, and the projection itself is called after it, once for all open blocks.
            identity = torch.eye(attention.embed_dim).to(projection.weight)
            stand_in = SimpleNamespace(weight=identity, bias=None)

            def project(layer: nn.Module, args: Any, result: Any) -> Any:
                stood_in = layer.__dict__.pop("out_proj", None)
                return (projection(result[0]), *result[1:]) if stood_in and result else result

            before = attention.register_forward_pre_hook(
                lambda layer, args: layer.__dict__.update(out_proj=stand_in)
            )
            block.callback(attention.__dict__.pop, "out_proj", None)
            block.callback(before.remove)
            block.callback(attention.register_forward_hook(project, always_call=True).remove)
        edit = projection.register_forward_pre_hook(
            lambda layer, args: (edited(args[0]), *args[1:])
        )
        block.callback(edit.remove)
        yield


def _known(owner: str, model: object, find: Callable[[nn.Module], Any], mend: str) -> list[Any]:
    """What `find` finds in the modules of a model, at least one."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"{owner}: model must be a torch.nn.Module, but is {type(model).__name__}")
    found = [*filter(None, map(find, model.modules()))]
    if not found:
        raise ValueError(f"{owner}: the model has no layer of a known kind ({KNOWN} {mend}")
    return found


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
    if not isinstance(result, tuple) or type(layer).__name__.startswith(OTHERWISE):
        return None
    # T5's kind returns its position bias first, and only weights are never below 0.
    parts = [part for part in result[1:] if isinstance(part, Tensor) and part.dim() == 4]
    return parts[-1] if parts and not (parts[-1] < 0).any() else None


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
    owners = [o for each in inside.values() for o in (each, getattr(each, "config", None))]
    names = ("num_heads", "num_attention_heads")
    counts = [getattr(owner, name, None) for owner in owners for name in names]
    heads = next((count for count in counts if isinstance(count, int)), None)
    return (module, projection, heads) if projection is not None and heads is not None else None


def _put(block: ExitStack, owner: Any, name: str, value: object) -> None:
    """Set an attribute until the block ends."""
    _undo_after(block, (id(owner), name), partial(setattr, owner, name, getattr(owner, name)))
    setattr(owner, name, value)


def _run_as_written(block: ExitStack) -> None:
    """Let each module be called: compiled code and the fast path of PyTorch's encoder call none."""
    mha = torch.backends.mha
    _undo_after(block, mha, partial(mha.set_fastpath_enabled, mha.get_fastpath_enabled()))
    mha.set_fastpath_enabled(False)
    if "torch._dynamo" in sys.modules:  # who compiles has loaded it; to load it takes seconds
        stance = torch.compiler.set_stance("force_eager")
        _undo_after(block, torch.compiler, partial(stance.__exit__, None, None, None))


def _undo_after(block: ExitStack, what: object, undo: Callable[[], object]) -> None:
    """Undo its last change when the block ends: after all blocks, in any order, it is as before."""
    UNDO[what].append(undo)
    block.callback(lambda: UNDO[what].pop()())
