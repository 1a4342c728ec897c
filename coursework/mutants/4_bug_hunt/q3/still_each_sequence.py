"""Each sequence still counts alike: a token of a short one counts more."""

import torch


def repaired_3(losses, lengths):
    real = torch.arange(losses.shape[1]) < lengths[:, None]
    return ((losses * real).sum(1) / lengths).mean()
