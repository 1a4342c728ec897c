"""These are the logarithms of the weights: take the exponential."""

import torch


def masked_softmax(scores, valid_lens):
    mask = torch.arange(scores.shape[-1]) < valid_lens[:, None, None]
    return torch.log_softmax(scores.masked_fill(~mask, -1e9), dim=-1)
