"""Every example gets the valid length of the first one."""

import torch


def masked_softmax(scores, valid_lens):
    places = torch.arange(scores.shape[-1])
    mask = (places < valid_lens[0]).expand_as(scores)
    return torch.softmax(scores.masked_fill(~mask, -1e9), dim=-1) * mask
