"""Attention written slowly and in the open, with an option for each mistake.

A mistake of the catalogue is this reference with an option: `scale-missing` is
`divisor="one"`. Without options the numbers are right, so whoever has the numbers of some code can
ask which option gives the same. Every kind takes its inputs by name and computes in the format
that they have:

    softmax    scores, and a rule                       → weights
    attention  queries, keys, values, and a rule        → output, weights
    heads      queries, keys, values, W_q … b_o, num_heads, and a rule → output
    rotation   x, positions, base, pairing              → rotated
    decoder    tokens, embedding, places, W_q … W_o, chunks → logits

A rule is any of `allowed` (booleans that broadcast against the scores, True = may attend),
`lengths` (batch) and `causal`. All tensors have all axes: (batch, heads, queries, keys) for scores,
(batch, heads, length, size) for vectors of heads, (batch, length, size) before the heads are split.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import torch
from torch import Tensor

Options = Mapping[str, Any]


class NotPossibleError(ValueError):
    """This mistake cannot be made with inputs of these sizes."""


def reference(kind: str, inputs: Mapping[str, Any], **option: Any) -> dict[str, Tensor]:
    """The outputs of a kind by name, with the mistake that the options describe, or without.

    Raises:
        NotPossibleError: where these options do not fit inputs of these sizes.
        KeyError: for a kind that is not one.
    """
    kinds: dict[str, Callable[..., dict[str, Tensor]]] = {
        "softmax": softmax,
        "attention": attention,
        "heads": heads,
        "rotation": rotation,
        "decoder": decoder,
    }
    return kinds[kind](**inputs, **option)


# --- the rule: which query may attend to which key ------------------------------------------------


def rule(
    sizes: torch.Size,
    allowed: Tensor | None,
    lengths: Tensor | None,
    causal: bool,
    *,
    mask: str = "obeyed",
    length: str = "first",
    length_shift: int = 0,
    causal_from: str = "last",
    causal_shift: int = 0,
    causal_rule: str = "past",
    restart: str = "never",
    chunk: int = 2,
) -> Tensor | None:
    """Join a mask, lengths and the causal rule into booleans (batch, heads, queries, keys)."""
    batch, num_heads, num_queries, num_keys = sizes
    places = torch.arange(num_keys)
    given = None if allowed is None else allowed.expand(sizes)
    if lengths is not None:
        ends = (lengths + length_shift).reshape(-1, 1, 1, 1)
        if length == "wrong-order":  # the lengths of all examples, once for each head
            ends = (lengths.repeat(num_heads)).reshape(batch, num_heads, 1, 1)
        real = places >= num_keys - ends if length == "last" else places < ends
        if mask == "for-queries":
            real = torch.arange(num_queries).unsqueeze(-1) < ends
        given = real.expand(sizes) if given is None else given & real
    if given is not None:
        if mask == "ignored":
            given = None
        elif mask == "inverted":
            given = ~given
        elif mask == "first-example":
            given = given[:1].expand(sizes)
        elif mask == "for-queries" and lengths is None:
            if num_queries != num_keys:
                raise NotPossibleError("a transposed mask needs as many queries as keys")
            given = given.mT
    if causal and causal_rule != "ignored":
        rows = torch.arange(num_queries)
        last = rows + (num_keys - num_queries if causal_from == "last" else 0)
        if restart != "never":
            if chunk >= num_queries - (restart == "ends"):
                raise NotPossibleError("the first chunk is all, or all but a row that is right")
            begins = rows - rows % chunk
            last = last - begins
            if restart == "ends":  # the last query of each chunk sees all keys
                last = rows + num_keys - (begins + chunk).clamp(max=num_queries)
        last = (last + causal_shift).unsqueeze(-1)
        seen = places >= last if causal_rule == "future" else places <= last
        given = seen.expand(sizes) if given is None else given & seen
    return given


# --- weights: a softmax over the allowed keys -----------------------------------------------------

AXES = {"keys": -1, "queries": -2, "heads": 1, "batch": 0}


def softmax(
    scores: Tensor,
    allowed: Tensor | None = None,
    lengths: Tensor | None = None,
    causal: bool = False,
    **option: Any,
) -> dict[str, Tensor]:
    """Turn scores (batch, heads, queries, keys) into weights over the allowed keys."""
    ruling, weighing = _parted(option, RULE)
    seen = rule(scores.shape, allowed, lengths, causal, **ruling)
    return {"weights": weigh(scores, seen, **weighing)}


def weigh(
    scores: Tensor,
    allowed: Tensor | None,
    *,
    over: str = "keys",
    weights: str = "softmax",
    hide: str = "fill",
    fill: float = float("-inf"),  # not torch.inf: the book is built without PyTorch
    empty: str = "zeros",
    subtract: str = "row",
    block: int = 2,
    rescaled: str = "sum",
) -> Tensor:
    """Hide what is not allowed, and give each row of scores weights that sum to 1."""
    hidden = torch.zeros_like(scores, dtype=torch.bool) if allowed is None else ~allowed
    filled = scores
    if hide == "fill":
        filled = scores.masked_fill(hidden, fill)
    elif hide in {"times-scores", "keys-zeroed"}:
        filled = scores * ~hidden
    elif hide == "penalty":
        filled = scores + hidden * fill
    elif hide == "ones-added":
        filled = scores + ~hidden
    elif hide == "ones-of-hidden-added":
        filled = scores + hidden
    elif hide == "times-infinity":
        filled = scores if allowed is None else scores + hidden.to(scores.dtype) * -torch.inf
    how = over, weights, subtract, block, rescaled
    result = _normalised(filled, *how)
    if hide in {"after", "keys-zeroed"}:  # and with the keys their values
        result = result * ~hidden
    if fill == -torch.inf and hide == "fill" and over == "keys":
        no_key = hidden.all(dim=-1, keepdim=True)
        if empty == "zeros":  # the softmax never sees the row, so that its gradient is finite
            filled = filled.masked_fill(no_key, 0.0)
            result = _normalised(filled, *how).masked_fill(no_key, 0.0)
        elif empty == "uniform":
            result = torch.where(no_key, 1 / scores.shape[-1], result)
        elif empty == "nan":
            result = torch.where(no_key, torch.nan, result)
        elif empty == "repaired":  # the numbers of zeros, and a gradient of NaN
            penalty = torch.zeros_like(scores).masked_fill(hidden, -torch.inf)
            result = _normalised(scores + penalty, *how).nan_to_num()
    return result


def _normalised(
    scores: Tensor, over: str, weights: str, subtract: str, block: int, rescaled: str
) -> Tensor:
    if over == "everything":
        return torch.softmax(scores.flatten(), dim=0).reshape(scores.shape)
    axis = AXES[over]
    if weights == "scores":
        return scores.masked_fill(scores == -torch.inf, 0.0)
    if weights == "log":
        return torch.log_softmax(scores, dim=axis)
    if weights == "sigmoid":
        return torch.sigmoid(scores)
    if weights == "best":
        best = scores.argmax(dim=axis, keepdim=True)
        return torch.zeros_like(scores).scatter(axis, best, 1.0)
    if weights == "exponentials":
        return scores.exp()
    if weights == "twice":
        return torch.softmax(torch.softmax(scores, dim=axis), dim=axis)
    if weights == "twice-masked":
        once = torch.softmax(scores, dim=axis).masked_fill(scores == -torch.inf, -torch.inf)
        return torch.softmax(once, dim=axis)
    if subtract == "row":
        return torch.softmax(scores, dim=axis)
    if subtract == "running":
        return _online(scores, block, rescaled)
    largest = scores.amax() if subtract == "all" else 0.0
    powers = (scores - largest).exp()
    return powers / powers.sum(dim=axis, keepdim=True)


def _online(scores: Tensor, block: int, rescaled: str) -> Tensor:
    """The weights of a softmax in blocks of keys that rescales its sum, its output, or neither."""
    keys = scores.shape[-1]
    ends = (torch.arange(keys) // block * block + block - 1).clamp(max=keys - 1)
    running = scores.cummax(dim=-1).values
    then, last = (
        x.masked_fill(x == -torch.inf, 0.0) for x in (running[..., ends], running[..., -1:])
    )
    stale, powers = (scores - then).exp(), (scores - last).exp()
    summed = powers if rescaled == "sum" else stale
    averaged = powers if rescaled == "output" else stale
    return averaged / summed.sum(dim=-1, keepdim=True)


# --- attention: scores, weights, a weighted sum of the values -------------------------------------


def attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    allowed: Tensor | None = None,
    lengths: Tensor | None = None,
    causal: bool = False,
    *,
    among: str = "positions",
    share: str = "groups",
    scored: str = "keys",
    averaged: str = "values",
    combine: str = "rows",
    **option: Any,
) -> dict[str, Tensor]:
    """Attend in each head; keys and values may have fewer heads, each for a group of queries'."""
    keys, values = (_shared(x, queries.shape[1], share) for x in (keys, values))
    axis = {"positions": 2, "heads": 1, "examples": 0}[among]
    if axis != 2:  # heads or examples stand where positions stood
        if queries.shape[2] != keys.shape[2]:
            raise NotPossibleError(f"attention between {among} needs as many queries as keys")
        queries, keys, values = (x.transpose(axis, 2) for x in (queries, keys, values))
        allowed = lengths = None
        causal = causal and among == "examples"
    scoring, others = _parted(option, _SCORE)
    against = {"keys": keys, "values": values, "queries": queries}[scored]
    if against.shape[-1] != queries.shape[-1] or against.shape[-2] != keys.shape[-2]:
        raise NotPossibleError(f"queries and {scored} differ in size")
    scores = score(queries, against, **scoring)
    weights = softmax(scores, allowed, lengths, causal, **others)["weights"]
    summed = values if averaged == "values" else keys
    if averaged == "queries":
        summed = queries
    turned = weights.mT if combine == "columns" else weights
    if turned.shape[-1] != summed.shape[-2]:
        raise NotPossibleError("there are not as many queries as keys")
    return {"output": (turned @ summed).transpose(axis, 2), "weights": weights}


