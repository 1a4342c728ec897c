"""A sequence goes on after its end: from there on it contains only `end`."""

import torch


def repaired_4(scores, starts, end, steps):
    result = torch.full((len(starts), steps), end)
    token = starts
    for step in range(steps):
        token = scores[token].argmax(dim=-1)
        result[:, step] = token
    return result
