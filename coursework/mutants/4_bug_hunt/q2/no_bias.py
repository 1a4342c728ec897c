"""The bias is gone: repair it, do not remove it."""

import torch


def repaired_2(scores, bias):
    n = len(scores)
    places = torch.arange(n)
    return torch.softmax(scores, dim=-1)
