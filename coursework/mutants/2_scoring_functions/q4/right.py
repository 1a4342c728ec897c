"""Right, in another way."""

import torch


def attention(queries, keys, values, valid_lens):
    results = []
    for q, k, v, n in zip(queries, keys, values, valid_lens.tolist(), strict=True):
        weights = torch.softmax(q @ k[:n].T * q.shape[-1] ** -0.5, dim=-1)
        results.append(weights @ v[:n])
    return torch.stack(results)
