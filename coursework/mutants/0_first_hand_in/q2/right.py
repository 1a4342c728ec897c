"""Right, in another way: with loops."""

import torch


def scaled_dot_product_scores(queries, keys):
    result = torch.zeros(len(queries), queries.shape[1], keys.shape[1])
    for i in range(queries.shape[1]):
        for j in range(keys.shape[1]):
            result[:, i, j] = (queries[:, i] * keys[:, j]).sum(-1)
    return result / queries.shape[-1] ** 0.5
