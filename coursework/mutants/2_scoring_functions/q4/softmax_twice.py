"""The softmax is taken twice: the weights are flattened."""

import torch


def attention(queries, keys, values, valid_lens):
    real = (torch.arange(keys.shape[1]) < valid_lens[:, None])[:, None, :]
    scores = queries @ keys.transpose(1, 2) / queries.shape[-1] ** 0.5
    weights = torch.softmax(scores.masked_fill(~real, -torch.inf), -1)
    return torch.softmax(weights.masked_fill(~real, -torch.inf), -1) @ values
