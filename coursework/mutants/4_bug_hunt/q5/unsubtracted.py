"""The largest score is not subtracted: very low or very high scores vanish or overflow."""

import torch


def repaired_5(scores, values, tile):
    largest, total = torch.tensor(-torch.inf), torch.tensor(0.0)
    mixed = torch.zeros(values.shape[1])
    for s, v in zip(scores.split(tile), values.split(tile), strict=True):
        powers = torch.exp(s)
        total = total + powers.sum()
        mixed = mixed + powers @ v
    return mixed / total
