"""The differences are summed before they are squared: square each first."""


def distance_scores(queries, keys):
    differences = queries[:, :, None] - keys[:, None]
    return -0.5 * differences.sum(-1).square()
