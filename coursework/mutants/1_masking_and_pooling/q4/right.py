"""Right, in another way: example by example."""

import torch


def masked_mean(x, valid_lens):
    rows = [
        one[:n].mean(0) if n else torch.zeros(x.shape[2]) for one, n in zip(x, valid_lens.tolist())
    ]
    return torch.stack(rows)
