"""The mask is the wrong way round: True means may attend."""

import torch


def length_mask(valid_lens, num_keys):
    lens = valid_lens[:, None] if valid_lens.dim() == 1 else valid_lens
    return torch.arange(num_keys) >= lens[:, :, None]
