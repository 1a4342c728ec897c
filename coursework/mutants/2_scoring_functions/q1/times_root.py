"""Multiplied by the root of the size, not divided."""


def scaled_dot_product_scores(queries, keys):
    return queries @ keys.transpose(1, 2) * queries.shape[-1] ** 0.5
