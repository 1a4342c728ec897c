"""A row without any allowed key spreads its weight over keys that are all masked."""

import torch


def masked_softmax(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim=-1)
