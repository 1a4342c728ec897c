"""The axes of heads and positions are still to be swapped."""


def split_heads(x, num_heads):
    return x.unflatten(-1, (num_heads, -1))
