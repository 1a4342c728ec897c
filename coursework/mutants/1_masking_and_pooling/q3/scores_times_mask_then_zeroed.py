"""The masked scores become 0 and still count in the sum: fill with −inf."""

import torch


def masked_softmax(scores, mask):
    return torch.softmax(scores * mask, dim=-1) * mask
