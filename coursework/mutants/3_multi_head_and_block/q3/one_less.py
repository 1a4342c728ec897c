"""The variance divides by one less than the number of features: layer norm divides by their number."""


def layer_norm(x, weight, bias, eps):
    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + eps).sqrt() * weight + bias
