"""A row without any allowed key gives NaN: softmax over only −inf divides 0 by 0."""

import torch


def masked_softmax(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1)
