"""Subjects for the tests of examine: right ones in many styles, wrong ones by their names."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from attention_book import DotProductAttention, masked_softmax


def by_hand(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    return scores.softmax(-1) @ v


def with_weights(query, key, value, key_padding_mask=None):
    """key_padding_mask (batch, keys): True where a key is padding; an empty row gives zeros."""
    scores = torch.einsum("bqd,bkd->bqk", query, key) * query.shape[-1] ** -0.5
    if key_padding_mask is not None:
        scores = scores.masked_fill(key_padding_mask[:, None], -torch.inf)
    weights = _zeroed(scores)
    return weights @ value, weights


def _zeroed(scores):
    empty = scores.isneginf().all(-1, keepdim=True)
    return scores.masked_fill(empty, 0.0).softmax(-1).masked_fill(empty, 0.0)


def einsum_length_first(q, k, v):
    scores = torch.einsum("qbd,kbd->bqk", q, k) / q.shape[-1] ** 0.5
    return torch.einsum("bqk,kbd->qbd", scores.softmax(-1), v)


def einsum_heads_third(q, k, v, is_causal=False):
    scores = torch.einsum("blhd,bmhd->bhlm", q, k) / q.shape[-1] ** 0.5
    if is_causal:
        later = torch.ones(q.shape[1], k.shape[1]).triu(k.shape[1] - q.shape[1] + 1).bool()
        scores = scores.masked_fill(later, -torch.inf)
    return torch.einsum("bhlm,bmhd->blhd", scores.softmax(-1), v)


def one_sequence(q, k, v, label=None):
    """A loop over queries, without a batch; and something that is no mask."""
    return torch.stack([(k @ query / q.shape[1] ** 0.5).softmax(0) @ v for query in q])


def in_numpy(q, k, v):
    scores = np.matmul(q, np.swapaxes(k, -1, -2)) / np.sqrt(q.shape[-1])
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.matmul(powers / powers.sum(-1, keepdims=True), v)


def added_mask(q, k, v, d_k, attn_bias=None, dropout=0.1):
    scores = q @ k.mT * d_k**-0.5
    weights = torch.softmax(scores if attn_bias is None else scores + attn_bias, -1)
    return F.dropout(weights, dropout) @ v


def penalised(q, k, v, mask):
    """mask: 0 for real tokens and -10000 for padding."""
    return (q @ k.mT / q.shape[-1] ** 0.5 + mask).softmax(-1) @ v


def for_heads_of_16(q, k, v):
    return (q @ k.mT / 4).softmax(-1) @ v


class Additive(nn.Module):
    """Additive attention: a score with parameters, for queries of size 10; lengths (batch)."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.one = nn.Linear(10, 6), nn.Linear(10, 6), nn.Linear(6, 1)

    def forward(self, query, key, value, lengths=None):
        scores = self.one(torch.tanh(self.q(query)[:, :, None] + self.k(key)[:, None]))[..., 0]
        return (scores.softmax(-1) if lengths is None else by_lengths(scores, lengths)) @ value


def heads_joined(q, k, v):
    """q (batch, heads, length, dim); gives (batch, length, heads * dim)."""
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


def of_a_list(xs):
    powers = [math.exp(x - max(xs)) for x in xs]
    return [power / sum(powers) for power in powers]


def always_causal(q, k, v):
    length = q.shape[-2]
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~torch.ones(length, length).tril().bool(), -torch.inf)
    return scores.softmax(-1) @ v


class WithDropout(nn.Module):
    """Annotated, with dropout that eval() ends."""

    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.3)

    def forward(self, queries, keys, values, valid_lens=None):
        scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(queries.shape[-1])
        weights = scores.softmax(-1) if valid_lens is None else by_lengths(scores, valid_lens)
        return torch.bmm(self.dropout(weights), values)


def by_lengths(scores, valid_lens):
    real = torch.arange(scores.shape[-1]) < valid_lens[:, None, None]
    return _zeroed(scores.masked_fill(~real, -torch.inf))


