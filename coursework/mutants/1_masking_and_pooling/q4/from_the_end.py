"""The lengths are counted from the end: the first positions are the real ones."""

import torch


def masked_mean(x, valid_lens):
    real = (torch.arange(x.shape[1]) >= x.shape[1] - valid_lens[:, None])[:, :, None]
    lens = valid_lens.clamp(min=1)[:, None]
    return (x * real).sum(1) / lens
