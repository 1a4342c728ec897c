"""The bias is added after the softmax: add it to the scores."""

import torch


def repaired_2(scores, bias):
    n = len(scores)
    places = torch.arange(n)
    distance = places[None, :] - places[:, None]
    return torch.softmax(scores, dim=-1) + bias[n - 1 + distance]
