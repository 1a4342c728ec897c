"""This is RMS normalisation: subtract the mean first."""


def layer_norm(x, weight, bias, eps):
    squares = x.square().mean(-1, keepdim=True)
    return x / (squares + eps) ** 0.5 * weight + bias
