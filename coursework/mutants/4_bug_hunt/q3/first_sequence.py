"""This is the loss of the first sequence alone."""

import torch


def repaired_3(losses, lengths):
    real = torch.arange(losses.shape[1]) < lengths[:, None]
    return losses[0][real[0]].mean()