def score(
    queries: Tensor,
    keys: Tensor,
    *,
    alike: str | Callable[[Tensor, Tensor], Tensor] = "dot",
    divisor: str = "sqrt-size",
    change: str = "nothing",
) -> Tensor:
    """Score each key for each query, q · k / √size, as (batch, heads, queries, keys)."""
    num_heads, num_queries, size = queries.shape[-3:]
    num_keys = keys.shape[-2]
    divisors = {
        "sqrt-size": size**0.5,
        "one": 1.0,
        "sqrt-d-model": (num_heads * size) ** 0.5,
        "size": float(size),
        "multiplied": size**-0.5,
        "multiplied-by-size": 1 / size,
        "sqrt-keys": num_keys**0.5,
        "sqrt-queries": num_queries**0.5,
    }
    if callable(alike):
        return alike(queries, keys)
    if alike == "cosine":
        queries = queries / queries.norm(dim=-1, keepdim=True)
        keys = keys / keys.norm(dim=-1, keepdim=True)
    if change == "first-example":
        keys = keys[:1].expand_as(keys)
    scores = queries @ keys.mT
    if alike == "distance":
        scores = -0.5 * (queries.unsqueeze(-2) - keys.unsqueeze(-3)).square().sum(dim=-1)
    scores = scores / divisors[divisor]
    if change == "sign":
        scores = -scores
    elif change == "relu":
        scores = scores.relu()
    elif change == "summed":
        scores = scores.sum(dim=0, keepdim=True).expand_as(scores)
    elif change == "transposed":
        if num_queries != num_keys:
            raise NotPossibleError("transposed scores need as many queries as keys")
        scores = scores.mT
    return scores


