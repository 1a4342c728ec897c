"""The attention maps of any model: all heads at once, one of them in detail, and measured."""

from __future__ import annotations

import base64
import unicodedata
import warnings
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar

import torch
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from attention_book.data import stories
from attention_book.figures.base import (
    Count,
    Figure,
    canvas_of,
    control,
    labels,
    listed,
    numbers,
    rounded,
    shown,
)
from attention_book.language import N_, say
from attention_book.language_model import LanguageModel
from attention_book.maps import capture
from attention_book.plots import STYLE, draw_weights

#: The most that the lens takes, and the bytes that the weights of a page may have.
LIMITS = {"layers": 48, "heads": 32, "places": 256}
ROOM = 2_500_000
LISTS = 0.66  # of the room, for the largest keys of all queries, where the maps are not all whole
MOST_KEPT = 8  # keys of a query
LONGEST = 16  # signs of a token that are shown
UNEVEN = 0.01  # so far from 1 a row of 16-bit weights may sum by rounding
TEXT = (
    "Once upon a time, there was a little child named Tim. The child liked to play in the park. "
    "One day,"
)
SIGNS = {"\n": "⏎", "\t": "⇥", "\r": "⏎", "": "∅"}
MISSING: Any = object()  # no argument: None is what a fused kernel leaves

MEASURES = {
    "previous": N_("share on the place before"),
    "first": N_("share on the first place"),
    "same": N_("share on the same token"),
    "after": N_("share after an earlier equal token"),
    "entropy": N_("entropy in nats"),
}


@cache
def story() -> tuple[list[Tensor], list[str]]:
    """The maps of stories260K on the beginning of a story, and the pieces of that text."""
    found = stories()
    model = LanguageModel.from_pretrained(found.folder).eval().double()
    ids = found.encode(TEXT)
    with torch.no_grad(), capture(model) as maps:
        model(torch.tensor([ids]))
    texts = [(found.decode([first]), found.decode([first, each])) for first, each in pairwise(ids)]
    pieces = [both.removeprefix(first) for first, both in texts]
    return maps, ["begin", *pieces]


