"""What the book's package computes for a figure as it stands, by the names under which a page shows
it: a function for each kind of figure, which the sweep compares with the page."""

from __future__ import annotations

from copy import copy
from functools import cache
from itertools import pairwise, product
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from attention_book import (
    KeyValueCache,
    MultiHeadAttention,
    additive_scores,
    bilinear_scores,
    distance_scores,
    dot_product_scores,
    masked_softmax,
    scaled_dot_product_scores,
    sinusoidal_positions,
)
from attention_book.figures import ScaleFigure
from attention_book.figures import language_model as continues
from attention_book.figures.base import example
from attention_book.figures.block import toy_block
from attention_book.figures.kv_cache import layers
from attention_book.figures.lens import story as maps_of_a_story
from attention_book.figures.live import run, unpacked
from attention_book.training import in_float64

Readings = dict[str, float]


def tensor(numbers: Any) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def named(name: str, numbers: Tensor) -> Readings:
    """The numbers of a tensor under the names that a figure gives them: name, then the indices."""
    places = product(*map(range, numbers.shape))
    return {" ".join([name, *map(str, at)]): numbers[at].item() for at in places}


def lookup(figure: Any) -> Readings:
    keys, values = tensor(figure.data["keys"]), tensor(figure.data["values"])
    scores = distance_scores(tensor([[[figure.query]]]), keys[None, :, None])
    weights = masked_softmax(scores)[0, 0]
    answer = {"answer": (weights @ values).item()}
    return named("weight", weights) | named("product", weights * values) | answer


@cache
def measured() -> list[Readings]:
    """For each d_k of the scale figure what is measured there; its query is in the data."""
    data = ScaleFigure().data
    queries, keys = example(200, 1024, seed=1)[None], example(10, 1024, seed=2)[None]
    functions = {"plain": dot_product_scores, "scaled": scaled_dot_product_scores}
    jacobian = torch.func.vmap(torch.func.jacrev(lambda row: torch.softmax(row, dim=-1)))
    edges = [-torch.inf, *data["edges"][1:-1], torch.inf]
    found: list[Readings] = []
    course: Readings = {}  # the curves over d_k
    for i, size in enumerate(data["stops"]):
        expected: Readings = {}
        for name, function in functions.items():
            scores = function(queries[..., :size], keys[..., :size])
            weights = masked_softmax(scores)
            shares = [((scores >= a) & (scores < b)).double().mean() for a, b in pairwise(edges)]
            expected |= named(f"{name} weight", weights[0, data["query"]])
            expected |= named(f"{name} share", tensor(shares))
            responses = jacobian(scores[0])  # (queries, keys, keys)
            best = scores[0, data["query"]].argmax()
            expected[f"{name} slope"] = responses[data["query"], best, best].item()
            course[f"{name} variance {i}"] = scores.var(correction=0).item()
            norms = responses.flatten(start_dim=1).norm(dim=-1)
            course[f"{name} gradient {i}"] = norms.mean().item()
            expected[f"{name} gradient"] = norms.mean().item()
        found.append(expected)
    return [expected | course for expected in found]


def scale(figure: Any) -> Readings:
    return measured()[figure.data["stops"].index(figure.d_k)]


def regression(figure: Any) -> Readings:
    keys, values = tensor(figure.data["keys"]), tensor(figure.values)
    query = tensor([[[figure.query / figure.width]]])
    weights = masked_softmax(distance_scores(query, keys[None, :, None] / figure.width))[0, 0]
    shown = {"guess": (weights @ values).item(), "width": figure.width}
    return named("weight", weights) | named("value", values) | shown


def scoring(figure: Any) -> Readings:
    data = figure.data
    keys, W, W_q, W_k, w_v = (tensor(data[name]) for name in ("keys", "W", "W_q", "W_k", "w_v"))

    def five(queries: Tensor) -> dict[str, Tensor]:
        pair = queries[None], keys[None]
        return {
            "distance": distance_scores(*pair),
            "dot": dot_product_scores(*pair),
            "scaled dot": scaled_dot_product_scores(*pair),
            "bilinear": bilinear_scores(*pair, W),
            "additive": additive_scores(*pair, W_q, W_k, w_v),
        }

    middles = [6 * (i + 0.5) / data["cells"] - 3 for i in range(data["cells"])]
    expected: Readings = {}
    for name, rows in five(tensor([figure.query, *product(middles, repeat=2)])).items():
        row, places = rows[0, :1][None], rows[0, 1:]
        weights = masked_softmax(row)[0, 0]
        expected |= named(f"{name} score", row[0, 0]) | named(f"{name} weight", weights)
        expected[f"{name} sum"] = 1.0
        if name == figure.by:
            best = (places > places.max(-1).values[:, None] - 1e-9).int()
            parts = best.argmax(-1).bincount(minlength=len(keys)) / len(best)
            expected |= {f"{name} region {k}": s for k, s in enumerate(parts.tolist()) if s > 0}
            expected |= named(f"{name} key", weights) | named("bar", weights)
    return expected


