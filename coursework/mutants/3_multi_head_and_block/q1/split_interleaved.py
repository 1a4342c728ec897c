"""A head takes features that are not neighbours: head 0 has the first d features, head 1 the next d."""


def split_heads(x, num_heads):
    batch, length, width = x.shape
    size = width // num_heads
    return x.reshape(batch, length, size, num_heads).permute(0, 3, 1, 2)
