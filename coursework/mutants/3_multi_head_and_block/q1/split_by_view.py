"""The shape is right, but each head gets only some of the positions: split the features first, then swap two axes."""


def split_heads(x, num_heads):
    batch, length, width = x.shape
    size = width // num_heads
    return x.reshape(batch, num_heads, length, size)
