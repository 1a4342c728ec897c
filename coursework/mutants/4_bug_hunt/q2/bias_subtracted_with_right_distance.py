"""The bias is subtracted: add it."""

import torch


def repaired_2(scores, bias):
    n = len(scores)
    places = torch.arange(n)
    distance = places[None, :] - places[:, None]
    return torch.softmax(scores - bias[n - 1 + distance], dim=-1)
