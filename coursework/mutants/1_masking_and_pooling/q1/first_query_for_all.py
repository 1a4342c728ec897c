"""Every query gets the length of the first query."""

import torch


def length_mask(valid_lens, num_keys):
    if valid_lens.dim() == 1:
        return torch.arange(num_keys) < valid_lens[:, None, None]
    mask = torch.arange(num_keys) < valid_lens[:, :1, None]
    return mask.repeat(1, valid_lens.shape[1], 1)
