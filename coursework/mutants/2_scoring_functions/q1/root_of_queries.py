"""Divided by the root of the number of queries, not of the size."""


def scaled_dot_product_scores(queries, keys):
    dots = queries @ keys.transpose(1, 2)
    return dots / queries.shape[1] ** 0.5
