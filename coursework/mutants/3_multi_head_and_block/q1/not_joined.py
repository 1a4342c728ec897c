"""The axes are swapped, but heads and features are not joined yet."""


def merge_heads(x):
    batch, heads, length, d = x.shape
    return x.transpose(1, 2)
