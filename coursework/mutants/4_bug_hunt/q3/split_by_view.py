"""The heads are cut out by reshape alone: each head gets some of the positions."""

import torch


def repaired_3(x, num_heads):
    heads = x.reshape(x.shape[0], num_heads, x.shape[1], -1)
    weights = torch.softmax(heads @ heads.mT / heads.shape[-1] ** 0.5, -1)
    return (weights @ heads).transpose(1, 2).flatten(2)