def masking(figure: Any) -> Readings:
    scores = tensor(figure.scores)
    batch, queries, keys = scores.shape
    lens = figure.valid_lens
    allowed = torch.ones(batch, queries, keys, dtype=torch.bool)
    for b, q, k in product(range(batch), range(queries), range(keys)):
        allowed[b, q, k] = k < (lens[b][q] if isinstance(lens[b], list) else lens[b])
    expected = named("score", scores)
    for stem, fill in (("", figure.fill), ("other ", figure.compare)):
        if fill == "none":
            continue
        if fill == "-inf":
            weights = masked_softmax(scores, torch.tensor(lens))
        elif fill == "after":
            weights = torch.softmax(scores, dim=-1) * allowed
        else:
            weights = torch.softmax(torch.where(allowed, scores, float(fill)), dim=-1)
        expected |= named(f"{stem}weight", weights) | named(f"{stem}sum", weights.sum(-1))
    return expected


def matmul(figure: Any) -> Readings:
    queries, keys = tensor(figure.Q), tensor(figure.K)
    entries = dot_product_scores(queries, keys)[figure.sheet]
    factors = named("q", queries[figure.sheet]) | named("k", keys[figure.sheet])
    return named("entry", entries) | factors


def additive(figure: Any) -> Readings:
    data, n = figure.data, figure.hidden
    grid = tensor(data["grid"])[None, :, None]
    queries = torch.cat([grid, torch.ones_like(grid)], dim=-1)
    W_q, W_k, w_v = (tensor(data[name])[:n] for name in ("W_q", "W_k", "w_v"))
    scores = additive_scores(queries, grid, figure.scale * W_q, figure.scale * W_k, w_v)[0]
    ends = {"low": scores.min().item(), "high": scores.max().item()}
    at = data["grid"].index(figure.query)
    return named("score", scores) | named("slice", scores[at]) | ends


@cache
def trained_anew(num_heads: int) -> tuple[Tensor, float]:
    """Chapter 7's ring trained a second time, through the framework's functions alone."""
    places = torch.eye(8, dtype=torch.float64).expand(32, -1, -1)
    x = torch.eye(32, dtype=torch.float64).reshape(32, 8, 4)
    wanted = torch.cat([x.roll(1, dims=1)[..., :2], x.roll(-1, dims=1)[..., 2:]], dim=-1)
    with torch.random.fork_rng(devices=[]), in_float64():
        torch.manual_seed(0)
        module = MultiHeadAttention(
            4, num_heads, d_k=16 // num_heads, d_v=16 // num_heads, query_size=8, key_size=8
        )
    parameters = [module.W_q.weight, module.W_k.weight, module.W_v.weight, module.W_o.weight]
    optimiser = torch.optim.Adam(parameters, lr=0.03)

    def split(y: Tensor) -> Tensor:
        return y.unflatten(-1, (num_heads, -1)).transpose(1, 2)

    for _ in range(150):
        queries, keys, values = (
            split(torch.nn.functional.linear(y, w))
            for y, w in zip((places, places, x), parameters[:3], strict=True)
        )
        weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, dim=-1)
        merged = (weights @ values).transpose(1, 2).flatten(start_dim=2)
        error = (torch.nn.functional.linear(merged, parameters[3]) - wanted).square().sum() / 32
        optimiser.zero_grad()
        error.backward()
        optimiser.step()
    return weights[0].detach(), error.item()


