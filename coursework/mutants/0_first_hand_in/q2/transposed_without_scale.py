"""The scores are transposed: rows are for queries, columns for keys."""


def scaled_dot_product_scores(queries, keys):
    return keys @ queries.transpose(1, 2)
