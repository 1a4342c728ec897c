"""The bias is multiplied by the weight: scale first, then shift."""


def layer_norm(x, weight, bias, eps):
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return (centred / (variance + eps) ** 0.5 + bias) * weight
