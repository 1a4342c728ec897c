"""The softmax is taken twice: the weights are flattened."""

import torch


def masked_softmax(scores, valid_lens):
    mask = torch.arange(scores.shape[-1]) < valid_lens[:, None, None]
    weights = torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1).nan_to_num()
    return torch.softmax(weights.masked_fill(~mask, -1e9), dim=-1) * mask
