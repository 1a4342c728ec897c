"""The axes of heads and positions are not swapped yet."""


def split_heads(x, num_heads):
    batch, length, width = x.shape
    size = width // num_heads
    return x.reshape(batch, length, num_heads, size)
