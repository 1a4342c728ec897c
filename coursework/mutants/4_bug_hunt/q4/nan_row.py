"""A row whose mask is all False gives NaN."""

import torch


def repaired_4(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1)
