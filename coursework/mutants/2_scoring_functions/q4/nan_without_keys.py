"""An example without real keys gives NaN: softmax over only −inf divides 0 by 0."""

import torch


def attention(queries, keys, values, valid_lens):
    real = (torch.arange(keys.shape[1]) < valid_lens[:, None])[:, None, :]
    scores = queries @ keys.transpose(1, 2) / queries.shape[-1] ** 0.5
    return torch.softmax(scores.masked_fill(~real, -torch.inf), -1) @ values
