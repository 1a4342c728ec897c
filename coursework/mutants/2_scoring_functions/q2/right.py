"""Right, in another way: the square multiplied out."""

import torch


def distance_scores(queries, keys):
    squares = queries.square().sum(-1)[:, :, None] + keys.square().sum(-1)[:, None, :]
    return torch.baddbmm(-0.5 * squares, queries, keys.transpose(1, 2))
