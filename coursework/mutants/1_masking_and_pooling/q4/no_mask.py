"""The padding is in the mean: every position is counted."""


def masked_mean(x, valid_lens):
    return x.mean(1)