RIGHT = (
    by_hand, with_weights, einsum_length_first, einsum_heads_third, one_sequence, in_numpy,
    added_mask, penalised, for_heads_of_16, of_a_list, always_causal, WithDropout, by_lengths,
    Additive, heads_joined, masked_softmax, DotProductAttention,
    F.scaled_dot_product_attention,
)  # fmt: skip

LINES = """
    k_t = k.transpose(-2, -1)
    size = q.shape[-1]
    scores = q @ k_t / size**0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = torch.softmax(scores, dim=-1).nan_to_num()
    return weights @ v
"""
SCALED = "scores = q @ k_t / size**0.5"
HIDDEN = "scores = scores.masked_fill(~mask, -torch.inf)"
WEIGHED = "weights = torch.softmax(scores, dim=-1).nan_to_num()"
SUMMED = "return weights @ v"
#: Which line of an attention is changed to what, for each mistake.
ATTENTION = {
    "scale-missing": (SCALED, "scores = q @ k_t"),
    "scale-twice": (SCALED, "scores = q @ k_t / size"),
    "scale-multiplied": (SCALED, "scores = q @ k_t * size**0.5"),
    "scale-sqrt-keys": (SCALED, "scores = q @ k_t / k.shape[-2] ** 0.5"),
    "scale-sqrt-queries": (SCALED, "scores = q @ k_t / q.shape[-2] ** 0.5"),
    "cosine-for-dot": (SCALED, "scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT"),
    "distance-for-dot": (SCALED, "scores = -0.5 * torch.cdist(q, k) ** 2"),
    "score-sign": (SCALED, "scores = -q @ k_t / size**0.5"),
    "relu-on-scores": (SCALED, "scores = F.relu(q @ k_t / size**0.5)"),
    "wrong-numbers": (SCALED, "scores = q @ k_t / v.shape[-1] ** 0.5"),
    "scores-transposed": (SCALED, "scores = k @ q.mT / size**0.5"),
    "first-example-for-all": (SCALED, "scores = q @ k_t[:1] / size**0.5"),
    "values-for-keys": (SCALED, "scores = q @ v.mT / size**0.5"),
    "keys-for-values": (SUMMED, "return weights @ k"),
    "queries-for-keys": (SCALED, "scores = q @ q.mT / size**0.5"),
    "weights-transposed": (SUMMED, "return weights.mT @ v"),
    "softmax-over-queries": (WEIGHED, "weights = torch.softmax(scores, dim=-2)"),
    "softmax-over-batch": (WEIGHED, "weights = torch.softmax(scores, dim=0)"),
    "softmax-over-everything": (WEIGHED, "weights = scores.flatten().softmax(0).view_as(scores)"),
    "softmax-twice": (WEIGHED, "weights = scores.softmax(-1).softmax(-1)"),
    "softmax-missing": (WEIGHED, "weights = scores"),
    "argmax-for-softmax": (WEIGHED, "weights = (scores == scores.amax(-1, True)).to(q)"),
    "log-softmax-for-softmax": (WEIGHED, "weights = scores.log_softmax(-1)"),
    "sigmoid-for-softmax": (WEIGHED, "weights = scores.sigmoid()"),
    "normalisation-missing": (WEIGHED, "weights = scores.exp()"),
    "dropout-in-eval": (WEIGHED, "weights = F.dropout(scores.softmax(-1), 0.5)"),
    "mask-ignored": (HIDDEN, "pass"),
    "mask-after-softmax": (HIDDEN, "return (scores.softmax(-1) * mask) @ v"),
    "mask-times-scores": (HIDDEN, "scores = scores * mask"),
    "mask-times-scores of keys": (HIDDEN, "v = v * mask.mT; scores = q @ (k_t * mask) / size**0.5"),
    "fill-added-to-scores": (HIDDEN, "scores = scores + ~~mask"),
    "mask-times-infinity": (HIDDEN, "return (scores + ~mask * -torch.inf).softmax(-1) @ v"),
    "fill-too-small": (HIDDEN, "scores = scores + (1.0 - mask) * -10.0"),
    "fill-sign": (HIDDEN, "scores = scores.masked_fill(~mask, 1e9)"),
    "mask-on-query-axis": (HIDDEN, "scores = scores.masked_fill(~mask.mT, -torch.inf)"),
    "mask-of-first-example": (HIDDEN, "scores = scores.masked_fill(~mask[:1], -torch.inf)"),
    "empty-row-nan": (WEIGHED, "weights = scores.softmax(-1)"),
    "empty-row-nan-gradient": (HIDDEN, "scores = scores + torch.where(mask, 0.0, -torch.inf)"),
    "writes-to-input": (HIDDEN, "mask &= True; q *= 1.5; scores = (q / 1.5) @ k_t / size**0.5;"
                        " scores = scores.masked_fill(~mask, -1e30)"),
    "overflow-large-scores": (WEIGHED, "weights = scores.exp() / scores.exp().sum(-1, True)"),
    "max-not-per-row": (WEIGHED, "powers = (scores - scores.max()).exp(); "
                        "weights = F.normalize(powers, 1, -1, 1e-300)"),
    "order-of-keys-matters": (SUMMED, "return weights @ v.roll(1, -2)"),
    "dtype-changed": (SUMMED, "return (weights @ v).float()"),
    "batch-of-one": (SUMMED, "return (weights @ v).squeeze()"),
    "examples-mixed": (SUMMED, "return weights @ (v - v.mean(0))"),
    "remembers-last-call": (SUMMED, "seen.append(q); return weights @ v * (1 + len(seen) // 3)"),
    "global-state-changed": (SUMMED, "torch.manual_seed(0); return weights @ v"),
    "gradient-missing": (SUMMED, "return weights.detach() @ v"),
}  # fmt: skip


