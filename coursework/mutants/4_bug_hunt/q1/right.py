"""Right, in another way."""

import torch

cause_1 = "(B)"
number_1 = 1.0


def repaired_1(scores, k):
    best, places = scores.topk(k, dim=-1)
    return torch.zeros_like(scores).scatter(-1, places, torch.softmax(best, dim=-1))
