"""The padding gets weight: the lengths are not used."""

import torch


def attention_pool(x, W, w, valid_lens):
    scores = torch.tanh(x @ W.T) @ w
    weights = torch.softmax(scores, dim=-1)
    return (weights[:, :, None] * x).sum(1)
