"""These are scores by distance: take the dot product."""

import torch


def scaled_dot_product_scores(queries, keys):
    return -torch.cdist(queries, keys).square() / 2
