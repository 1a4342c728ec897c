"""Answers to the exercises that no declaration holds: other right ones, functions with a mistake,
and what is of another kind. Each has a piece of what is said of it."""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

import attention_book
from attention_book import (
    DotProductAttention,
    causal_mask,
    distance_scores,
    length_mask,
    masked_softmax,
)


def pooled(query, keys, values, scale=1.0):
    return torch.softmax(keys @ query * scale, 0) @ values


def two_best(chosen):
    """Attention to the two best keys; `chosen` says whose values get their weights."""

    def answer(query, keys, values):
        scores, places = (keys @ query).topk(2)
        return torch.softmax(scores, 0) @ values[chosen(places)]

    return answer


def best_two(scores):
    return scores >= scores.topk(2)[0][1]


def masked_to_two(query, keys, values):
    scores = keys @ query
    return torch.softmax(scores.masked_fill(~best_two(scores), -torch.inf), 0) @ values


CHAPTER_1 = [
    ("1.1", [1 / 7, 2 / 7], "Expected 3 numbers, but got 2 numbers."),
    ("1.1", "1/7", "Expected 3 numbers, but got a list of one number."),
    ("1.1", "１／７，２／７、４／７", ": right."),
    ("1.1", "14%, 29% 57%", "Write 3 numbers"),
    ("1.1", "14% 29% 57%", ": right."),
    ("1.1", 1, "Expected 3 numbers, but got one number."),
    ("1.1", ["1/7", "2/7", "4/7"], "but got a list that is not all numbers."),
    ("1.2", pooled, ": right."),
    ("1.2", lambda q, k, v: pooled(q, k, v, 3**-0.5), "plain dot product"),
    ("1.2", lambda q, k, v: torch.softmax(k @ q, 0), "These are the weights"),
    ("1.2", lambda q, k, v: v.mean(0), "weights are not used"),
    ("1.2", lambda q, k, v: pooled(q, k, v) + 1, "Take the dot product"),
    ("1.2", lambda q, k, v: None, "returns None"),
    ("1.2", lambda q, k: k, "function raises TypeError"),
    ("1.2", 3, "Expected a function, but got a whole number."),
    ("1.4", {"weights": (7, 9)}, "no entry 'result'"),
    ("1.4", [(7, 9), (7, 2)], "Expected a dictionary"),
    ("1.4", {"weights": "seven", "result": (7, 2)}, "Write a shape as whole numbers"),
    ("1.4", {"weights": 7, "result": (7, 2)}, "A shape is a tuple"),
    ("1.5", [0.5, 0.5], "Expected one number, but got 2 numbers."),
    ("1.6", two_best(lambda at: at), ": right."),
    ("1.6", masked_to_two, ": right."),
    ("1.6", two_best(lambda at: torch.arange(2)), "still there"),
    ("1.6", lambda q, k, v: (k @ q).softmax(0).mul(best_two(k @ q)) @ v, "do not sum to 1"),
    ("1.6", two_best(lambda at: at.flip(0)), "weights swapped"),
    ("1.6", lambda q, k, v: (k @ q * best_two(k @ q)) @ v, "softmax is missing"),
    ("1.6", lambda q, k, v: v[(k @ q).argmax()], "best key alone"),
    ("1.6", lambda q, k, v: masked_to_two(q / 3**0.5, k, v), "divided the scores"),
    ("1.6", lambda q, k, v: masked_to_two(q, k, v) + 1, "Which rows of `values`"),
]


def pairs_of(queries, keys):
    return queries.unsqueeze(2) * keys.unsqueeze(1)


def work_of(multiplications=122880, positions=1536):
    return {"multiplications": multiplications, "positions": positions}


CHAPTER_4 = [
    ("4.1", "six", "Write one number"),
    ("4.2", "ijk,ikm->ijm", ": right."),
    ("4.2", "bij,bic->bjc", "must have the same size"),
    ("4.2", 7, "Expected a string"),
    ("4.4", lambda q, k: pairs_of(q, k).sum(-1), ": right."),
    ("4.4", lambda q, k: pairs_of(q, k).mean(-1), "mean over the components"),
    ("4.4", lambda q, k: pairs_of(q, k).sum(-1, keepdim=True), "axis of size 1"),
    ("4.4", lambda q, k: q * k, "raises RuntimeError"),
    ("4.5", {"multiplications": 122880}, "no entry 'positions'"),
    ("4.5", 122880, "Expected a dictionary"),
]


