"""The scale is missing: the scores are plain dot products."""

import torch


def attention(queries, keys, values, valid_lens):
    real = (torch.arange(keys.shape[1]) < valid_lens[:, None])[:, None, :]
    scores = (queries @ keys.transpose(1, 2)).masked_fill(~real, -torch.inf)
    return torch.softmax(scores, -1) @ values
