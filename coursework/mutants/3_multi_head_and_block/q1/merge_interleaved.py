"""The features of the heads are interleaved: they belong side by side."""


def merge_heads(x):
    batch, heads, length, d = x.shape
    return x.permute(0, 2, 3, 1).reshape(batch, length, heads * d)
