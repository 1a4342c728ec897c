"""A row of valid length 0 gives NaN: softmax over only −inf divides 0 by 0."""

import torch


def masked_softmax(scores, valid_lens):
    allowed = torch.arange(scores.shape[-1]) < valid_lens[:, None, None]
    return torch.softmax(scores.masked_fill(~allowed, -torch.inf), dim=-1)
