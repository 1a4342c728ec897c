"""This is the sum, not the mean."""

import torch


def masked_mean(x, valid_lens):
    real = (torch.arange(x.shape[1]) < valid_lens[:, None])[:, :, None]
    return (x * real).sum(1)
