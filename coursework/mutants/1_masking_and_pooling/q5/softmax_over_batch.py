"""Your weights sum to 1 over the examples: the softmax is on the wrong axis."""

import torch


def attention_pool(x, W, w, valid_lens):
    real = torch.arange(x.shape[1]) < valid_lens[:, None]
    scores = torch.tanh(x @ W.T) @ w
    weights = torch.softmax(scores.masked_fill(~real, -1e9), dim=0)
    return (weights[:, :, None] * x).sum(1)
