"""This is the plain mean of the positions: the scores are not used."""

import torch


def attention_pool(x, W, w, valid_lens):
    real = torch.arange(x.shape[1]) < valid_lens[:, None]
    return (x * real[:, :, None]).sum(1) / valid_lens[:, None]
