"""This is the distance itself: it is to be squared."""

import torch


def distance_scores(queries, keys):
    return -0.5 * torch.cdist(queries, keys)
