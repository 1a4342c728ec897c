"""The heads are in reverse order."""


def merge_heads(x):
    batch, heads, length, d = x.shape
    return x.flip(1).transpose(1, 2).reshape(batch, length, heads * d)
