"""Right, in another way."""

import torch


def distance_scores(queries, keys):
    return -0.5 * torch.cdist(queries, keys, compute_mode="donot_use_mm_for_euclid_dist") ** 2
