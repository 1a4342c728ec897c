"""Right, in another way: with PyTorch's variance."""

import torch


def layer_norm(x, weight, bias, eps):
    variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return torch.addcmul(bias, weight, (x - mean) / torch.sqrt(variance + eps))
