"""The softmax is taken twice, the second time over the padding too."""

import torch


def masked_softmax(scores, mask):
    weights = torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1)
    return torch.softmax(weights, dim=-1)
