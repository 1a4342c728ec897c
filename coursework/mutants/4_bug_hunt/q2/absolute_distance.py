"""The distance has lost its sign: a key before the query and a key after it get the same bias."""

import torch


def repaired_2(scores, bias):
    n = len(scores)
    places = torch.arange(n)
    distance = (places[None, :] - places[:, None]).abs()
    return torch.softmax(scores + bias[n - 1 + distance], dim=-1)
