"""Every step repeats the first one: go on from the token that was decoded."""

import torch


def repaired_4(scores, starts, end, steps):
    result = torch.full((len(starts), steps), end)
    token = starts
    for step in range(steps):
        result[:, step] = scores[starts].argmax(dim=-1)
    return result