def changed(line: str, other: str, lines: str = LINES, head: str = "q, k, v, mask=None"):
    """A function in which one line is another."""
    assert line in lines
    names = {"torch": torch, "F": F, "math": math, "seen": []}
    exec(f"def attention({head}):{lines.replace(line, other)}", names)
    return names["attention"]


LENGTHS = """
    real = torch.arange(scores.shape[-1]) < lens[:, None, None]
    filled = scores.masked_fill(~real, -1e30)
    weights = torch.softmax(filled, dim=-1)
    return weights * real
"""
REAL = "real = torch.arange(scores.shape[-1]) < lens[:, None, None]"
FILLED = "filled = scores.masked_fill(~real, -1e30)"
WEIGHTS = "weights = torch.softmax(filled, dim=-1)"
SOFTMAX = {
    "softmax-over-queries": (WEIGHTS, "return torch.softmax(filled, dim=-2)"),
    "mask-ignored": (WEIGHTS, "return scores.softmax(-1)"),
    "mask-polarity": (REAL, "real = torch.arange(scores.shape[-1]) >= lens[:, None, None]"),
    "fill-too-small": (FILLED, "filled = scores.masked_fill(~real, -1e3)"),
    "length-one-too-few": (REAL, REAL + " - 1"),
    "length-one-too-many": (REAL, REAL.replace("<", "<=")),
    "length-from-the-end": (REAL, REAL.replace(" <", ".flip(0) <")),
    "mask-of-first-example": (REAL, "real = torch.arange(scores.shape[-1]) < lens[0]"),
    "overflow-large-scores": (WEIGHTS, "return F.normalize(scores.exp() * real, 1, -1, 1e-30)"),
    "batch-of-one": ("return weights * real", "return (weights * real).squeeze()"),
}  # fmt: skip

