"""Decoding still stops as soon as one sequence has ended."""

import torch


def repaired_4(scores, starts, end, steps):
    result = torch.full((len(starts), steps), end)
    token = starts
    for step in range(steps):
        token = scores[token].argmax(dim=-1)
        result[:, step] = token
        if (token == end).any():
            break
    return result
