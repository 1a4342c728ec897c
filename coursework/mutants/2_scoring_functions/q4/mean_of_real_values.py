"""This is the mean of the real values: the scores are not used."""

import torch


def attention(queries, keys, values, valid_lens):
    scores = queries @ keys.transpose(1, 2) / queries.shape[-1] ** 0.5
    real = (torch.arange(keys.shape[1]) < valid_lens[:, None])[:, None, :]
    lens = valid_lens.clamp(min=1)[:, None, None]
    return (values * real.transpose(1, 2)).sum(1, keepdim=True).expand(
        -1, queries.shape[1], -1
    ) / lens
