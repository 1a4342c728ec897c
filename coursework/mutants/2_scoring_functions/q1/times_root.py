"""Multiplied by the root of the size: divide by it."""


def scaled_dot_product_scores(queries, keys):
    dots = queries @ keys.transpose(1, 2)
    return dots * queries.shape[-1] ** 0.5
