"""Divided by the size, not by its root."""


def scaled_dot_product_scores(queries, keys):
    return queries @ keys.transpose(1, 2) / queries.shape[-1]
