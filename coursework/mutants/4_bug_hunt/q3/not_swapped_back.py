"""The axes are swapped before, but not back again: the positions are mixed in the result."""

import torch


def repaired_3(x, num_heads):
    heads = x.unflatten(-1, (num_heads, -1)).transpose(1, 2)
    weights = torch.softmax(heads @ heads.mT / heads.shape[-1] ** 0.5, -1)
    return (weights @ heads).reshape(x.shape)
