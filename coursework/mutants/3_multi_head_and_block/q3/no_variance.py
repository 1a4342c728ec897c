"""Only the mean is subtracted: divide by the root of the variance."""


def layer_norm(x, weight, bias, eps):
    centred = x - x.mean(-1, keepdim=True)
    return centred * weight + bias
