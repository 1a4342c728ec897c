"""The hidden units are pooled: pool the positions themselves."""

import torch


def attention_pool(x, W, w, valid_lens):
    real = torch.arange(x.shape[1]) < valid_lens[:, None]
    scores = torch.tanh(x @ W.T) @ w
    weights = torch.softmax(scores.masked_fill(~real, -torch.inf), dim=-1)
    return (weights[:, :, None] * torch.tanh(x @ W.T)).sum(1)
