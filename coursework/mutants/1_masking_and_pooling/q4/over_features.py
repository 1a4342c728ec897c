"""The mean is over the features, not over the positions."""


def masked_mean(x, valid_lens):
    return x.mean(2)
