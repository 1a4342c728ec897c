"""A row without any allowed key gives NaN: softmax over only −inf divides 0 by 0."""

import torch


def masked_softmax(scores, valid_lens):
    mask = torch.arange(scores.shape[-1]) < valid_lens[:, None, None]
    return torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1)
