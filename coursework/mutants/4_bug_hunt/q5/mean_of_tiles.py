"""Each tile is averaged by itself, and then the tiles: they do not count alike."""

import torch


def repaired_5(scores, values, tile):
    largest, total = torch.tensor(0.0), torch.tensor(0.0)
    mixed = torch.zeros(values.shape[1])
    for s, v in zip(scores.split(tile), values.split(tile), strict=True):
        total = total + 1
        mixed = mixed + torch.softmax(s, 0) @ v
    return mixed / total
