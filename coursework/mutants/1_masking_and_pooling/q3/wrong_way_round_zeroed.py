"""The mask is the wrong way round: the masked keys get the weight."""

import torch


def masked_softmax(scores, mask):
    weights = torch.softmax(scores.masked_fill(mask, -1e9), dim=-1)
    return weights * ~mask
