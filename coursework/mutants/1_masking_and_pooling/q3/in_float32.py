"""The weights come back in float32: keep the dtype of the scores."""

import torch


def masked_softmax(scores, mask):
    has_key = mask.any(dim=-1, keepdim=True)
    low = scores.float().masked_fill(~mask & has_key, -torch.inf)
    return torch.softmax(low, dim=-1) * (mask & has_key)
