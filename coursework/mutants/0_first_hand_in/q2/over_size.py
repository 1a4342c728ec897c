"""Divided by the size, not by its root."""

import torch


def scaled_dot_product_scores(queries, keys):
    return torch.bmm(queries, keys.transpose(1, 2)) / queries.shape[-1]