CAUSAL_LINES = """
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if causal:
        m, n = scores.shape[-2:]
        seen = torch.ones(m, n).tril(n - m).bool()
        scores = scores.masked_fill(~seen, -torch.inf)
    return scores.softmax(-1).nan_to_num() @ v
"""
SEEN = "seen = torch.ones(m, n).tril(n - m).bool()"
CAUSAL = {
    "causal-aligned-to-first": (SEEN, "seen = torch.ones(m, n).tril().bool()"),
    "causal-strict": (SEEN, "seen = torch.ones(m, n).tril(n - m - 1).bool()"),
    "causal-one-too-generous": (SEEN, "seen = torch.ones(m, n).tril(n - m + 1).bool()"),
    "causal-transposed": (SEEN, "seen = torch.ones(m, n).triu(n - m).bool()"),
    "causal-ignored": (SEEN, "seen = torch.ones(m, n).bool()"),
    "causal-restarts-per-chunk": (SEEN, SEEN + "; seen[8:] = seen[: max(m - 8, 0)]"),
}

# In blocks of keys, with a running maximum, or of queries.
ONLINE_LINES = """
    best, total, mixed = torch.full((*q.shape[:-1], 1), -1e30), 0.0, 0.0
    for k_part, v_part in zip(k.split(block_size, -2), v.split(block_size, -2)):
        scores = q @ k_part.mT / q.shape[-1] ** 0.5
        largest = torch.maximum(best, scores.amax(-1, keepdim=True))
        powers, factor = (scores - largest).exp(), (best - largest).exp()
        total = total * factor + powers.sum(-1, keepdim=True)
        mixed = mixed * factor + powers @ v_part
        best = largest
    return mixed / total
"""
CHUNKED_LINES = """
    parts, n, m = [], q.shape[-2], k.shape[-2]
    for start in range(0, n, block_size):
        scores = q[..., start : start + block_size, :] @ k.mT / q.shape[-1] ** 0.5
        seen = torch.ones(scores.shape[-2], m).tril(start + m - n).bool()
        parts.append(scores.masked_fill(~seen, -1e30).softmax(-1) @ v)
    return torch.cat(parts, -2)
"""
BLOCKS = (
    ("online-softmax-no-rescale", ONLINE_LINES, "total * factor", "total"),
    ("online-softmax-no-rescale", ONLINE_LINES, "mixed * factor", "mixed"),
    ("online-softmax-no-rescale", ONLINE_LINES, "(best - largest).exp()", "1.0"),
    ("causal-restarts-per-chunk", CHUNKED_LINES, "start + m - n", "m - n"),
    ("causal-restarts-per-chunk", CHUNKED_LINES, "start + m - n", "m - scores.shape[-2]"),
)