def heads(figure: Any) -> Readings:
    weights, error = trained_anew(figure.num_heads)
    seen = range(figure.num_heads) if figure.head == "all" else [figure.head]
    expected = {"error": error}
    for head in seen:
        for q in [figure.query] if figure.head == "all" else range(8):
            expected |= named(f"weight {head} {q}", weights[head, q])
        least = 0.2 if len(seen) > 2 else figure.data["least"]  # of many heads the largest alone
        for key, weight in enumerate(weights[head, figure.query].tolist()):
            if weight > least + 1e-3:
                expected[f"arrow {head} {key}"] = weight
    return expected


def block(figure: Any) -> Readings:
    x, draws = example(5, 8, seed=7), tensor(figure.data["draws"])
    layer = toy_block(8)
    code = figure.positions * sinusoidal_positions(5, 8).double()

    def once(order: list[int], rate: float) -> tuple[Tensor, Tensor]:
        """Weights after dropout and outputs, with the block's parts put together here."""
        z = x[order] + code
        scores = scaled_dot_product_scores(layer.query(z)[None], layer.key(z)[None])
        kept = masked_softmax(scores)[0] * (draws[figure.draw] >= rate) / (1 - rate)
        return kept, layer.layer_norm(z + layer.dense(kept @ layer.value(z)))

    kept, outputs = once(figure.order, figure.dropout)
    _, before = once([*range(5)], 0.0)
    if not figure.dropout:
        assert torch.allclose(outputs, layer((x[figure.order] + code)[None])[0], atol=1e-12)
    change = (outputs - before[figure.order]).norm(dim=-1)
    readings = named("weight", kept) | named("sum", kept.sum(dim=-1))
    return readings | named("output", outputs) | named("change", change)


class Step(NamedTuple):
    """What two layers do when a word comes: where the first of their keys stands, the keys of each,
    the last word's weights, the bytes that are kept in float32 and the multiply-adds."""

    first: int
    keys: list[Tensor]
    weights: Tensor
    kept: int
    computed: int


