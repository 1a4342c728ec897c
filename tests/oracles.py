"""The truth, slowly: attention as loops over Python floats, one number at a time."""

import math

import torch
from torch import Tensor


def may_attend(
    example: int, head: int, query: int, key: int, valid_lens: Tensor | None, mask: Tensor | None
) -> bool:
    """Whether one query of one head of one example may attend to one key."""
    if valid_lens is not None:
        length = valid_lens[example] if valid_lens.dim() == 1 else valid_lens[example, query]
        if key >= int(length):
            return False
    if mask is None:
        return True
    full = {2: (query, key), 3: (example, query, key), 4: (example, head, query, key)}[mask.dim()]
    index = tuple(0 if n == 1 else i for i, n in zip(full, mask.shape, strict=True))
    return bool(mask[index])


def softmax(scores: list[float], allowed: list[bool]) -> list[float]:
    """The weights of one row; all zero where nothing is allowed."""
    kept = [score for score, may in zip(scores, allowed, strict=True) if may]
    if not kept:
        return [0.0] * len(scores)
    highest = max(kept)
    powers = [
        math.exp(score - highest) if may else 0.0
        for score, may in zip(scores, allowed, strict=True)
    ]
    total = math.fsum(powers)
    return [power / total for power in powers]


def weights(scores: Tensor, valid_lens: Tensor | None, mask: Tensor | None) -> Tensor:
    """masked_softmax of scores (batch, queries, keys) or (batch, heads, queries, keys)."""
    lens = None if valid_lens is None else valid_lens.cpu()
    mask = None if mask is None else mask.cpu()
    with_heads = scores.unsqueeze(1) if scores.dim() == 3 else scores
    result = torch.zeros(with_heads.shape, dtype=torch.float64)
    batch, heads, queries, keys = with_heads.shape
    for b in range(batch):
        for h in range(heads):
            for q in range(queries):
                allowed = [may_attend(b, h, q, k, lens, mask) for k in range(keys)]
                row = softmax(with_heads[b, h, q].double().tolist(), allowed)
                result[b, h, q] = torch.tensor(row, dtype=torch.float64)
    return result.reshape(scores.shape)


def dot(query: list[float], key: list[float]) -> float:
    return math.fsum(x * y for x, y in zip(query, key, strict=True))


def scores(queries: Tensor, keys: Tensor, score: object) -> Tensor:
    """score(query, key) of every pair, for tensors (…, length, size)."""
    rows = [
        [[score(q, k) for k in key_rows] for q in query_rows]  # type: ignore[operator]
        for query_rows, key_rows in zip(
            queries.double().flatten(0, -3).tolist(),
            keys.double().flatten(0, -3).tolist(),
            strict=True,
        )
    ]
    shape = (*queries.shape[:-1], keys.shape[-2])
    return torch.tensor(rows, dtype=torch.float64).reshape(shape)


def attend(weights: Tensor, values: Tensor) -> Tensor:
    """Each query's weighted sum of the values, for tensors (…, queries, keys), (…, keys, size)."""
    rows = [
        [[dot(row, column) for column in zip(*value_rows, strict=True)] for row in weight_rows]
        for weight_rows, value_rows in zip(
            weights.double().flatten(0, -3).tolist(),
            values.double().flatten(0, -3).tolist(),
            strict=True,
        )
    ]
    shape = (*weights.shape[:-1], values.shape[-1])
    return torch.tensor(rows, dtype=torch.float64).reshape(shape)
