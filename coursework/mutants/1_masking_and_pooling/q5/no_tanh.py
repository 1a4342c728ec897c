"""The tanh is missing: the score is then no more than a dot product."""

import torch


def attention_pool(x, W, w, valid_lens):
    real = torch.arange(x.shape[1]) < valid_lens[:, None]
    scores = x @ W.T @ w
    weights = torch.softmax(scores.masked_fill(~real, -torch.inf), dim=-1)
    return (weights[:, :, None] * x).sum(1)
