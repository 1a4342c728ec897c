"""These are weights, not scores: the softmax comes later."""

import torch


def scaled_dot_product_scores(queries, keys):
    dots = queries @ keys.transpose(1, 2)
    return torch.softmax(dots / queries.shape[-1] ** 0.5, dim=-1)