HEADS_SOURCE = """
class Subject(nn.Module):
    def __init__(self, d_model=20, num_heads=4, groups=2):
        super().__init__()
        self.h, self.size = num_heads, d_model // num_heads
        self.q_proj = nn.LazyLinear(d_model)
        self.k_proj = nn.Linear(d_model, self.size * groups)
        self.v_proj = nn.Linear(d_model, self.size * groups)
        self.o_proj = nn.Linear(d_model, d_model)
        nn.init.zeros_(self.o_proj.bias)
    def forward(self, query, key, value, mask=None):
        b, n, m = len(query), query.shape[1], key.shape[1]
        q, k, v = self.q_proj(query), self.k_proj(key), self.v_proj(value)
        q, k, v = (x.view(b, -1, x.shape[-1] // self.size, self.size) for x in (q, k, v))
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        k, v = (x.repeat_interleave(self.h // x.shape[1], dim=1) for x in (k, v))
        scores = q @ k.mT / self.size**0.5
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None], -1e30)
        mixed = scores.softmax(-1) @ v
        joined = mixed.transpose(1, 2).reshape(b, n, -1)
        return self.o_proj(joined)
"""
PROJECTED = "q, k, v = self.q_proj(query), self.k_proj(key), self.v_proj(value)"
CUT = "q, k, v = (x.transpose(1, 2) for x in (q, k, v))"
JOINED = "joined = mixed.transpose(1, 2).reshape(b, n, -1)"
OUT = "return self.o_proj(joined)"
SHARED = "x.repeat_interleave(self.h // x.shape[1], dim=1)"
HEADS = {
    "heads-by-view": (CUT, "q, k, v = (x.reshape(b, x.shape[2], -1, 5) for x in (q, k, v))"),
    "merge-without-transpose": (JOINED, "joined = mixed.reshape(b, n, -1)"),
    "heads-averaged": (JOINED, "joined = mixed.mean(1).repeat(1, 1, self.h)"),
    "attention-between-heads": ("mixed = scores.softmax(-1) @ v", CUT + "; mixed = "
                                "F.scaled_dot_product_attention(q, k, v).transpose(1, 2)"),
    "kv-heads-interleaved-wrongly": (SHARED, "x.repeat(1, self.h // x.shape[1], 1, 1)"),
    "value-map-unused": (PROJECTED, PROJECTED.replace("v_proj", "k_proj")),
    "output-projection-missing": (OUT, "return joined"),
    "output-projection-twice": (OUT, "return self.o_proj(self.o_proj(joined))"),
    "bias-forgotten": (OUT, "return joined @ self.o_proj.weight.mT"),
    "memory-ignored-in-cross": (PROJECTED, PROJECTED.replace("key)", "query)")),
    "memory-ignored-in-cross 2": ("query, key, value, mask=None):", "query, context=None):\n"
                                  "        key = value = query; mask = None"),
    "memory-values-ignored-in-cross": (PROJECTED, PROJECTED.replace("value)", "query)")),
    "memory-values-ignored-in-cross 2": (PROJECTED, "value = key; " + PROJECTED),
    "q-k-swapped-in-cross": (PROJECTED, "query, key, value = key, query, query; " + PROJECTED),
    "scale-sqrt-d-model": ("self.size**0.5", "(self.h * self.size) ** 0.5"),
    "softmax-over-heads": ("scores.softmax(-1)", "scores.softmax(1)"),
    "mask-polarity": ("~mask[:, None]", "mask[:, None]"),
}  # fmt: skip

# A module for each head.
SEPARATE_SOURCE = """
class Subject(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList([self.head() for _ in "123"])
        self.out = nn.Linear(12, 12)
    def head(self):
        return nn.ModuleDict({name: nn.Linear(12, 4) for name in "qkv"})
    def forward(self, x):
        three = ([W(x) for W in head.values()] for head in self.heads)
        return self.out(torch.cat([F.scaled_dot_product_attention(*qkv) for qkv in three], -1))
"""
EACH = 'self.head() for _ in "123"'
SEPARATE = {"heads-share-weights": (EACH, "*[self.head()] * 3")}

ROTATION_LINES = """
    size, length = x.shape[-1], x.shape[-2]
    places = torch.arange(length) if positions is None else positions
    rates = 10000.0 ** (-torch.arange(0, size, 2).double() / size)
    angles = places.double()[:, None] * rates
    angles = torch.cat([angles] * 2, -1)
    first, second = x.chunk(2, -1)
    partner = torch.cat([-second, first], -1)
    return x * angles.cos() + partner * angles.sin()
"""
ROTATES = ROTATION_LINES, "x, positions=None"
RATES = "rates = 10000.0 ** (-torch.arange(0, size, 2).double() / size)"
PLACES = "places = torch.arange(length) if positions is None else positions"
ROTATION = {
    "rotation-mixed-pairing": ("torch.cat([angles] * 2, -1)", "angles.repeat_interleave(2, -1)"),
    "rotation-sign": ("[-second, first]", "[second, first]"),
    "rotation-exponent": (RATES, RATES.replace("size, 2", "size // 2")),
    "rotation-ignores-positions": (PLACES, "places = torch.arange(length)"),
    "rotation-scales": ("return x", "return 0.5 * x"),
    "rotation-position-off": (PLACES, PLACES + " + 1"),
    "rotation-twice": ("torch.cat([angles] * 2, -1)", "torch.cat([2 * angles] * 2, -1)"),
}  # fmt: skip

