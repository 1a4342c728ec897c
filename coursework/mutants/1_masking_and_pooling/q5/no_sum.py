"""One vector a position, not one an example: the sum over the positions is missing."""

import torch


def attention_pool(x, W, w, valid_lens):
    scores = torch.tanh(x @ W.T) @ w
    real = torch.arange(x.shape[1]) < valid_lens[:, None]
    return torch.softmax(scores.masked_fill(~real, -torch.inf), dim=-1)[:, :, None] * x
