"""The softmax is taken twice: the weights are flattened."""

import torch


def masked_softmax(scores, valid_lens):
    mask = torch.arange(scores.shape[-1]) < valid_lens[:, None, None]
    return torch.softmax(torch.softmax(scores.masked_fill(~mask, -1e9), dim=-1), dim=-1)