DECODER_SOURCE = """
class Subject(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(13, 12), nn.Embedding(32, 12)
        self.qkv = nn.ModuleList([nn.Linear(12, 36) for _ in range(2)])
        self.kept = None
    def forward(self, tokens, cache=None):
        start = 0 if cache is None else cache[0][0].shape[1]
        n, new = tokens.shape[1], []
        places = torch.arange(start, start + n)
        x = self.token(tokens) + self.place(places)
        for i, layer in enumerate(self.qkv):
            q, k, v = layer(x).chunk(3, -1)
            if cache is not None:
                k, v = torch.cat([cache[i][0], k], 1), torch.cat([cache[i][1], v], 1)
            new.append((k, v))
            m = k.shape[1]
            seen = torch.ones(n, m).tril(m - n).bool()
            x = x + (q @ k.mT / 12**0.5).masked_fill(~seen, -1e30).softmax(-1) @ v
        return x @ self.token.weight.mT, new
"""
SEES = "seen = torch.ones(n, m).tril(m - n).bool()"
PLACED = "places = torch.arange(start, start + n)"
WITH = "k, v = torch.cat([cache[i][0], k], 1), torch.cat([cache[i][1], v], 1)"
START = "start = 0 if cache is None else cache[0][0].shape[1]"
DECODER = {
    "future-seen": (SEES, "seen = torch.ones(n, m).bool()"),
    "past-ignored": (SEES, "seen = torch.ones(n, m).tril(m - n).triu(m - n).bool()"),
    "causal-transposed": (SEES, "seen = torch.ones(n, m).triu(m - n).bool()"),
    "causal-one-too-generous": (SEES, "seen = torch.ones(n, m).tril(m - n + 1).bool()"),
    "positions-missing": ("x = self.token(tokens) + self.place(places)", "x = self.token(tokens)"),
    "positions-restart-with-cache": (PLACED, "places = torch.arange(n)"),
    "cache-position-off-by-one": (START, START + " - 1"),
    "cache-forgets": (WITH, "k, v = torch.cat([0 * cache[i][0], k], 1)[:, -n:], v"),
    "cache-chunk-not-causal": (SEES, "seen = torch.ones(n, m).tril(m - n + start * n).bool()"),
    "cache-differs": (WITH, WITH.replace("cache[i][1]", "cache[0][1]")),
    "cache-keeps-across-calls": (START, "cache = self.kept = cache or self.kept; " + START),
    "left-padding-changes-answer": (
        "None\n    def forward(self, tokens, cache=None",
        "nn.MultiheadAttention(4, 1)\n    def forward(self, tokens, cache=None, pad_mask=None",
    ),
    "dropout-in-eval": ("x = self.token(tokens)", "x = F.dropout(self.token(tokens), 0.2)"),
    "examples-mixed": ("x = self.token(tokens)", "x = self.token(tokens); x = x - x.mean(0)"),
}  # fmt: skip


def rewritten(line: str, other: str, source: str):
    """A class in which one line is another."""
    assert line in source
    names = {"torch": torch, "F": F, "math": math, "nn": nn}
    exec(source.replace(line, other), names)
    return names["Subject"]


# One matrix for all, causal, as in minGPT, with a cache.
FUSED_SOURCE = """
class Subject(nn.Module):
    def __init__(self):
        super().__init__()
        self.n_head, self.c_attn, self.c_proj = 3, nn.Linear(12, 36), nn.Linear(12, 12)
    def forward(self, x, layer_past=None):
        q, k, v = (y.unflatten(2, (3, 4)).transpose(1, 2) for y in self.c_attn(x).chunk(3, -1))
        if layer_past is not None:
            k, v = (torch.cat(both, 2) for both in zip(layer_past, (k, v)))
        n, m = q.shape[2], k.shape[2]
        seen = torch.ones(n, m).tril(m - n).bool()
        mixed = F.scaled_dot_product_attention(q, k, v, seen)
        return self.c_proj(mixed.transpose(1, 2).flatten(2)), (k, v)
"""
FUSED = {
    "causal-aligned-to-first": (SEES, "seen = torch.ones(n, m).tril().bool()"),
    "cache-chunk-not-causal": (SEES, "seen = torch.ones(n, m).tril(m - n + (m > n) * n).bool()"),
    "cache-differs": ("zip(layer_past", "zip(layer_past[::-1]"),
}


