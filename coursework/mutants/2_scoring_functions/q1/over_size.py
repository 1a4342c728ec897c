"""Divided by the size, not by its root."""


def scaled_dot_product_scores(queries, keys):
    dots = queries @ keys.transpose(1, 2)
    return dots / queries.shape[-1]
