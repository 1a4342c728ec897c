"""Every query gets the length of the first query."""

import torch


def length_mask(valid_lens, num_keys):
    lens = (valid_lens if valid_lens.dim() == 1 else valid_lens[:, 0])[:, None, None].expand(
        -1, *valid_lens.shape[1:] or (1,), -1
    )
    return torch.arange(num_keys) < lens
