"""The NaN is gone, but so is the result: zeros are not the mean of the values."""

import torch


def repaired_5(scores, values, tile):
    largest, total = torch.tensor(0.0), torch.tensor(0.0)
    mixed = torch.zeros(values.shape[1])
    for s, v in zip(scores.split(tile), values.split(tile), strict=True):
        before, largest = largest, torch.maximum(largest, s.max())
        shrink = torch.exp(before - largest)
        powers = torch.exp(s - largest)
        total = total * shrink + powers.sum()
        mixed = mixed * shrink + powers @ v
    return (mixed / total).nan_to_num()
