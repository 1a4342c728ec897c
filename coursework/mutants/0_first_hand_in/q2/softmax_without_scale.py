"""These are weights, not scores: the softmax comes later."""

import torch


def scaled_dot_product_scores(queries, keys):
    dots = queries @ keys.transpose(1, 2)
    return torch.softmax(dots, dim=-1)
