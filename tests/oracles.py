"""The truth, slowly: attention as loops over Python floats, one number at a time."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from attention_book import Transformer


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
        [[score(q, k) for k in key_rows] for q in query_rows]
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
    columns = range(values.shape[-1])
    rows = [
        [
            [
                math.fsum(w * v[column] for w, v in zip(row, value_rows, strict=True))
                for column in columns
            ]
            for row in weight_rows
        ]
        for weight_rows, value_rows in zip(
            weights.double().flatten(0, -3).tolist(),
            values.double().flatten(0, -3).tolist(),
            strict=True,
        )
    ]
    shape = (*weights.shape[:-1], values.shape[-1])
    return torch.tensor(rows, dtype=torch.float64).reshape(shape)


def linear(x: Tensor, layer: nn.Linear, rows: slice = slice(None)) -> Tensor:
    """Some rows of a linear layer, in float64."""
    mapped = x.double() @ layer.weight.detach().double()[rows].T
    return mapped if layer.bias is None else mapped + layer.bias.detach().double()[rows]


def multi_head(
    inputs: tuple[Tensor, Tensor, Tensor],
    layers: tuple[nn.Linear, nn.Linear, nn.Linear, nn.Linear],
    num_heads: int,
    valid_lens: Tensor | None = None,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Weights and output of multi-head attention, one head after the other."""
    each_weights, each_output = [], []
    for head in range(num_heads):
        queries, keys, values = (
            linear(x, layer, slice(head * size, (head + 1) * size))
            for x, layer in zip(inputs, layers, strict=False)
            for size in [layer.out_features // num_heads]
        )
        scale = queries.shape[-1] ** -0.5
        products = scores(queries, keys, lambda q, k, scale=scale: scale * dot(q, k))
        of_head = mask[:, head % mask.shape[1]] if mask is not None and mask.dim() == 4 else mask
        each_weights.append(weights(products, valid_lens, of_head))
        each_output.append(attend(each_weights[-1], values))
    merged = torch.cat(each_output, dim=-1).to(inputs[0].device)
    return torch.stack(each_weights, dim=1), linear(merged, layers[3])


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Each row less its mean, over the root of its variance plus ε, scaled and shifted."""
    rows = []
    for row in x.double().flatten(0, -2).tolist():
        mean = math.fsum(row) / len(row)
        deviation = math.sqrt(math.fsum((number - mean) ** 2 for number in row) / len(row) + eps)
        rows.append([(number - mean) / deviation for number in row])
    normalised = torch.tensor(rows, dtype=torch.float64).reshape(x.shape).to(x.device)
    return normalised * weight.detach().double() + bias.detach().double()


def position(place: int, column: int, width: int) -> float:
    """One number of the sinusoidal positions."""
    angle = place / 10000 ** (column // 2 * 2 / width)
    return math.cos(angle) if column % 2 else math.sin(angle)


def transformer(
    model: Transformer,
    sources: Tensor,
    targets: Tensor,
    source_lens: Tensor | None,
    target_lens: Tensor | None,
) -> Tensor:
    """The logits of the encoder–decoder, step by step of the paper's figure 1, in float64."""

    def embed(tokens: Tensor, embedding: nn.Embedding) -> Tensor:
        length, width = tokens.shape[1], embedding.embedding_dim
        places = [[position(i, j, width) for j in range(width)] for i in range(length)]
        codes = torch.tensor(places, dtype=torch.float64).view(length, width).to(tokens.device)
        return embedding.weight.detach().double()[tokens] + codes

    def attended(attention: Any, x: Tensor, memory: Tensor, *limits: Tensor | None) -> Tensor:
        layers = attention.W_q, attention.W_k, attention.W_v, attention.W_o
        return multi_head((x, memory, memory), layers, attention.num_heads, *limits)[1]

    def normalised(norm: Any, x: Tensor) -> Tensor:
        return layer_norm(x, norm.weight, norm.bias, norm.eps)

    def mapped(network: Any, x: Tensor) -> Tensor:
        return linear(linear(x, network.W_1).relu(), network.W_2)

    memory = embed(sources, model.source_embedding)
    for layer in model.encoder:
        memory = normalised(
            layer.norm_1, memory + attended(layer.self_attention, memory, memory, source_lens)
        )
        memory = normalised(layer.norm_2, memory + mapped(layer.feed_forward, memory))
    x = embed(targets, model.target_embedding)
    now = torch.ones(x.shape[1], x.shape[1]).tril().bool()
    for layer in model.decoder:
        x = normalised(layer.norm_1, x + attended(layer.self_attention, x, x, target_lens, now))
        looked_up = attended(layer.cross_attention, x, memory, source_lens)
        x = normalised(layer.norm_2, x + looked_up)
        x = normalised(layer.norm_3, x + mapped(layer.feed_forward, x))
    return linear(x, model.to_logits)
