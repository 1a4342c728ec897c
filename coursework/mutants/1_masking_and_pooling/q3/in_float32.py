"""The weights come back in another dtype: keep the dtype of the scores."""

import torch


def masked_softmax(scores, mask):
    has_key = mask.any(dim=-1, keepdim=True)
    filled = scores.float().masked_fill(~mask & has_key, -torch.inf)
    return torch.softmax(filled, dim=-1) * (mask & has_key)
