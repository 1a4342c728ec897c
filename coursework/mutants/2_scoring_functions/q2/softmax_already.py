"""These are weights, not scores: the softmax comes later."""

import torch


def distance_scores(queries, keys):
    differences = queries[:, :, None] - keys[:, None]
    return torch.softmax(-0.5 * differences.square().sum(-1), dim=-1)
