"""The half is missing."""

import torch


def distance_scores(queries, keys):
    return -(torch.cdist(queries, keys) ** 2)
