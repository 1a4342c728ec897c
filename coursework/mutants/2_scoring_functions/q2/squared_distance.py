"""This is the squared distance: the score is −½ times that."""


def distance_scores(queries, keys):
    differences = queries[:, :, None] - keys[:, None]
    return differences.square().sum(-1)
