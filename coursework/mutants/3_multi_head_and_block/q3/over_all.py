"""Normalised over positions and features together: each position is on its own."""


def layer_norm(x, weight, bias, eps):
    centred = x - x.mean((1, 2), keepdim=True)
    variance = centred.square().mean((1, 2), keepdim=True)
    return centred / (variance + eps) ** 0.5 * weight + bias
