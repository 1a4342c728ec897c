"""The lengths are counted from the end: the first keys are the real ones."""

import torch


def masked_softmax(scores, valid_lens):
    places = torch.arange(scores.shape[-1])
    mask = places >= scores.shape[-1] - valid_lens[:, None, None]
    return torch.softmax(scores.masked_fill(~mask, -1e9), dim=-1) * mask
