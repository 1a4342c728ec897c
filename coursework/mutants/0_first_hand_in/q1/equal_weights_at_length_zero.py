"""A row of valid length 0 gives equal weights to keys that are all masked."""

import torch


def masked_softmax(scores, valid_lens):
    allowed = torch.arange(scores.shape[-1]) < valid_lens[:, None, None]
    return torch.softmax(scores.masked_fill(~allowed, -1e6), dim=-1)
