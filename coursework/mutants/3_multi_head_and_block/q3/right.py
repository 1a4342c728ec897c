"""Right, in another way."""

import torch


def layer_norm(x, weight, bias, eps):
    mean = x.mean(-1, keepdim=True)
    variance = (x * x).mean(-1, keepdim=True) - mean * mean
    return torch.addcmul(bias, (x - mean) * torch.rsqrt(variance + eps), weight)
