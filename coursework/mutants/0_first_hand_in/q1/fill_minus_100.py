"""The number that you fill with is not low enough: a masked key can get weight. Fill with −inf."""

import torch


def masked_softmax(scores, valid_lens):
    mask = torch.arange(scores.shape[-1]) < valid_lens[:, None, None]
    weights = torch.softmax(scores.masked_fill(~mask, -100.0), dim=-1)
    return weights * mask
