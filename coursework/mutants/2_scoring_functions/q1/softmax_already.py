"""These are weights, not scores: the softmax comes later."""

import torch


def scaled_dot_product_scores(queries, keys):
    return torch.softmax(queries @ keys.transpose(1, 2) / queries.shape[-1] ** 0.5, dim=-1)
