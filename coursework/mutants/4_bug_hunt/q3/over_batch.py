"""The sum is divided by the number of sequences: divide by the number of real tokens."""

import torch


def repaired_3(losses, lengths):
    real = torch.arange(losses.shape[1]) < lengths[:, None]
    return (losses * real).sum() / len(losses)
