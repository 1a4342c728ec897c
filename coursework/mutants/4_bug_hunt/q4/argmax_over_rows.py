"""The largest score is taken over the wrong axis: each row is about one token."""

import torch


def repaired_4(scores, starts, end, steps):
    result = torch.full((len(starts), steps), end)
    token = starts
    for step in range(steps):
        token = scores.T[token].argmax(dim=-1)
        result[:, step] = token
        token = torch.where(result[:, step] == end, end, token)
    return result
