"""The variance is divided by one less than the number of features: layer normalisation divides by their number."""


def layer_norm(x, weight, bias, eps):
    centred = x - x.mean(-1, keepdim=True)
    variance = x.var(-1, keepdim=True)
    return centred / (variance + eps) ** 0.5 * weight + bias
