"""The square of the epsilon is added: add the epsilon itself."""


def layer_norm(x, weight, bias, eps):
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return centred / (variance + eps**2) ** 0.5 * weight + bias
