"""Every query gets the threshold of the first query."""

import torch


def repaired_1(scores, k):
    threshold = scores[0].topk(k).values[-1]
    return torch.softmax(scores.masked_fill(scores < threshold, -torch.inf), dim=-1)
