"""Your function writes into its argument: the caller's scores are changed."""

import torch


def masked_softmax(scores, mask):
    has_key = mask.any(-1, keepdim=True)
    hidden = ~mask & has_key
    scores.data.masked_fill_(hidden, -torch.inf)
    return torch.softmax(scores.masked_fill(hidden, -torch.inf), dim=-1) * (mask & has_key)
