"""One key too many: counted from 0, the key at place `valid_lens` is already padding."""

import torch


def masked_softmax(scores, valid_lens):
    places = torch.arange(scores.shape[-1])
    mask = places <= valid_lens[:, None, None]
    return torch.softmax(scores.masked_fill(~mask, -1e9), dim=-1) * mask
