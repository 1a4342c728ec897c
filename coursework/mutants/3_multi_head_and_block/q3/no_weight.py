"""Weight and bias are missing."""

import torch


def layer_norm(x, weight, bias, eps):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], eps=eps)
