"""Every example gets the length of the first."""

import torch


def attention(queries, keys, values, valid_lens):
    scores = queries @ keys.transpose(1, 2) / queries.shape[-1] ** 0.5
    real = (torch.arange(keys.shape[1]) < valid_lens[:, None])[:, None, :]
    real = real[:1].expand_as(real)
    weights = torch.softmax(scores.masked_fill(~real, -1e30), dim=-1) * real
    return weights @ values
