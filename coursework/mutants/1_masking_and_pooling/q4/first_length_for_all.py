"""Every example gets the valid length of the first one."""


def masked_mean(x, valid_lens):
    n = int(valid_lens[0])
    return x[:, :n].sum(1) / max(n, 1)