def hidden_of(queries, keys, W_q, W_k):
    return (queries @ W_q.T).unsqueeze(1) + (keys @ W_k.T).unsqueeze(0)


def given_to_scores(batch=2):
    generator = torch.Generator().manual_seed(55)
    shapes = (batch, 3, 5), (batch, 4, 6), (7, 5), (7, 6), (7,)
    return [torch.randn(shape, generator=generator) for shape in shapes]


def tried(scores_of):
    return scores_of(*given_to_scores())


def by_pairs(scores_of, tolerance, batch=2):
    queries, keys, W_q, W_k, w_v = given_to_scores(batch)
    expected = [
        [[torch.tanh(W_q @ q + W_k @ k) @ w_v for k in these_keys] for q in these_queries]
        for these_queries, these_keys in zip(queries, keys, strict=True)
    ]
    scores = scores_of(queries, keys, W_q, W_k, w_v)
    right = torch.tensor(expected)
    return scores.shape == right.shape and torch.allclose(scores, right, rtol=0, atol=tolerance)


CHAPTER_5 = [
    ("5.2", lambda q, k, W, U, w: hidden_of(q, k, W, U).tanh() @ w, ": right."),
    ("5.2", lambda q, k, W, U, w: hidden_of(q, k, W, U).tanh().sum(-1), "without their parameters"),
    ("5.2", lambda q, k, W, U, w: (hidden_of(q, k, W, U).tanh() @ w).softmax(-1), "weights"),
    ("5.2", lambda q, k, W, U, w: hidden_of(q, k, W, U).tanh() @ w[:, None], "left over"),
    ("5.3", [[1, 2], [1, 0]], ": right."),
    ("5.3", torch.tensor([[2.0, 3.0], [2.0, 1.0]]), "not at"),
    ("5.3", [[1, 3], [1, 1]], "at the key 1.0, not at 0.0"),
    ("5.3", [1, 2], "Expected a tensor of shape (2, 2), but got 2 numbers"),
    ("5.5", lambda scores_of: by_pairs(scores_of, 1e-5), ": right."),
    ("5.5", lambda scores_of: torch.tensor(by_pairs(scores_of, 1e-5)), ": right."),
    ("5.5", lambda scores_of: by_pairs(scores_of, 0.0), "allow for rounding"),
    ("5.5", lambda scores_of: False, "rejects a function that is right"),
    ("5.5", lambda scores_of: True, "returns 0.5 for every pair"),
    ("5.5", lambda scores_of: tried(scores_of).shape == (2, 3, 4), "returns 0.5 for every pair"),
    ("5.5", lambda scores_of: tried(scores_of).std() > 0.5, "leaves the activation out"),
    ("5.5", lambda scores_of: tried(scores_of).abs().max() < 9, "returns 0.5 for every pair"),
    ("5.5", lambda scores_of: by_pairs(scores_of, 1e-5, batch=1), "of the first example"),
    ("5.5", tried, "Expected True or False, but got a tensor of shape (2, 3, 4)"),
    ("5.5", lambda scores_of: 1, "Expected True or False, but got a whole number"),
    ("5.5", True, "Expected a function, but got True"),
]


STAYS = (
    "add the query's squared length to each score",
    "add each key's squared length to its score",
    "multiply every score by 2",
    "subtract the largest score from each",
)


def terms(queries, keys):
    """The three terms of a squared distance: products, queries' squares, keys' squares."""
    of_queries = queries.square().sum(-1, keepdim=True)
    return queries @ keys.mT, of_queries, keys.square().sum(-1).unsqueeze(1)


def distances_in_terms(a, b, c):
    def answer(queries, keys):
        products, of_queries, of_keys = terms(queries, keys)
        return a * products + b * of_queries + c * of_keys

    return answer


