"""The threshold is still shared by all queries."""

import torch


def repaired_1(scores, k):
    threshold = scores.flatten().sort(descending=True).values[k * len(scores) - 1]
    return torch.softmax(scores.masked_fill(scores < threshold, -torch.inf), dim=-1)
