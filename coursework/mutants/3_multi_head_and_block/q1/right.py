"""Right, in another way."""

import torch


def split_heads(x, num_heads):
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)


def merge_heads(x):
    return torch.cat(list(x.unbind(dim=1)), dim=-1)