class PerHead(nn.Module):
    """Matrices and biases of each head, and the fill of GPT-2, as in TransformerLens."""

    def __init__(self):
        super().__init__()
        shapes = {"W_Q": (3, 12, 4), "W_K": (3, 12, 4), "W_V": (3, 12, 4), "W_O": (3, 4, 12)}
        shapes |= {"b_Q": (3, 4), "b_K": (3, 4), "b_V": (3, 4), "b_O": (12,)}
        for name, shape in shapes.items():
            setattr(self, name, nn.Parameter(torch.randn(shape)))

    def forward(self, x):
        maps = ((self.W_Q, self.b_Q), (self.W_K, self.b_K), (self.W_V, self.b_V))
        q, k, v = (torch.einsum("bnd,hde->bhne", x, W) + b[:, None] for W, b in maps)
        later = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        weights = (q @ k.mT / 2).masked_fill(later, -1e4).softmax(-1)
        return torch.einsum("bhne,hed->bnd", weights @ v, self.W_O) + self.b_O


def apply_rotary_pos_emb(q, k, cos, sin, unsqueeze_dim=1):
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
    halves = (x.chunk(2, -1) for x in (q, k))
    turned = [torch.cat([-second, first], -1) for first, second in halves]
    return q * cos + turned[0] * sin, k * cos + turned[1] * sin


def rotated_by_complex(xq, freqs_cis):
    """xq (batch, seq, heads, dim)"""
    pairs = torch.view_as_complex(xq.unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * freqs_cis[None, :, None]).flatten(-2)


class Remembering(rewritten(SEES, SEES, DECODER_SOURCE)):
    """The cache is in the model, and a text starts at 0."""

    def forward(self, tokens, start_pos=0):
        past = [(k[:, :start_pos], v[:, :start_pos]) for k, v in self.kept] if start_pos else None
        logits, self.kept = super().forward(tokens, past)
        return logits


class Stepping(Remembering):
    """The same, called step by step."""

    def forward(self, tokens):
        return super().forward(tokens)

    def reset(self):
        self.at = 0

    def step(self, tokens):
        logits, self.at = super().forward(tokens, self.at), self.at + tokens.shape[1]
        return logits


MODULES = (
    rewritten(OUT, OUT, HEADS_SOURCE), rewritten(SEES, SEES, FUSED_SOURCE), PerHead,
    nn.MultiheadAttention(12, 3), apply_rotary_pos_emb, rotated_by_complex, Remembering, Stepping,
    rewritten(SEES, SEES, DECODER_SOURCE), rewritten(EACH, EACH, SEPARATE_SOURCE),
)  # fmt: skip


#: For each kind its mistakes, how a subject is made with one, and how it is examined.
KINDS = {
    "attention": (ATTENTION, changed, (), {"kind": "attention"}),
    "softmax": (SOFTMAX, changed, (LENGTHS, "scores, lens"), {}),
    "causal": (CAUSAL, changed, (CAUSAL_LINES, "q, k, v, causal=False"), {}),
    "heads": (HEADS, rewritten, (HEADS_SOURCE,), {"mask": "allowed"}),
    "cached": (FUSED, rewritten, (FUSED_SOURCE,), {"kind": "heads"}),
    "separate": (SEPARATE, rewritten, (SEPARATE_SOURCE,), {}),
    "rotation": (ROTATION, changed, ROTATES, {"kind": "rotation"}),
    "decoder": (DECODER, rewritten, (DECODER_SOURCE,), {}),
}
WRONG = [(kind, name) for kind, (mistakes, *_) in KINDS.items() for name in mistakes]


def wrong(kind: str, name: str):
    """A subject with this mistake, and the options for it."""
    mistakes, make, of, options = KINDS[kind]
    return make(*mistakes[name], *of), options
