"""The padding is in the sum, but not counted: leave it out of the sum."""

import torch


def repaired_3(losses, lengths):
    real = torch.arange(losses.shape[1]) < lengths[:, None]
    return losses.sum() / lengths.sum()
