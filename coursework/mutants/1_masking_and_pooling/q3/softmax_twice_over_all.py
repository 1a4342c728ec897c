"""The softmax is taken twice: the weights are flattened."""

import torch


def masked_softmax(scores, mask):
    return torch.softmax(torch.softmax(scores.masked_fill(~mask, -1e9), dim=-1), dim=-1)
