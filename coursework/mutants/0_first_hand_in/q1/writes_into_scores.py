"""Your function writes into its argument: the caller's scores are changed."""

import torch


def masked_softmax(scores, valid_lens):
    mask = torch.arange(scores.shape[-1]) < valid_lens[:, None, None]
    scores[~mask.expand_as(scores)] = -torch.inf
    return torch.softmax(scores, dim=-1).masked_fill(~mask, 0.0)
