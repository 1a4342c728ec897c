"""The index does not start at n − 1: a distance of 0 belongs to entry n − 1."""

import torch


def repaired_2(scores, bias):
    n = len(scores)
    places = torch.arange(n)
    distance = places[None, :] - places[:, None]
    return torch.softmax(scores + bias[distance], dim=-1)
