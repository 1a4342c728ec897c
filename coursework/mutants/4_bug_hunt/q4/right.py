"""Right, in another way."""

import torch

cause_4 = "b"
number_4 = torch.finfo(torch.float16).min


def repaired_4(scores, mask):
    low = torch.zeros_like(scores).masked_fill(~mask, -torch.inf)
    return torch.softmax(scores + low, -1).masked_fill(~mask, 0.0)
