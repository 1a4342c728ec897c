"""The mask is the wrong way round: the masked keys get the weight."""

import torch


def masked_softmax(scores, mask):
    return torch.softmax(scores.masked_fill(mask, -torch.inf), dim=-1)