def sums_of(fails="error", fits=(2, 3, 4), missing=(3, 4), silent=(3, 3)):
    return {
        "(2, 3) + (2, 3, 4)": fails,
        "(2, 1, 4) + (2, 3, 4)": fits,
        "(3, 1) + (4)": missing,
        "(3) + (3, 1)": silent,
    }


CHAPTER_2 = [
    ("2.4", distances_in_terms(1, -0.5, -0.5), ": right."),
    ("2.4", distances_in_terms(-1, 0.5, 0.5), "sign is reversed"),
    ("2.4", distances_in_terms(2, -1, -1), "half is missing"),
    ("2.4", distances_in_terms(-2, 1, 1), "squared distance"),
    ("2.4", distances_in_terms(1, 0, 0), "both squared lengths"),
    ("2.4", distances_in_terms(1, 0, -0.5), "query's length is missing"),
    ("2.4", distances_in_terms(1, 0.5, 0.5), "you added them"),
    ("2.4", lambda q, k: distance_scores(q, k).mT, "transposed"),
    ("2.4", lambda q, k: -0.5 * torch.cdist(q, k).square(), ": right."),
    ("2.5", sums_of(silent="no"), 'or "error"'),
    ("2.5", sums_of(fits=24), "A shape is a tuple"),
    ("2.6", {"queries": [[2, 1], [2, 1]], "keys": [[2, 1], [4, 2]]}, ": right."),
    ("2.6", {"queries": torch.ones(1, 3, 1), "keys": [[1], [1], [9]]}, ": right."),
    ("2.6", {"queries": [[9, 0], [9, 0]], "keys": [[1, 0], [2, 0]]}, "on the right key here"),
    ("2.6", {"queries": [[1, 0]], "keys": [[1, 0]]}, "every weight is 1"),
    ("2.6", {"queries": [[1], [2]], "keys": [[1, 2], [2, 3]]}, "1 and 2 components"),
    ("2.6", {"queries": [1, 2], "keys": [[1], [2]]}, "a list of vectors"),
    ("2.6", {"queries": [[1], [math.nan]], "keys": [[1], [2]]}, "NaN"),
]


def band(n, oldest, newest):
    """Each query sees the keys from `oldest` to `newest` positions away."""
    offset = torch.arange(n)[None, :] - torch.arange(n)[:, None]
    return (offset >= oldest) & (offset <= newest)


def filled(fill, dim=-1):
    return lambda scores, mask: torch.softmax(scores.masked_fill(~mask, fill), dim)


CHAPTER_3 = [
    ("3.1", [1 / 4, 3 / 4], "Expected 4 numbers, but got 2 numbers"),
    ("3.2", lambda tokens: (tokens != 0)[:, None], ": right."),
    ("3.2", lambda tokens: (tokens != 0)[:, None].expand(-1, 3, -1), ": right."),
    ("3.2", lambda tokens: (tokens != 0)[:, None].float(), "boolean"),
    ("3.2", lambda tokens: length_mask((tokens != 0).sum(1), 3), "counted the real tokens"),
    ("3.3", lambda n: band(n, -2, 0), ": right."),
    ("3.3", lambda n: band(n, -1, 0), "too short"),
    ("3.3", lambda n: band(n, -2, -1), "query itself"),
    ("3.3", lambda n: band(n, -2, 2), "into the future"),
    ("3.3", lambda n: ~band(n, -2, 0), "inverted"),
    ("3.3", lambda n: band(n, -2, 0).float(), "boolean"),
    ("3.3", lambda n: band(n, -2, 0).tolist(), "boolean"),
    ("3.4", lambda scores, mask: masked_softmax(scores, mask=mask), "without `masked_softmax`"),
    ("3.4", lambda scores, mask: filled(-torch.inf)(scores, mask).nan_to_num(), ": right."),
    ("3.4", lambda scores, mask: torch.softmax(scores, -1), "no effect"),
    ("3.4", filled(-torch.inf, 0), "wrong axis"),
    ("3.4", filled(-torch.inf, 1), "wrong axis"),
    ("3.4", lambda scores, mask: filled(-torch.inf)(scores, ~mask), "inverted"),
    ("3.4", filled(-10.0), "keeps some weight"),
    ("3.4", filled(-1e6), "lower than every score"),
    (
        "3.4",
        lambda scores, mask: filled(torch.finfo(scores.dtype).min)(scores, mask),
        "weights on masked keys",
    ),
    ("3.4", lambda s, m: torch.softmax(s.masked_fill_(~m, -torch.inf), -1), "writes into"),
    (
        "3.4",
        lambda s, m: torch.softmax(s + m.log(), -1).nan_to_num(),
        "gradient of an empty row is NaN",
    ),
    ("3.5", lambda lens, n: ~length_mask(lens, n).squeeze(1), ": right."),
    ("3.5", lambda lens, n: (~length_mask(lens, n)).squeeze(1).float(), "boolean"),
    ("3.5", lambda lens, n: torch.ones(3, n, dtype=torch.bool), "Row b"),
]


