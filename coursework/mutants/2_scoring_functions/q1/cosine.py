"""These are cosines: divide by the root of the size, not by the lengths of the vectors."""


def scaled_dot_product_scores(queries, keys):
    lengths = queries.norm(dim=-1)[:, :, None] * keys.norm(dim=-1)[:, None, :]
    return queries @ keys.transpose(1, 2) / lengths
