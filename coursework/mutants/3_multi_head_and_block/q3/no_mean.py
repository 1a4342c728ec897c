"""The mean is not subtracted."""


def layer_norm(x, weight, bias, eps):
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return x / (variance + eps) ** 0.5 * weight + bias