def halves(x, num_heads):
    """Heads moved before the positions, attended to with the right scale."""
    batch, length, width = x.shape
    heads = x.reshape(batch, length, num_heads, width // num_heads).transpose(1, 2)
    return torch.softmax(heads @ heads.mT * (width // num_heads) ** -0.5, dim=-1) @ heads


def without_swap(x, num_heads):
    heads = x.reshape(*x.shape[:2], num_heads, -1)
    return (torch.softmax(heads @ heads.mT * heads.shape[-1] ** -0.5, -1) @ heads).reshape(x.shape)


def centred(x, dim=-1):
    return x - x.mean(dim=dim, keepdim=True)


CHAPTER_8 = [
    ("8.1", 4, "Expected 4 numbers, but got one number"),
    (
        "8.2",
        lambda x, eps: centred(x) / (x.var(-1, correction=0, keepdim=True) + eps).sqrt(),
        ": right.",
    ),
    (
        "8.2",
        lambda x, eps: centred(x, 0) / (x.var(0, correction=0, keepdim=True) + eps).sqrt(),
        "examples",
    ),
    (
        "8.2",
        lambda x, eps: x / (x.var(-1, correction=0, keepdim=True) + eps).sqrt(),
        "not subtracted",
    ),
    ("8.2", lambda x, eps: x, "Subtract the mean"),
    ("8.3", lambda x, h: halves(x, h).transpose(1, 2).reshape(x.shape), ": right."),
    ("8.3", without_swap, "Still no position"),
    ("8.3", lambda x, h: halves(x, h).reshape(x.shape), "swap back"),
    ("8.3", lambda x, h: halves(x, h), "not joined yet"),
    ("8.3", lambda x, h: torch.softmax(x @ x.mT, -1) @ x, "Split the width"),
]


def ahead(n):
    return torch.ones(n, n, dtype=torch.bool).triu(1)


def token(lens, n):
    return torch.arange(n) < lens.reshape(-1, 1, 1)


CHAPTER_9 = [
    ("9.2", lambda lens, n: ~ahead(n) & token(lens, n), ": right."),
    ("9.2", lambda lens, n: ~(~ahead(n) & token(lens, n)), "True means blocked"),
    ("9.2", lambda lens, n: ~ahead(n).mT & token(lens, n), "reverse the comparison"),
    ("9.2", lambda lens, n: ~ahead(n), "padding can still be seen"),
    ("9.2", lambda lens, n: token(lens, n), "future can still be seen"),
    ("9.2", lambda lens, n: (~ahead(n) & token(lens, n)).float(), "boolean"),
    ("9.3", lambda t, n: (t + 1) % n, ": right."),
    ("9.3", lambda t, n: t, "copies"),
    ("9.3", lambda t, n: 0, "where it came from"),
]


def attend(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, -torch.inf), -1)


def until(last):
    """Of 5 queries and 7 keys, let query i attend to the keys up to number i + last."""
    return torch.ones(5, 7, dtype=torch.bool).tril(last)


def by_divisor(divisor, last=2):
    return lambda q, k, v: attend(q @ k.mT / divisor, until(last)) @ v


CHAPTER_6 = [
    ("6.2", by_divisor(4), ": right."),
    ("6.2", lambda q, k, v: masked_softmax(q @ k.mT / 4, causal=True) @ v, ": right."),
    ("6.2", by_divisor(4, 0), "aligned to the first key"),
    ("6.2", by_divisor(4, 1), "its own position"),
    ("6.2", by_divisor(4, 3), "one key too many"),
    ("6.2", by_divisor(4, 7), "Every query sees every key"),
    ("6.2", lambda q, k, v: attend(q @ k.mT / 4, ~until(2)) @ v, "inverted"),
    ("6.2", lambda q, k, v: attend(q @ k.mT / 4, ~until(1)) @ v, "reversed"),
    ("6.2", by_divisor(1), "not divided"),
    ("6.2", by_divisor(16), "by its root"),
    ("6.2", by_divisor(1 / 4), "you multiplied by √size"),
    ("6.2", by_divisor(7**0.5), "number of keys"),
    ("6.2", by_divisor(5**0.5), "number of queries"),
    ("6.2", by_divisor(3**0.5), "number of heads"),
    ("6.2", by_divisor(48**0.5), "heads · size"),
    ("6.2", by_divisor(11**0.5), "size of the values"),
    ("6.2", lambda q, k, v: attend(q @ k.mT / 4, until(2)), "These are the weights"),
    ("6.2", lambda q, k, v: torch.softmax(q @ k.mT / 4, -1) * until(2) @ v, "after the soft"),
    ("6.2", lambda q, k, v: torch.softmax(q @ k.mT / 4 * until(2), -1) @ v, "by the mask"),
    ("6.2", lambda q, k, v: torch.softmax(q @ k.mT / 4 + until(2), -1) @ v, "added the mask"),
    ("6.2", lambda q, k, v: attend(q @ k.mT / 4, until(2)).softmax(-1) @ v, "twice"),
    (
        "6.2",
        lambda q, k, v: (q @ k.mT / 4).masked_fill(~until(2), -torch.inf).softmax(-2) @ v,
        "over the queries",
    ),
    (
        "6.2",
        lambda q, k, v: (attend(q @ k.mT * 1e9, until(2)) > 0.5).double() @ v,
        "hard lookup",
    ),
    ("6.3", [1, 2], "Expected a tensor of shape (2, 2), but got 2 numbers"),
]


def sizes_of(projected_keys=(2, 9, 10), weights=(2, 4, 7, 9), merged=(2, 7, 12)):
    return {"projected_keys": projected_keys, "weights": weights, "merged": merged}


def in_thirds(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def side_by_side(heads):
    return heads.transpose(1, 2).flatten(2)


def with_heads(split=in_thirds, merge=side_by_side, scale=0.5, axis=-1, more=0):
    def multi_head(x, W_q, W_k, W_v, W_o, heads):
        q, k, v = (split(x @ W, heads) for W in (W_q, W_k, W_v))
        return merge(torch.softmax(q @ k.mT * scale, axis) @ v) @ W_o + more

    return multi_head


def by_reshape(x, heads):
    return x.reshape(len(x), heads, x.shape[1], -1)


def by_one_reshape(heads):
    return heads.reshape(2, 5, 6)


CHAPTER_7 = [
    ("7.1", [(2, 9, 10), (2, 4, 7, 9), (2, 7, 12)], "Expected a dictionary, but got a list"),
    ("7.2", with_heads(), ": right."),
    ("7.2", with_heads(merge=lambda y: torch.cat([*y.unbind(1)], -1)), ": right."),
    ("7.2", with_heads(split=by_reshape), "cuts the sequence"),
    ("7.2", with_heads(by_reshape, by_one_reshape), "cuts the sequence"),
    ("7.2", with_heads(merge=by_one_reshape), "The merge is wrong"),
    (
        "7.2",
        with_heads(lambda x, h: x.unflatten(-1, (-1, h)).permute(0, 3, 1, 2)),
        "every third one",
    ),
    ("7.2", with_heads(lambda x, h: x, lambda y: y, 12**-0.5), "one head of the full width"),
    ("7.2", with_heads(scale=1), "not scaled"),
    ("7.2", with_heads(scale=12**-0.5), "√(3 · d_k)"),
    ("7.2", with_heads(scale=8**-0.5), "√d_model"),
    ("7.2", with_heads(scale=0.25), "not its root"),
    ("7.2", with_heads(axis=-2), "over the queries"),
    ("7.2", with_heads(more=1), "Project, split the width"),
    (
        "7.2",
        lambda x, q, k, v, o, h: with_heads()(x, q, k, v, torch.eye(6).double(), h),
        "W_o is not applied yet",
    ),
    ("7.2", lambda x, *rest: x + 1, "Project, split the width"),
    ("7.3", lambda x, h: x.repeat_interleave(h // x.shape[1], 1), ": right."),
    ("7.3", lambda x, h: x[:, torch.arange(h) // (h // x.shape[1])], ": right."),
    ("7.3", lambda x, h: x.repeat(1, 2, 1, 1), "one copy for each group"),
    ("7.3", lambda x, h: x[:, :, None].expand(-1, -1, 3, -1, -1), "join the two axes"),
    ("7.3", lambda x, h: x.repeat_interleave(3, 1) + 1, "entries 3, 4, 5 head 1"),
    ("7.4", [10, 20], "Expected one number, but got 2 numbers"),
]


def merged(a, b, largest=torch.maximum, scaled=(1, 2)):
    common = largest(a[0], b[0])
    factors = torch.exp(a[0] - common), torch.exp(b[0] - common)
    added = [factors[0] * a[i] + factors[1] * b[i] if i in scaled else a[i] + b[i] for i in (1, 2)]
    return (common, *added)


CHAPTER_10 = [
    ("10.1", (4, 2, 72.5), "Expected 4 entries, m, ℓ, o and the output, but got 3."),
    ("10.1", 4, "Expected a tuple of m, ℓ, o and the output, but got a whole number."),
    ("10.2", merged, ": right."),
    ("10.2", lambda a, b: list(merged(a, b)), ": right."),
    ("10.2", lambda a, b: merged(a, b, scaled=()), "rescale each"),
    ("10.2", lambda a, b: merged(a, b, scaled=(1,)), "rescale each"),
    ("10.2", lambda a, b: merged(a, b, torch.minimum), "take the larger"),
    ("10.2", lambda a, b: (a[0], b[0]), "Expected 3 entries"),
    ("10.2", lambda a, b: ("m", 1, 2), "Expected one number, but got a string."),
]


def nucleus(probabilities, p):
    ranked, order = probabilities.sort(descending=True)
    return torch.zeros(4, dtype=torch.bool).scatter(0, order, ranked.cumsum(0) - ranked < p)


def same_text(lengths):
    number = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
    return number.unsqueeze(1) == number.unsqueeze(0)


CHAPTER_11 = [
    ("11.1", ["an", "ana", "ban"], ": right."),
    ("11.1", ("an", "ana", "ban"), ": right."),
    ("11.1", ["na", "ana", "ban"], "most frequent pair"),
    ("11.1", ["an", "ana"], "Expected 3 entries"),
    ("11.1", [1, 2, 3], "Each token is a string"),
    ("11.3", nucleus, ": right."),
    ("11.3", lambda x, p: ~nucleus(x, p), "True means dropped"),
    (
        "11.3",
        lambda x, p: (
            x.sort(descending=True).values.cumsum(0)[x.argsort(descending=True).argsort()] <= p
        ),
        "belongs to the nucleus",
    ),
    ("11.3", lambda x, p: x.cumsum(0) - x < p, "not sorted"),
    (
        "11.3",
        lambda x, p: x.sort(descending=True).values.cumsum(0) - x.sort(descending=True).values < p,
        "order of the sorted",
    ),
    ("11.3", lambda x, p: x > p, "Sort, add up"),
    ("11.3", lambda x, p: nucleus(x, p)[:3], "one entry per token"),
    ("11.3", lambda x, p: x, "must be a boolean tensor"),
    ("11.5", "values", ": right."),
    ("11.5", "scores", "Expected one of queries, keys, values"),
    ("11.6", lambda lengths: same_text(lengths).tril(), ": right."),
    ("11.6", lambda lengths: ~same_text(lengths).tril(), "True means blocked"),
    ("11.6", lambda lengths: same_text(lengths) | ~ahead(sum(lengths)), "with or"),
    ("11.6", lambda lengths: same_text(lengths).triu(), "reverse the comparison"),
    ("11.6", lambda lengths: torch.zeros(6, 6).bool(), "same text"),
    ("11.6", lambda lengths: same_text(lengths) & causal_mask(6), "without `causal_mask`"),
]


def half_by_half(weight, heads):
    return weight.unflatten(0, (heads, -1, 2)).transpose(1, 2).reshape(weight.shape)


CHAPTER_12 = [
    ("12.3", half_by_half, ": right."),
    ("12.3", lambda weight, heads: weight, "where they were"),
    ("12.3", lambda weight, heads: 2 * weight, "rows 0, 2, 4"),
]


MORE = [
    ("2.1", {"dot": (3, 2)}, "no entry 'distance'"),
    ("2.2", [True, False, False, True], "but got a list"),
    ("2.2", dict.fromkeys(STAYS, "no"), "Expected one of True, False, but got a string."),
    ("3.4", lambda scores, mask: filled(-1e9)(scores, mask), "With scores in float16, your"),
    (
        "3.4",
        lambda scores, mask: (
            torch.softmax(scores.masked_fill(~mask & mask.any(-1, keepdim=True), -torch.inf), -1)
            * mask.any(-1, keepdim=True)
        ),
        "NaN in the scores of an empty row comes through",
    ),
    ("4.2", "bijc,bjc", "Write a string such as"),
    ("4.2", "bijc,bjc->bic", "needs three letters"),
    ("4.2", "bxx,bxc->bxc", "must have the same size"),
    ("4.4", lambda q, k: q @ k.mT, "used a matrix product"),
    ("4.4", lambda q, k: pairs_of(q, k).sum(-1) + 1, "sum, over the components"),
    ("5.2", lambda q, k, W, U, w: hidden_of(q, k, W, U).tanh() @ w + 1, "Project queries and"),
    (
        "5.2",
        lambda q, k, W, U, w: torch.stack(
            [torch.stack([torch.tanh(W @ a + U @ b) @ w for b in k]) for a in q]
        ),
        "instead of looping",
    ),
    (
        "6.2",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        "aligned to the first key",
    ),
    (
        "6.2",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, until(2)),
        "without ready-made attention",
    ),
    (
        "6.2",
        lambda q, k, v: DotProductAttention()(q, k, v, causal=True),
        "without ready-made attention",
    ),
    ("6.2", lambda q, k, v: by_divisor(4)(q, k, v) + 1, "Divide by √size"),
    ("7.1", sizes_of(weights=7), "A shape is a tuple of whole numbers"),
    (
        "7.2",
        lambda *given: with_heads(merge=lambda y: attention_book.merge_heads(y))(*given),
        "without `merge_heads`",
    ),
    ("9.1", {"encoder": 1, "causal": 2, "cross": 3}, "but got a whole number"),
    (
        "9.2",
        lambda lens, n: ~ahead(n) & (torch.arange(n) <= lens.reshape(-1, 1, 1)),
        "One key too many",
    ),
    ("9.2", lambda lens, n: ~ahead(n) & token(lens, n) & (torch.arange(n) > 0), "Entry (b, i, j)"),
    ("9.2", lambda lens, n: causal_mask(n) & length_mask(lens, n), "without `causal_mask`"),
]
CASES = [
    *(CHAPTER_1 + CHAPTER_2 + CHAPTER_3 + CHAPTER_4 + CHAPTER_5 + CHAPTER_6 + CHAPTER_7),
    *(CHAPTER_8 + CHAPTER_9 + CHAPTER_10 + CHAPTER_11 + CHAPTER_12 + MORE),
]
