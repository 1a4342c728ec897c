"""Your weights sum to 1 over the queries, and padding is then set to 0: the softmax is on the wrong axis."""

import torch


def masked_softmax(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, -1e6), dim=1) * mask