class AttentionLens(Figure):
    """Look at the attention maps of any model: all of its heads side by side, one in detail.

    >>> with capture(model) as maps:
    ...     model(ids)
    >>> AttentionLens(maps, tokens)

    `weights` are those of self-attention: the list that `capture` fills, the tuple `attentions`
    of Hugging Face's models, a list of the `attention_weights` of the book's modules, each
    (batch, heads, queries, keys), or one tensor (layers, heads, queries, keys), with or without a
    batch after the layers. `tokens` are the
    pieces of the text, one for each place, and `example` is the one of the batch that is shown.
    The lens takes up to 48 layers × 32 heads × 256 places; all three count from 0.

    The page stores each weight in 8 bits, within 0.004. Where not all maps fit, it stores the
    largest keys of each query for all heads, and whole maps of the heads in `whole`, pairs of a
    layer and a head, or of those that lead in one of the descriptions. With a kernel all maps
    can be seen.

    Each head is described by means over the queries: the share of its weight on the place before
    the query and on the first place (both without query 0, which has no place before it), on the
    places with the query's token, its own included, and on the tokens that follow an earlier
    token equal to the query's (over the queries that have one); and by its entropy, in nats. They
    say where a head looks, not what for. Rows need not sum to 1; how many do not is said.

    `measure` is the description that colours the heads, "previous", "first", "same", "after" or
    "entropy", and `order` sorts them by "layer" or by the "measure", largest first. `layer` and
    `head` choose the head in detail, whose map is drawn as a "map" or as "threads" by `view`.
    `query` is the place that is followed, at first the last one, and `reading` whether it is a
    "query" that reads or a "key" that is read. All of these follow the controls and may be set.

    Raises:
        TypeError, ValueError, IndexError: for weights, tokens or an example that cannot be shown,
            in one sentence; traitlets.TraitError: for what no control can show.
    """

    kind = "lens"
    look = "lens.css"
    measure = control("previous", MEASURES, N_("Colour"))
    order = control("layer", {"layer": N_("by layer"), "measure": N_("by colour")}, N_("Order"))
    layer = control(0, Count(("layers",)), N_("layer"))
    head = control(0, Count(("heads",)), N_("head"))
    query = control(0, Count(("tokens",)), N_("place"))
    reading = control(
        "query", {"query": N_("what it reads"), "key": N_("what reads it")}, N_("The place")
    )
    view = control("map", {"map": N_("map"), "threads": N_("threads")}, N_("Drawn as"))
    phrases: ClassVar = {
        "query": N_("Layer {0}, head {1}: “{2}” at place {3} reads most “{4}” at {5} ({6})."),
        "key": N_("Layer {0}, head {1}: “{2}” at place {3} is read most by “{4}” at {5} ({6})."),
        "some": N_(
            "Layer {0}, head {1}: of what is stored, “{2}” at place {3} is read most by “{4}” "
            "at {5} ({6})."
        ),
        "none": N_("Layer {0}, head {1}: “{2}” at place {3} has no weight."),
    }

    def __init__(
        self,
        weights: Any = MISSING,
        tokens: Sequence[str] | None = None,
        example: int = 0,
        *,
        whole: Sequence[tuple[int, int]] | None = None,
        **controls: Any,
    ) -> None:
        if weights is MISSING:
            weights, tokens = story()
            # It looks at the child's name from the end of the text.
            controls = {"layer": 2, "head": 6} | controls
        self._layers = _layers(weights, example)
        num_layers, (num_heads, places, _) = len(self._layers), self._layers[0].shape
        names = _names(tokens, places)
        measured, uneven, causal = _described(self._layers, names)
        data: dict[str, Any] = {
            "tokens": [_visible(name) for name in names],
            "layers": num_layers,
            "heads": num_heads,
            "causal": causal,
            "uneven": uneven,
            "measures": {  # empty where no query has what is described
                name: [] if each.isnan().any() else rounded(each, 4)
                for name, each in measured.items()
            },
        }
        self._keep(data, measured, whole)
        best = int(measured["previous"].nan_to_num().argmax())
        opening = {name: getattr(type(self), name).default_value for name in self.controls()}
        opening |= {"layer": best // num_heads, "head": best % num_heads, "query": places - 1}
        if unknown := controls.keys() - opening:
            raise TypeError(f"AttentionLens: there is no argument {min(unknown)!r}")
        super().__init__(
            data=data,
            **(opening | controls),
            caption="Each field is a head. Its colour, or the bar under it, is the chosen "
            "description, relative to the largest. Larger fields also show the weights of the "
            "chosen place, or the whole map. Weights are shaded by their square root, so that "
            "small ones can be seen. Choose a head and a place.",
        )
        self.on_msg(self._answer)

    def _keep(self, data: dict[str, Any], measured: dict[str, Tensor], whole: Any) -> None:
        """Put into `data` what fits: whole maps, and the largest keys of each query."""
        num_heads, places = data["heads"], len(data["tokens"])
        count = data["layers"] * num_heads
        size = places * (places + 1) // 2 if data["causal"] else places**2
        if whole is None and count * size <= ROOM:
            chosen, kept = [*range(count)], 0
        else:
            asked = [*dict.fromkeys(_number(pair, data) for pair in whole or ())]
            room = ROOM - len(asked) * size
            one = 2 * count * places  # bytes of one key of each query, and its weight
            if room < one:
                raise ValueError(
                    f"AttentionLens: of {len(asked)} whole maps with {places} places "
                    f"{(ROOM - one) // size} fit; leave some of `whole` out"
                )
            share = room if asked else LISTS * ROOM
            kept = min(max(int(share // one), 1), MOST_KEPT, places)
            chosen = asked
            if whole is None:
                ranks = [each.argsort(descending=True, stable=True) for each in measured.values()]
                leading = dict.fromkeys(torch.stack(ranks, dim=1).flatten().tolist())
                chosen = [*leading][: (ROOM - kept * one) // size]
            chosen.sort()
        lists = b"".join(_lists(layer, kept) for layer in self._layers) if kept else b""
        self._causal = data["causal"]
        maps = b"".join(self._map_bytes(divmod(each, num_heads)) for each in chosen)
        data |= {
            "whole": chosen,
            "kept": kept,
            "maps": base64.b64encode(maps).decode(),
            "lists": base64.b64encode(lists).decode(),
        }

    def _map_bytes(self, pair: tuple[int, int]) -> bytes:
        """A head's map in 8 bits, without what lies above the diagonal of a causal one."""
        codes = _coded(self._layers[pair[0]][pair[1]])
        if self._causal:
            codes = codes[tuple(torch.tril_indices(*codes.shape))]
        return codes.numpy().tobytes()

    def _answer(self, _: Any, content: Any, buffers: Any) -> None:
        """Send the page the whole map that it asks for."""
        asked = content.get("head") if isinstance(content, dict) else None
        if type(asked) is int and 0 <= asked < self.data["layers"] * self.data["heads"]:
            self.send({"head": asked}, [self._map_bytes(divmod(asked, self.data["heads"]))])

    def _map(self) -> Tensor:
        """The chosen head's map as the page has it, (queries, keys); 0 where it has no weight."""
        weights = self._layers[self.layer][self.head]
        codes = _coded(weights)
        if self.layer * self.data["heads"] + self.head not in self.data["whole"]:
            largest = weights.topk(self.data["kept"], dim=-1).indices
            codes = torch.zeros_like(codes).scatter(-1, largest, codes.gather(-1, largest))
        return (codes.double() / 255).square()

    def describe(self) -> str:
        data, measure = self.data, self.data["measures"][self.measure]
        number, heads, places = len(self._order()), data["heads"], len(data["tokens"])
        best = max(range(number), key=lambda each: measure[each]) if measure else None
        lead = "" if best is None else f" (most in {best // heads}.{best % heads})"
        order = {"layer": "in layers", "measure": "sorted"}[self.order]
        return (
            f"{number} heads {order}, {places} places, coloured by {MEASURES[self.measure]}{lead}. "
            f"The chosen head as {'a map' if self.view == 'map' else 'threads'}. {self._look()}"
        )

    def _look(self) -> str:
        """What the chosen place reads, or what reads it."""
        weights, tokens = self._map(), self.data["tokens"]
        row = (weights[self.query] if self.reading == "query" else weights[:, self.query]).tolist()
        best = max(range(len(row)), key=lambda place: row[place])
        place = (self.layer, self.head, tokens[self.query].strip(), self.query)
        if not row[best]:
            return self.phrase("none", *place)
        is_whole = self.layer * self.data["heads"] + self.head in self.data["whole"]
        name = self.reading if is_whole or self.reading == "query" else "some"
        return self.phrase(name, *place, tokens[best].strip(), best, shown(row[best]))

    def _order(self) -> list[int]:
        """The heads as the grid has them; layer · heads + head is the number of one."""
        number = self.data["layers"] * self.data["heads"]
        measure = self.data["measures"][self.measure] or [0] * number
        return sorted(range(number), key=lambda n: (self.order == "measure") * -measure[n])

    def picture(self) -> Canvas:
        data, tokens = self.data, [name.replace("$", r"\$") for name in self.data["tokens"]]
        canvas, (fields, detail) = canvas_of(1, 2, (7.0, 3.4))
        order, shape = self._order(), (data["layers"], data["heads"])
        measure = torch.tensor(data["measures"][self.measure] or [0.0] * len(order))
        sorted_out = measure[order].reshape(shape).numpy()
        fields.imshow(sorted_out, vmin=0, vmax=max(float(measure.max()), 1e-6))
        row, column = divmod(order.index(self.layer * shape[1] + self.head), shape[1])
        square = [(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5), (-0.5, -0.5)]
        fields.plot(*zip(*((column + x, row + y) for x, y in square), strict=True), "k", lw=1.2)
        fields.set(xlabel=say("head"), ylabel=say("layer"), title=say(MEASURES[self.measure]))
        for axis in (fields.xaxis, fields.yaxis):
            axis.set_major_locator(MaxNLocator(integer=True))
        if self.order == "measure":
            fields.set(xticks=[], yticks=[], xlabel=say("largest first"), ylabel="")
        weights, chosen = self._map(), self.query
        title = say("layer {0}, head {1}", self.layer, self.head)
        if self.view == "map":
            few = tokens if len(tokens) <= 12 else None
            draw_weights(weights, ax=detail, queries=few, keys=few, title=title)
            detail.images[0].set_norm(PowerNorm(0.5, 0, 1))
            if few is None:
                ticks = [*range(0, len(tokens), max(1, len(tokens) // 5))]
                detail.set(xticks=ticks, xticklabels=ticks, yticks=ticks, yticklabels=ticks)
            span = detail.axhspan if self.reading == "query" else detail.axvspan
            span(chosen - 0.5, chosen + 0.5, fill=False, linewidth=1.2)
            return canvas
        strong = STYLE["axes.prop_cycle"].by_key()["color"][0]
        largest = weights.flatten().topk(min(300, weights.numel())).indices.tolist()
        places = torch.arange(weights.numel()).reshape(weights.shape)
        own = places[chosen] if self.reading == "query" else places[:, chosen]
        for ends, alpha in ((largest, 0.15), (own.tolist(), 1.0)):
            for query, key in (divmod(each, len(tokens)) for each in ends):
                width = 4 * float(weights[query, key])
                detail.plot([0, 1], [query, key], color=strong, lw=width, alpha=alpha)
        detail.set(xlim=(-0.1, 1.1), ylim=(len(tokens) - 0.5, -0.5), title=title)
        detail.set_xticks([0, 1], [say("query"), say("key")])
        return canvas

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        bundle, metadata = super()._repr_mimebundle_(**kwargs)
        if len(bundle) > 2:  # a reader runs it: what is saved or shown as HTML moves, too
            bundle["text/html"] = self.to_html(alone=True)
        return bundle, metadata

    def still(self) -> str:
        with (
            warnings.catch_warnings()
        ):  # of signs that the font lacks; the reader's browser has them
            warnings.filterwarnings("ignore", message="Glyph")
            return super().still()


def _coded(weights: Tensor) -> Tensor:
    """Weights from 0 to 1 as the square roots that a page stores, from 0 to 255."""
    return (weights.double().clamp(0, 1).sqrt() * 255).round().to(torch.uint8)


def _lists(layer: Tensor, kept: int) -> bytes:
    """For each query of a layer's heads its largest keys, each followed by its weight."""
    largest = layer.topk(kept, dim=-1)
    pairs = torch.stack([largest.indices.to(torch.uint8), _coded(largest.values)], dim=-1)
    return pairs.numpy().tobytes()


def _number(pair: Any, data: dict[str, Any]) -> int:
    """The number of a head from its layer and its place there."""
    try:
        layer, head = pair
    except (TypeError, ValueError):
        raise TypeError(
            f"AttentionLens: `whole` must list pairs of a layer and a head, but has {pair!r}"
        ) from None
    if layer not in range(data["layers"]) or head not in range(data["heads"]):
        raise IndexError(
            f"AttentionLens: `whole` asks for layer {layer}, head {head}, but there are "
            f"{data['layers']} layers of {data['heads']} heads, counted from 0"
        )
    return int(layer) * data["heads"] + int(head)


def _visible(name: str) -> str:
    """A token so that it can be seen, and is short."""
    signs = (SIGNS.get(s, "�" if unicodedata.category(s)[0] == "C" else s) for s in name)
    text = "".join(signs) or SIGNS[""]
    text = "␣" * len(text) if text.isspace() else text
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _names(tokens: Any, places: int) -> list[str]:
    """The tokens, one for each place."""
    if isinstance(tokens, str):
        raise TypeError(
            "AttentionLens: tokens must be a list with the piece of text at each place, but is "
            "one text"
        )
    given = listed(tokens)
    if given is None or (isinstance(given, list) and not given):
        raise ValueError(
            f"AttentionLens: there are no tokens; pass the {places} pieces of the text, for "
            "example tokenizer.convert_ids_to_tokens(ids)"
        )
    return labels("AttentionLens", "tokens", given, places, "")


def _layers(weights: Any, example: Any) -> list[Tensor]:
    """The weights of the example, one tensor (heads, queries, keys) for each layer, checked."""
    if weights is None:
        raise ValueError(f"AttentionLens: weights is None. {HOW}")
    if isinstance(weights, list | tuple):
        given = [*weights]
    elif hasattr(weights, "ndim") and hasattr(weights, "shape"):
        tensor = torch.as_tensor(weights)
        if tensor.dim() not in (4, 5):
            raise ValueError(
                "AttentionLens: a tensor of weights must have 4 axes (layers, heads, queries, "
                f"keys), but has {tensor.dim()}: {tuple(tensor.shape)}"
            )
        given = [*(tensor.unsqueeze(1) if tensor.dim() == 4 else tensor)]
    else:
        raise TypeError(
            "AttentionLens: weights must be a tensor, or a list or tuple with one per layer, but "
            f"is {type(weights).__name__}"
        )
    if not given:
        raise ValueError("AttentionLens: there are no layers; run the model within `capture` first")
    for number, layer in enumerate(given):
        if layer is None:
            raise ValueError(f"AttentionLens: the weights of layer {number} are None. {HOW}")
        if not hasattr(layer, "shape") or len(layer.shape) != 4:
            what = tuple(layer.shape) if hasattr(layer, "shape") else type(layer).__name__
            raise ValueError(
                f"AttentionLens: the weights of layer {number} must be a tensor (batch, heads, "
                f"queries, keys), but are {what}; where an axis is missing, add it: "
                "weights.unsqueeze(0) for one example, weights.unsqueeze(1) for one head"
            )
    _check_sizes(given, example, isinstance(weights, list | tuple))
    return [_checked(torch.as_tensor(layer)[example], n) for n, layer in enumerate(given)]


HOW = (
    "A fused kernel forms none: run the model within `with capture(model) as maps:` and pass maps, "
    'or load it with attn_implementation="eager" and call it with output_attentions=True'
)


def _check_sizes(given: list[Any], example: Any, is_list: bool) -> None:
    """Whether the layers are alike, square, small enough, and have the example."""
    first = tuple(given[0].shape)
    for number, layer in enumerate(given):
        if tuple(layer.shape) != first:
            raise ValueError(
                f"AttentionLens: layer {number} has weights {tuple(layer.shape)}, but layer 0 "
                f"{first}; pass layers of one kind, such as those of the decoder alone"
            )
    batch, heads, queries, keys = first
    if 0 in first:
        raise ValueError(f"AttentionLens: there is nothing to show in weights {first}")
    if queries != keys:
        raise ValueError(
            f"AttentionLens: there are {queries} queries and {keys} keys, but the lens shows "
            "self-attention, where both are the same places; run the model on the whole text at "
            "once, without a cache"
        )
    cut = "[w[..., {}] for w in weights]" if is_list else "weights[..., {}]"
    ways = {
        "layers": (len(given), "layers with weights[:48]"),
        "heads": (heads, f"heads with {cut.format(':32, :, :')}"),
        "places": (keys, f"places with {cut.format(':256, :256')} and tokens[:256]"),
    }
    if over := [way for name, (size, way) in ways.items() if size > LIMITS[name]]:
        sizes = " × ".join(f"{size:,} {name}" for name, (size, _) in ways.items())
        raise ValueError(
            f"AttentionLens: {sizes} are more than the 48 × 32 × 256 that it takes; leave out "
            f"{' and '.join(over)}"
        )
    if type(example) is not int or not 0 <= example < batch:
        raise IndexError(
            f"AttentionLens: example must be from 0 to {batch - 1}, because the batch has {batch}, "
            f"but is {example!r}"
        )


def _checked(layer: Tensor, number: int) -> Tensor:
    """One layer's weights (heads, queries, keys), if they are finite and from 0 to 1."""
    name = f"layer {number}"
    weights = layer.detach().cpu()
    limits = {"heads": LIMITS["heads"], "queries": LIMITS["places"], "keys": LIMITS["places"]}
    exact = numbers("AttentionLens", name, weights, limits)
    low, high = exact.min().item(), exact.max().item()
    if low < 0 or high > 1.001:
        wrong = low if low < 0 else high
        raise ValueError(
            f"AttentionLens: {name} must hold weights from 0 to 1, but has {wrong:.4g}; "
            "scores are not weights, and dropout enlarges them, so call model.eval() first"
        )
    return weights


def _described(layers: list[Tensor], tokens: list[str]) -> tuple[dict[str, Tensor], int, bool]:
    """The descriptions of all heads, each (layers · heads); how many rows do not sum to 1; and
    whether no query reads a later key."""
    kinds = {token: i for i, token in enumerate(dict.fromkeys(tokens))}
    ids = torch.tensor([kinds[token] for token in tokens])
    equal = ids[:, None] == ids
    after = equal.roll(1, dims=1).tril()  # what precedes the key is the query's token, and earlier
    after[:, 0] = False
    repeats = after.any(dim=1)
    found: dict[str, list[Tensor]] = {name: [] for name in MEASURES}
    uneven, causal = 0, True
    for layer in layers:
        weights = layer.double()
        found["previous"].append(weights.diagonal(-1, dim1=-2, dim2=-1).mean(dim=-1))
        found["first"].append(weights[:, 1:, 0].mean(dim=-1))
        found["same"].append((weights * equal).sum(dim=-1).mean(dim=-1))
        found["after"].append((weights * after).sum(dim=-1)[:, repeats].mean(dim=-1))
        found["entropy"].append(torch.special.entr(weights).sum(dim=-1).mean(dim=-1))
        uneven += int(((weights.sum(dim=-1) - 1).abs() > UNEVEN).sum())
        causal = causal and not weights.triu(1).any()
    return {name: torch.cat(each) for name, each in found.items()}, uneven, causal