def _shared(x: Tensor, num_heads: int, share: str) -> Tensor:
    group = num_heads // x.shape[1]
    return x.repeat_interleave(group, dim=1) if share == "groups" else x.repeat(1, group, 1, 1)


# --- heads: projections before and after ----------------------------------------------------------


def heads(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    W_q: Tensor,
    W_k: Tensor,
    W_v: Tensor,
    W_o: Tensor | None,
    num_heads: int,
    b_q: Tensor | None = None,
    b_k: Tensor | None = None,
    b_v: Tensor | None = None,
    b_o: Tensor | None = None,
    allowed: Tensor | None = None,
    lengths: Tensor | None = None,
    causal: bool = False,
    *,
    split: str = "transposed",
    merge: str = "transposed",
    among: str = "positions",
    key_map: str = "own",
    value_map: str = "own",
    output: str = "once",
    bias: bool | str = True,
    sources: str = "own",
    own_maps: bool = True,
    **option: Any,
) -> dict[str, Tensor]:
    """Project, attend in each head, and mix the heads. Matrices are (out, in), as in nn.Linear."""
    if bias in {False, "of output"}:  # it is of the output alone
        b_q = b_k = b_v = None
    if bias in {False, "of inputs"}:
        b_o = None
    num_keys = keys.shape[1]
    if sources == "queries-swapped":
        queries, keys, values = keys, queries, queries
    elif sources == "queries-for-keys":
        queries, keys = keys, queries
    elif sources == "memory-ignored":
        keys = values = queries
    elif sources == "keys-of-queries":
        keys = queries
    elif sources == "values-of-queries":
        values = queries
    elif sources == "values-of-keys":
        values = keys
    if key_map == "queries":
        W_k, b_k = W_q, b_q
    if value_map == "keys":
        W_v, b_v = W_k, b_k
    if keys.shape[1] != values.shape[1] or W_k.shape[1] != keys.shape[2]:
        raise NotPossibleError("keys and values do not fit")
    if allowed is not None and keys.shape[1] != num_keys:
        raise NotPossibleError("the mask does not fit these keys")
    size = W_q.shape[0] // num_heads
    if not own_maps:  # those of the first head serve all
        kv_heads = W_k.shape[0] // size
        W_q, b_q = _of_the_first(W_q, num_heads), _of_the_first(b_q, num_heads)
        W_k, b_k = _of_the_first(W_k, kv_heads), _of_the_first(b_k, kv_heads)
        W_v, b_v = _of_the_first(W_v, kv_heads), _of_the_first(b_v, kv_heads)
    cut = [
        _split(_mapped(x, W, b), size, split) for x, W, b in ((queries, W_q, b_q), (keys, W_k, b_k))
    ]
    projected = values if value_map == "none" else _mapped(values, W_v, b_v)
    groups = cut[1].shape[1]
    if projected.shape[-1] % groups:
        raise NotPossibleError("the values cannot be cut into heads")
    cut.append(_split(projected, projected.shape[-1] // groups, split))
    option |= {"allowed": allowed, "lengths": lengths, "causal": causal}
    attended = attention(cut[0], cut[1], cut[2], among=among, **option)
    mixed = attended["output"]
    if merge == "mean":
        mean, whole = (
            mixed.mean(dim=1, keepdim=True),
            W_o is None or W_o.shape[1] != mixed.shape[-1],
        )
        mixed = mean.expand_as(mixed) if whole else mean
    if merge == "view":
        merged = mixed.reshape(len(mixed), mixed.shape[2], -1)
    elif merge == "interleaved":
        merged = mixed.permute(0, 2, 3, 1).flatten(2)
    else:
        merged = mixed.transpose(1, 2).flatten(2)
    if W_o is not None and output != "never":
        for _ in range(2 if output == "twice" else 1):
            if merged.shape[-1] != W_o.shape[1]:
                raise NotPossibleError("the output projection does not fit")
            merged = _mapped(merged, W_o, b_o)
    return {"output": merged, "weights": attended["weights"]}


def _of_the_first(x: Any, num_heads: int) -> Any:
    """A matrix, or a bias, with the rows of the first head in all heads."""
    if x is None or len(x) % num_heads:
        return x
    return torch.cat([x[: len(x) // num_heads]] * num_heads)


def _mapped(x: Tensor, W: Tensor, b: Tensor | None) -> Tensor:
    return x @ W.mT if b is None else x @ W.mT + b


def _split(x: Tensor, size: int, how: str) -> Tensor:
    batch, length, width = x.shape
    if how == "view":  # the sequence is cut, not the features
        return x.reshape(batch, width // size, length, size)
    if how == "interleaved":
        return x.reshape(batch, length, size, width // size).permute(0, 3, 1, 2)
    return x.reshape(batch, length, width // size, size).transpose(1, 2)


# --- rotation: positions as angles ----------------------------------------------------------------


def rotation(
    x: Tensor,
    positions: Tensor | None = None,
    base: float = 10000.0,
    pairing: str = "halves",
    *,
    angles: str = "paired",
    sign: int = 1,
    exponent: str = "2i/size",
    axis: int = -2,
    shift: int = 0,
    given: str = "used",
    times: int = 1,
    scales: float = 1.0,
) -> dict[str, Tensor]:
    """Turn each pair of features of x (batch, heads, length, size) by the position's angle.

    Pairing "halves": feature i with feature i + size/2; "neighbours": 2i with 2i + 1.
    """
    size, length = x.shape[-1], x.shape[axis]
    if positions is None or given == "ignored" or axis != -2:
        first = positions[0] if positions is not None and given == "first" else 0
        positions = torch.arange(length) + first
    pairs = torch.arange(size // 2, dtype=x.dtype)
    rates = {
        "2i/size": 2 * pairs / size,
        "i/size": pairs / size,
        "4i/size": 4 * pairs / size,
        "2i/half": 2 * pairs / max(size - 2, 1),
        "rising": -2 * pairs / size,
        "one": 0 * pairs,
    }
    turn = torch.outer((positions + shift).to(x.dtype), base ** -rates[exponent])
    turned = x.movedim(axis, -2)
    for _ in range(times):
        turned = _turned(turned, turn, pairing, angles, sign)
    return {"rotated": turned.movedim(-2, axis) * scales}


def _turned(x: Tensor, turn: Tensor, pairing: str, angles: str, sign: int) -> Tensor:
    halves = pairing == "halves"
    laid_in_halves = halves if angles == "paired" else not halves
    turn = torch.cat([turn, turn], dim=-1) if laid_in_halves else turn.repeat_interleave(2, dim=-1)
    if halves:
        first, second = x.chunk(2, dim=-1)
        partner = torch.cat([-sign * second, first], dim=-1)
    else:
        partner = torch.stack([-sign * x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)
    return x * turn.cos() + partner * turn.sin()


# --- decoder: one layer, with a cache -------------------------------------------------------------


def decoder(
    tokens: Tensor,
    embedding: Tensor,
    places: Tensor,
    W_q: Tensor,
    W_k: Tensor,
    W_v: Tensor,
    W_o: Tensor,
    chunks: tuple[int, ...] = (),
    *,
    sees: str = "past",
    positions: bool = True,
    cached_place: str = "next",
    keeps: bool = True,
    chunk: str = "causal",
) -> dict[str, Tensor]:
    """One layer with a residual, from tokens (batch, length) to logits (batch, length, tokens).

    `places` (positions, size) is added to the embedding. With `chunks` the tokens come in pieces of
    these lengths, and keys and values of the earlier ones are kept in a cache.
    """
    held: list[Tensor] = []
    rows: list[Tensor] = []
    for tokens_here in tokens.split(list(chunks) or [tokens.shape[1]], dim=1):
        first = sum(row.shape[1] for row in rows)
        length = tokens_here.shape[1]
        start = first
        if chunks and first:
            start = {"next": first, "zero": 0, "late": first + 1, "early": first - 1}[cached_place]
        x = embedding[tokens_here]
        if positions:
            x = x + places[start : start + length]
        held = [*held, x] if keeps else [x]
        past = torch.cat(held, dim=1)
        seen = sees == "past" and (chunk == "causal" or length == 1 or not first)
        pairs: dict[str, Any] = {
            "queries": x @ W_q.mT,
            "keys": past @ W_k.mT,
            "values": past @ W_v.mT,
        }
        if sees == "itself":
            pairs = {**pairs, "keys": x @ W_k.mT, "values": x @ W_v.mT}
        one_head: dict[str, Any] = {name: pair.unsqueeze(1) for name, pair in pairs.items()}
        only = torch.eye(length, dtype=torch.bool) if sees == "itself" else None
        attended = attention(**one_head, allowed=only, causal=seen)["output"].squeeze(1)
        rows.append((x + attended @ W_o.mT) @ embedding.mT)
    return {"logits": torch.cat(rows, dim=1)}


# --- the table: a mistake is the reference with these options -------------------------------------

RULE = {"mask", "length", "length_shift"}
RULE |= {"causal_from", "causal_shift", "causal_rule", "restart", "chunk"}
_SCORE = {"alike", "divisor", "change"}


def _parted(option: Options, names: set[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options with these names, and the others."""
    own = {name: option[name] for name in names & set(option)}
    return own, {name: value for name, value in option.items() if name not in own}


#: Stage by stage, in the order in which a result depends on them.
SCORES: dict[str, Options] = {
    "scale-missing": {"divisor": "one"},
    "scale-sqrt-d-model": {"divisor": "sqrt-d-model"},
    "scale-twice": {"divisor": "size"},
    "scale-multiplied": {"divisor": "multiplied"},
    "scale-sqrt-keys": {"divisor": "sqrt-keys"},
    "scale-sqrt-queries": {"divisor": "sqrt-queries"},
    "cosine-for-dot": {"alike": "cosine", "divisor": "one"},
    "distance-for-dot": {"alike": "distance", "divisor": "one"},
    "score-sign": {"change": "sign"},
    "relu-on-scores": {"change": "relu"},
    "scores-transposed": {"change": "transposed"},
    "first-example-for-all": {"change": "first-example"},
    "examples-summed-in-scores": {"change": "summed"},
    "values-for-keys": {"scored": "values"},
    "keys-for-values": {"averaged": "keys"},
    "queries-for-keys": {"scored": "queries"},
    "weights-transposed": {"combine": "columns"},
    "kv-heads-interleaved-wrongly": {"share": "interleaved"},
}
WEIGHTS: dict[str, Options] = {
    "softmax-over-queries": {"over": "queries"},
    "softmax-over-heads": {"over": "heads"},
    "softmax-over-batch": {"over": "batch"},
    "softmax-over-everything": {"over": "everything"},
    "softmax-twice": {"weights": "twice"},
    "softmax-missing": {"weights": "scores"},
    "argmax-for-softmax": {"weights": "best"},
    "log-softmax-for-softmax": {"weights": "log"},
    "sigmoid-for-softmax": {"weights": "sigmoid"},
    "normalisation-missing": {"weights": "exponentials"},
    "online-softmax-no-rescale": {"subtract": "running"},
}
MASK: dict[str, Options] = {
    "mask-ignored": {"mask": "ignored"},
    "mask-polarity": {"mask": "inverted"},
    "mask-after-softmax": {"hide": "after"},
    "mask-times-scores": {"hide": "times-scores"},
    "fill-added-to-scores": {"hide": "ones-added"},
    "mask-times-infinity": {"hide": "times-infinity"},
    "fill-zero": {"fill": 0.0},
    "fill-too-small": {"fill": -10.0},
    "fill-sign": {"fill": 1e9},
    "mask-on-query-axis": {"mask": "for-queries"},
    "mask-of-first-example": {"mask": "first-example"},
    "length-one-too-few": {"length_shift": -1},
    "length-one-too-many": {"length_shift": 1},
    "length-from-the-end": {"length": "last"},
    "lengths-in-wrong-order": {"length": "wrong-order"},
}
CAUSAL: dict[str, Options] = {
    "causal-aligned-to-first": {"causal_from": "first"},
    "causal-strict": {"causal_shift": -1},
    "causal-one-too-generous": {"causal_shift": 1},
    "causal-transposed": {"causal_rule": "future"},
    "causal-ignored": {"causal_rule": "ignored"},
    "causal-restarts-per-chunk": {"restart": "chunks"},
}
EMPTY: dict[str, Options] = {
    "empty-row-nan": {"empty": "nan"},
    "empty-row-uniform": {"empty": "uniform"},
    "empty-row-nan-gradient": {"empty": "repaired"},
}
LARGE: dict[str, Options] = {
    "overflow-large-scores": {"subtract": "nothing"},
    "max-not-per-row": {"subtract": "all"},
}
PROJECTIONS: dict[str, Options] = {
    "heads-by-view": {"split": "view", "merge": "view"},
    "merge-without-transpose": {"merge": "view"},
    "heads-averaged": {"merge": "mean"},
    "attention-between-heads": {"among": "heads"},
    "key-map-unused": {"key_map": "queries"},
    "value-map-unused": {"value_map": "keys"},
    "values-not-projected": {"value_map": "none"},
    "output-projection-missing": {"output": "never"},
    "output-projection-twice": {"output": "twice"},
    "bias-forgotten": {"bias": False},
    "memory-ignored-in-cross": {"sources": "memory-ignored"},
    "memory-values-ignored-in-cross": {"sources": "values-of-queries"},
    "q-k-swapped-in-cross": {"sources": "queries-swapped"},
    "batch-and-length-mixed": {"among": "examples"},
    "heads-share-weights": {"own_maps": False},
}
ROTATION: dict[str, Options] = {
    "rotation-mixed-pairing": {"angles": "of the other"},
    "rotation-sign": {"sign": -1},
    "rotation-exponent": {"exponent": "i/size"},
    "rotation-over-wrong-axis": {"axis": 1},
    "rotation-ignores-positions": {"given": "ignored"},
    "rotation-scales": {"scales": 2.0},
    "rotation-position-off": {"shift": 1},
    "rotation-twice": {"times": 2},
}
DECODER: dict[str, Options] = {
    "future-seen": {"sees": "everything"},
    "past-ignored": {"sees": "itself"},
    "positions-missing": {"positions": False},
    "positions-restart-with-cache": {"cached_place": "zero"},
    "cache-position-off-by-one": {"cached_place": "late"},
    "cache-forgets": {"keeps": False},
    "cache-chunk-not-causal": {"chunk": "sees all"},
}
#: Other ways to make a mistake, which some of the numbers depend on.
VARIANTS: dict[str, tuple[Options, ...]] = {
    "scale-multiplied": ({"divisor": "multiplied-by-size"},),
    "cosine-for-dot": ({"alike": "cosine"},),
    "distance-for-dot": ({"alike": "distance"},),
    "softmax-twice": ({"weights": "twice-masked"},),
    "keys-for-values": ({"averaged": "queries"},),
    "fill-zero": ({"fill": 1e-9}, {"fill": 1e-6}),
    "fill-added-to-scores": ({"hide": "ones-of-hidden-added"},),
    "fill-too-small": tuple({"fill": -fill} for fill in (1.0, 2.0, 5.0, 20.0, 50.0, 100.0)),
    "fill-sign": ({"fill": torch.inf}, {"fill": 1e4}, {"fill": 1e6}),
    "online-softmax-no-rescale": tuple(
        {"subtract": "running", "rescaled": rescaled} for rescaled in ("output", "neither")
    ),
    "causal-restarts-per-chunk": (
        {"restart": "chunks", "causal_from": "first"},
        {"restart": "ends"},
    ),
    "heads-by-view": ({"split": "view"},),
    "merge-without-transpose": ({"merge": "interleaved"},),
    "rotation-exponent": ({"exponent": "4i/size"}, {"exponent": "2i/half"}),
    "rotation-over-wrong-axis": ({"axis": 0},),
    "rotation-position-off": ({"shift": -1},),
    "cache-position-off-by-one": ({"cached_place": "early"},),
}
#: Rarer ways, which the stored cases do without.
RARER: dict[str, tuple[Options, ...]] = {
    "fill-too-small": tuple(
        {"fill": -fill, "hide": "penalty"} for fill in (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
    ),
    "causal-transposed": ({"causal_rule": "future", "causal_shift": 1},),
    "online-softmax-no-rescale": tuple(
        {"subtract": "running", "rescaled": rescaled, "block": block}
        for rescaled, block in product(("sum", "output", "neither"), (1, 3, 4, 8, 16))
    ),
    "causal-restarts-per-chunk": tuple(
        {**way, "chunk": chunk}
        for way in ({"restart": "chunks"}, *VARIANTS["causal-restarts-per-chunk"])
        for chunk in (3, 4, 8, 16)
    ),
    "rotation-exponent": ({"exponent": "rising"}, {"exponent": "one"}),
    "rotation-over-wrong-axis": tuple({"axis": axis, "given": "first"} for axis in (1, 0)),
    "mask-times-scores": ({"hide": "keys-zeroed"},),
    "memory-values-ignored-in-cross": ({"sources": "values-of-keys"},),
    "bias-forgotten": ({"bias": "of inputs"}, {"bias": "of output"}),
    "memory-ignored-in-cross": ({"sources": "keys-of-queries"},),
    "q-k-swapped-in-cross": ({"sources": "queries-for-keys"},),
}
_WEIGHING = {**WEIGHTS, **MASK, **CAUSAL, **EMPTY, **LARGE}
OPTIONS: dict[str, dict[str, Options]] = {
    "softmax": _WEIGHING,
    "attention": {**SCORES, **_WEIGHING},
    "heads": {**PROJECTIONS, **SCORES, **_WEIGHING},
    "rotation": ROTATION,
    "decoder": DECODER,
}
