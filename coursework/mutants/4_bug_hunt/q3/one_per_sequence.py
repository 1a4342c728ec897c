"""There is one number per sequence: the loss of the batch is one number."""

import torch


def repaired_3(losses, lengths):
    real = torch.arange(losses.shape[1]) < lengths[:, None]
    return (losses * real).sum(1) / lengths
