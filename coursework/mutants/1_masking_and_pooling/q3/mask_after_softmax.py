"""The mask comes after the softmax: the rows no longer sum to 1."""

import torch


def masked_softmax(scores, mask):
    return torch.softmax(scores, dim=-1) * mask
