"""These are the masked scores: the softmax is missing."""

import torch


def masked_softmax(scores, valid_lens):
    mask = torch.arange(scores.shape[-1]) < valid_lens[:, None, None]
    return scores.masked_fill(~mask, -torch.inf)
