"""Every head gets all features: a head takes its d features only."""


def split_heads(x, num_heads):
    batch, length, width = x.shape
    size = width // num_heads
    return x[:, None].expand(batch, num_heads, length, width)
