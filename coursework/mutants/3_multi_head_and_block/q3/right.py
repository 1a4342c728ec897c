"""Right, in another way: feature by feature, in float64."""

import torch


def layer_norm(x, weight, bias, eps):
    x = x.double()
    mean = sum(x[..., i] for i in range(x.shape[-1])) / x.shape[-1]
    gaps = x - mean[..., None]
    variance = (gaps * gaps).sum(-1, keepdim=True) / x.shape[-1]
    return weight * gaps * torch.rsqrt(variance + eps) + bias
