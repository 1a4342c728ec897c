"""A row without any allowed key spreads its weight over keys that are all masked."""

import torch


def masked_softmax(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, -1e9), dim=-1)
