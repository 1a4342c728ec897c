"""Right, in another way."""

import torch


def length_mask(valid_lens, num_keys):
    rows = valid_lens.tolist() if valid_lens.dim() == 2 else [[n] for n in valid_lens.tolist()]
    return torch.tensor([[[True] * n + [False] * (num_keys - n) for n in row] for row in rows])
