"""The padding is left out after the softmax: the weights of the rest no longer sum to 1."""

import torch


def attention(queries, keys, values, valid_lens):
    scores = queries @ keys.transpose(1, 2) / queries.shape[-1] ** 0.5
    real = (torch.arange(keys.shape[1]) < valid_lens[:, None])[:, None, :]
    return torch.softmax(scores, dim=-1) @ (values * real.transpose(1, 2))
