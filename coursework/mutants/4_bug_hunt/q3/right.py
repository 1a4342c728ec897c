"""Right, in another way."""

import math

import torch

cause_3 = "b"
number_3 = 1


def repaired_3(x, num_heads):
    heads = x.chunk(num_heads, dim=-1)
    weights = [torch.softmax(h @ h.mT / math.sqrt(h.shape[-1]), dim=-1) for h in heads]
    return torch.cat([w @ h for w, h in zip(weights, heads, strict=True)], dim=-1)
