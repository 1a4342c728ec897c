"""The shape is right, but positions are mixed: swap the axes back before you merge."""


def merge_heads(x):
    batch, heads, length, d = x.shape
    return x.reshape(batch, length, heads * d)
