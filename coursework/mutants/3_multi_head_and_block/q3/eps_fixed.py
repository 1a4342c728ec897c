"""The epsilon that is given is not used."""


def layer_norm(x, weight, bias, eps):
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return centred / (variance + 1e-5) ** 0.5 * weight + bias
