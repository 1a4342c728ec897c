"""These are the masked scores: the softmax is missing."""

import torch


def masked_softmax(scores, mask):
    return scores.masked_fill(~mask, -torch.inf)
