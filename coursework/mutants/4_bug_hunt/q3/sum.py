"""This is the sum, not the mean."""

import torch


def repaired_3(losses, lengths):
    real = torch.arange(losses.shape[1]) < lengths[:, None]
    return (losses * real).sum()
