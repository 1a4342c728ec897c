"""The axes of positions and features inside a head are swapped."""


def split_heads(x, num_heads):
    batch, length, width = x.shape
    size = width // num_heads
    return x.reshape(batch, length, num_heads, size).permute(0, 2, 3, 1)