@cache
@torch.no_grad()
def decoded(kv_heads: int, window: bool, cached: bool, causal: bool) -> list[Step]:
    """Seven words one by one: through caches that forget the oldest, or all of them again."""
    words, steps = example(7, 32, seed=4)[None], []
    caches = [KeyValueCache() for _ in range(2)]
    for n in range(1, 8):
        x = words[:, n - 1 : n] if cached else words[:, :n]
        if not cached:
            caches = [KeyValueCache() for _ in range(2)]
        elif window:
            caches = [only_last(3, held) for held in caches]
        apart = torch.arange(n) - torch.arange(n)[:, None]
        mask = (apart.abs() < 4) if window and not cached else None
        with FlopCounterMode(display=False) as counter:
            for layer, held in zip(layers(kv_heads), caches, strict=True):
                x = x + layer(x, x, x, mask=mask, causal=causal, cache=held)
        kept = sum(copy(held).to(torch.float32).bytes for held in caches) if cached else 0
        keys, weights = [held.keys[0, 0] for held in caches], layer.attention_weights[0, 0, -1]
        first = n - len(weights)
        steps.append(Step(first, keys, weights, kept, counter.get_total_flops() // 2))
    return steps


def only_last(number: int, held: KeyValueCache) -> KeyValueCache:
    """A cache that has forgotten all but its last positions."""
    fresh = KeyValueCache()
    if held.keys is not None and held.values is not None:
        fresh.append(held.keys[:, :, -number:], held.values[:, :, -number:])
    return fresh


def kv_cache(figure: Any) -> Readings:
    cached = figure.cache and figure.causal
    steps = decoded(figure.kv_heads, figure.window, cached, figure.causal)
    expected: Readings = {}
    for name, now in (("before", steps[figure.step - 2]), ("now", steps[figure.step - 1])):
        for place, weight in enumerate(now.weights.tolist(), start=now.first):
            if weight > 0:
                expected[f"{name} weight {place}"] = weight
        place = figure.word - 1 - now.first
        if 0 <= place < len(now.weights):
            expected |= named(f"{name} key", torch.stack([keys[place] for keys in now.keys]))
    last = steps[figure.step - 1]
    return expected | {"kept": last.kept, "computed": last.computed}


def live(figure: Any) -> Readings:
    switches = {"positions": figure.positions, "causal": figure.causal, "off": figure.off}
    model = unpacked(figure.data)
    now = run(model, figure.word, num_shown=figure.written, **switches)
    expected: Readings = {}
    for (use, layer, head), weights in now.maps.items():
        if figure.written or use == "encoder":
            expected |= named(f"{use} {layer} {head}", weights)
    return expected


def language_model(figure: Any) -> Readings:
    vocabulary = figure.data["vocabulary"]
    prompt = [vocabulary.index(word) for word in figure.prompt.split()]
    number = min(figure.written, figure.data["longest"] - len(prompt))
    names = ("temperature", "top_k", "top_p", "seed", "causal", "off")
    settings = {name: getattr(figure, name) for name in names}
    model = continues.unpacked(figure.data)
    now = continues.run(model, prompt, num_written=number, **settings)
    text = tensor([*prompt, *now.written]).long()
    losses = torch.nn.functional.cross_entropy(now.logits[:-1], text[1:], reduction="none")
    expected = named("looks", now.weights[:, :, -1].amax(dim=-1))
    expected |= {f"word {i}": loss for i, loss in enumerate(losses.tolist(), start=1)}
    best = int(now.chances.argmax())
    return expected | {f"next {best}": now.chances[best].item()}


def story(figure: Any) -> Readings:
    now = figure.run()
    best = int(now.chances.argmax())
    looks = {} if figure.data["small"] else named("head", now.weights[:, :, -1].amax(dim=-1))
    return looks | {f"next {best}": now.chances[best].item()}


def rotation(figure: Any) -> Readings:
    """The score of every distance, through the package's rotation with its pairs set by hand."""
    slower = torch.tensor([figure.stretch if figure.pairs == "all" else 1, figure.stretch])
    turns = torch.arange(12.0).double()[:, None] * tensor([1, 0.1]) / slower
    arrows = torch.complex(turns.cos(), turns.sin())
    between = arrows[figure.key] * arrows[figure.query].conj()
    scores = named("score", (arrows * arrows[0].conj()).real.sum(dim=-1))
    return scores | named("angle", between.angle().abs().rad2deg())


def tiling(figure: Any) -> Readings:
    scores, values = tensor(figure.data["scores"]), tensor(figure.data["values"])
    length, tile, step = len(scores), figure.tile, figure.step
    held = (tile**2, tile**2 + 3 * tile) if step else (0, 0)  # before the first tile
    expected: Readings = {"held 0": held[0], "held 1": held[1], "held 2": length**2}
    for row in range(length):
        strip, across = divmod(step - 1, length // tile)
        own = row // tile
        seen = length if own < strip else (across + 1) * tile if own == strip else 0
        if step and seen:
            part = scores[row, :seen]
            weights = masked_softmax(part[None, None])[0, 0]
            expected[f"m {row}"] = part.max().item()
            expected[f"l {row}"] = (part - part.max()).exp().sum().item()
            expected[f"o {row}"] = (weights @ values[:seen]).item()
            if seen > tile:
                old = scores[row, : seen - tile].max()
                expected[f"factor {row}"] = (old - part.max()).exp().item()
    scores_of_tile, carried = 128 * 128, 128 * (1 + 1 + 64)
    memory = {"memory 0": 4 * figure.n**2, "memory 1": 4 * (scores_of_tile + carried)}
    return expected | memory


def lens(figure: Any) -> Readings:
    maps, tokens = maps_of_a_story()
    weights, places = maps[figure.layer][0, figure.head], range(len(tokens))
    row = weights[figure.query] if figure.reading == "query" else weights[:, figure.query]
    before = [weights[q, q - 1].item() for q in places[1:]]
    same = [weights[q, k].item() for q in places for k in places if tokens[k] == tokens[q]]
    after = [
        [weights[q, k].item() for k in places[1 : q + 1] if tokens[k - 1] == tokens[q]]
        for q in places
    ]
    shares = [sum(found) for found in after if found]
    described = {
        "previous": sum(before) / len(before),
        "first": weights[1:, 0].mean().item(),
        "same": sum(same) / len(tokens),
        "after": sum(shares) / len(shares),
        "entropy": -torch.special.xlogy(weights, weights).sum().item() / len(tokens),
    }
    return named("weight", row) | described


#: The kinds of figures that are swept.
KINDS = [
    *["lookup", "regression", "scoring", "masking", "matmul", "additive", "scale", "heads"],
    *["block", "rotation", "kv_cache", "live", "language_model", "story", "tiling", "lens"],
]
