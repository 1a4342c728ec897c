"""The axes of queries and examples are swapped."""

import torch


def length_mask(valid_lens, num_keys):
    lens = valid_lens[:, :, None] if valid_lens.dim() == 2 else valid_lens[:, None, None]
    return (torch.arange(num_keys) < lens).transpose(0, 1)
