"""The mask is the wrong way round: the masked keys get the weight."""

import torch


def masked_softmax(scores, valid_lens):
    mask = torch.arange(scores.shape[-1]) < valid_lens[:, None, None]
    weights = torch.softmax(scores.masked_fill(mask, -1e9), dim=-1)
    return weights * ~mask
