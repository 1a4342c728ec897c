"""This is the value of the best key: take the mean of all, with their weights."""

import torch


def attention(queries, keys, values, valid_lens):
    scores = queries @ keys.transpose(1, 2) / queries.shape[-1] ** 0.5
    real = (torch.arange(keys.shape[1]) < valid_lens[:, None])[:, None, :]
    best = scores.masked_fill(~real, -torch.inf).argmax(-1)
    return values[torch.arange(len(values))[:, None], best] * real.any(-1)[:, :, None]
