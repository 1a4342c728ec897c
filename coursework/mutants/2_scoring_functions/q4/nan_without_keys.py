"""An example without real keys gives NaN: softmax over only −inf divides 0 by 0."""

import torch


def attention(queries, keys, values, valid_lens):
    scores = queries @ keys.transpose(1, 2) / queries.shape[-1] ** 0.5
    real = (torch.arange(keys.shape[1]) < valid_lens[:, None])[:, None, :]
    return torch.softmax(scores.masked_fill(~real, -torch.inf), dim=-1) @ values
