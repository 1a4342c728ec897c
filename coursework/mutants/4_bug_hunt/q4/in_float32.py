"""The weights come back in float32: keep the dtype of the scores."""

import torch


def repaired_4(scores, mask):
    return torch.softmax(scores.float().masked_fill(~mask, -1e9), dim=-1)
