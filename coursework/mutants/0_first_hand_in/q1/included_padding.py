"""The padding takes part in the softmax and is divided out afterwards: where its scores are much larger, nothing is left to divide."""

import torch


def masked_softmax(scores, valid_lens):
    mask = torch.arange(scores.shape[-1]) < valid_lens[:, None, None]
    weights = torch.softmax(scores, dim=-1) * mask
    return weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-30)
