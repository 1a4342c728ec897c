"""The scores are transposed: turn the distance round, not the scores."""

import torch


def repaired_2(scores, bias):
    n = len(scores)
    places = torch.arange(n)
    distance = places[:, None] - places[None, :]
    return torch.softmax((scores + bias[n - 1 + distance]).T, dim=-1)
