"""Right, in another way."""

import math

import torch


def scaled_dot_product_scores(queries, keys):
    scores = torch.zeros(queries.shape[0], queries.shape[1], keys.shape[1])
    for i in range(queries.shape[1]):
        for j in range(keys.shape[1]):
            scores[:, i, j] = (queries[:, i] * keys[:, j]).sum(-1)
    return scores / math.sqrt(queries.shape[2])
