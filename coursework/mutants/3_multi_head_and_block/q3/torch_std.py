"""torch.std divides by one less than the number of features, and the epsilon belongs inside the root."""


def layer_norm(x, weight, bias, eps):
    centred = x - x.mean(-1, keepdim=True)
    return centred / (x.std(-1, keepdim=True) + eps) * weight + bias
