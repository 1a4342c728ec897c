"""The last token before the stop is lost: write it before you stop."""

import torch


def repaired_4(scores, starts, end, steps):
    result = torch.full((len(starts), steps), end)
    token = starts
    for step in range(steps):
        token = scores[token].argmax(dim=-1)
        if (token == end).any():
            break
        result[:, step] = token
    return result
