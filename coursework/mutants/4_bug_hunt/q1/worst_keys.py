"""The keys with the lowest scores are kept."""

import torch


def repaired_1(scores, k):
    threshold = scores.topk(k, dim=-1, largest=False).values[:, -1:]
    return torch.softmax(scores.masked_fill(scores > threshold, -torch.inf), dim=-1)
