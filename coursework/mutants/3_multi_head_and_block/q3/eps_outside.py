"""The epsilon is added after the root: it belongs inside."""


def layer_norm(x, weight, bias, eps):
    spread = x.std(-1, correction=0, keepdim=True)
    return (x - x.mean(-1, keepdim=True)) / (spread + eps) * weight + bias
