"""The heads are joined with the batch: keep an axis for each."""


def split_heads(x, num_heads):
    batch, length, width = x.shape
    size = width // num_heads
    return x.reshape(batch, length, num_heads, size).transpose(1, 2).flatten(0, 1)
