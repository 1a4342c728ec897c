"""This is the position with the highest score: take the mean of all, with their weights."""

import torch


def attention_pool(x, W, w, valid_lens):
    real = torch.arange(x.shape[1]) < valid_lens[:, None]
    scores = torch.tanh(x @ W.T) @ w
    best = scores.masked_fill(~real, -torch.inf).argmax(-1)
    return x[torch.arange(len(x)), best]
