"""The epsilon is added after the root: it belongs inside."""


def layer_norm(x, weight, bias, eps):
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return centred / (variance**0.5 + eps) * weight + bias
