"""One largest score is subtracted from all rows: rows far below it vanish. Each row needs its own."""

import torch


def masked_softmax(scores, valid_lens):
    mask = torch.arange(scores.shape[-1]) < valid_lens[:, None, None]
    powers = (scores - scores[mask.expand_as(scores)].max()).exp() * mask
    return powers / powers.sum(dim=-1, keepdim=True).clamp(min=1e-30)
