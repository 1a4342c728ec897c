"""The padding is left out of the sum, but counted: divide by the valid length."""

import torch


def masked_mean(x, valid_lens):
    real = (torch.arange(x.shape[1]) < valid_lens[:, None])[:, :, None]
    return (x * real).sum(1) / x.shape[1]
