"""The start token is in the result: only what follows it belongs there."""

import torch


def repaired_4(scores, starts, end, steps):
    result = torch.full((len(starts), steps), end)
    token = starts
    for step in range(steps):
        result[:, step] = token
        token = scores[token].argmax(dim=-1)
        token = torch.where(result[:, step] == end, end, token)
    return result
