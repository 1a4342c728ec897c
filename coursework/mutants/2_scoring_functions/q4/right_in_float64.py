"""Right, in another way: computed in float64."""

import torch


def attention(queries, keys, values, valid_lens):
    scores = queries @ keys.transpose(1, 2) / queries.shape[-1] ** 0.5
    real = (torch.arange(keys.shape[1]) < valid_lens[:, None])[:, None, :]
    weights = torch.softmax(scores.double().masked_fill(~real, -torch.inf), dim=-1)
    return weights.nan_to_num() @ values.double()
