"""The caller's scores are still changed by the call."""

import torch


def repaired_2(scores, valid_lens):
    padding = torch.arange(scores.shape[1]) >= valid_lens[:, None]
    return torch.softmax(scores.masked_fill_(padding, -torch.inf), dim=-1)
