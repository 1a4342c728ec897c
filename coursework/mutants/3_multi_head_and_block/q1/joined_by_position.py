"""The heads are joined along the positions: join them along the features."""


def merge_heads(x):
    batch, heads, length, d = x.shape
    return x.reshape(batch, heads * length, d)
