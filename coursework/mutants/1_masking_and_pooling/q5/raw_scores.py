"""The positions are summed with their raw scores: the softmax is missing."""

import torch


def attention_pool(x, W, w, valid_lens):
    real = torch.arange(x.shape[1]) < valid_lens[:, None]
    weights = torch.tanh(x @ W.T) @ w * real
    return (weights[:, :, None] * x).sum(1)
