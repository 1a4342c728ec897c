"""The shape is right, but each head gets half of the positions: split the features first, then swap two axes."""


def split_heads(x, num_heads):
    batch, length, width = x.shape
    return x.view(batch, num_heads, length, width // num_heads)
