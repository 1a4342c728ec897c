"""Right, in another way: example by example."""

import torch


def attention(queries, keys, values, valid_lens):
    result = torch.zeros(len(queries), queries.shape[1], values.shape[-1])
    for b, n in enumerate(valid_lens.tolist()):
        scores = queries[b] @ keys[b, :n].T / queries.shape[-1] ** 0.5
        result[b] = torch.log_softmax(scores, dim=-1).exp() @ values[b, :n]
    return result
