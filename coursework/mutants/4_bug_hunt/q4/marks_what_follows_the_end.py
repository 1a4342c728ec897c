"""The end itself is lost or comes too late: a sequence contains `end` from the step that decodes it."""

import torch


def repaired_4(scores, starts, end, steps):
    result = torch.full((len(starts), steps), end)
    token = starts
    ended = starts == end
    for step in range(steps):
        following = scores[token].argmax(dim=-1)
        ended = ended | (token == end)
        result[:, step] = torch.where(following == end, token, following)
        token = torch.where(ended, end, following)
    return result
