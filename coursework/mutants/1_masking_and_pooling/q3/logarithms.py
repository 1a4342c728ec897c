"""These are the logarithms of the weights: take the exponential."""

import torch


def masked_softmax(scores, mask):
    return torch.log_softmax(scores.masked_fill(~mask, -1e9), dim=-1)
