"""The scores are transposed: rows are for queries, columns for keys."""


def distance_scores(queries, keys):
    differences = queries[:, :, None] - keys[:, None]
    return -0.5 * differences.square().sum(-1).transpose(1, 2)
