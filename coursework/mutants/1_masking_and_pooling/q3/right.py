"""Right, in another way."""

import torch


def masked_softmax(scores, mask):
    # The highest score is taken away before the exponential, so that none overflows.
    mask = mask.expand_as(scores)
    highest = torch.where(mask, scores, torch.finfo(scores.dtype).min).amax(-1, keepdim=True)
    powers = torch.where(mask, torch.exp(torch.where(mask, scores - highest, 0.0)), 0.0)
    total = powers.sum(-1, keepdim=True)
    return powers / torch.where(total > 0, total, 1.0)
