"""The padding still gets weight: the number is still near 0."""

import torch


def repaired_1(scores, valid_len):
    padding = torch.arange(scores.shape[-1]) >= valid_len
    return torch.softmax(scores.masked_fill(padding, -1e-6), dim=-1)
