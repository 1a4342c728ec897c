"""Every length becomes an example of its own: keep the axes (batch, queries, keys)."""

import torch


def length_mask(valid_lens, num_keys):
    lens = valid_lens.reshape(-1, 1, 1)
    return torch.arange(num_keys) < lens
