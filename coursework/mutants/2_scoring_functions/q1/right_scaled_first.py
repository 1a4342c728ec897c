"""Right, in another way: the queries are scaled, in float64."""

import torch


def scaled_dot_product_scores(queries, keys):
    scaled = queries.double() * queries.shape[-1] ** -0.5
    return torch.einsum("bqd,bkd->bqk", scaled, keys.double())
