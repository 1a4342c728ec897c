"""Normalised over the examples, not over the features of each position."""


def layer_norm(x, weight, bias, eps):
    centred = x - x.mean(0, keepdim=True)
    variance = centred.square().mean(0, keepdim=True)
    return centred / (variance + eps) ** 0.5 * weight + bias
