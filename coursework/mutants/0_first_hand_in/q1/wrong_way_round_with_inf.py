"""The mask is the wrong way round: the masked keys get the weight."""

import torch


def masked_softmax(scores, valid_lens):
    mask = torch.arange(scores.shape[-1]) < valid_lens[:, None, None]
    return torch.softmax(scores.masked_fill(mask, -torch.inf), dim=-1)
