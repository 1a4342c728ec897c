"""Each head takes every second feature: a head holds features that lie side by side."""


def split_heads(x, num_heads):
    batch, length, width = x.shape
    return x.reshape(batch, length, width // num_heads, num_heads).permute(0, 3, 1, 2)
