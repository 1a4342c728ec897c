"""This is the scaled dot product: take the squared distance."""


def distance_scores(queries, keys):
    return queries @ keys.transpose(1, 2) / queries.shape[-1] ** 0.5
