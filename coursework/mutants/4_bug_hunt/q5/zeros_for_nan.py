"""The NaN is gone, but a step still does not see itself."""

import torch


def repaired_5(scores):
    past = torch.ones_like(scores).tril(-1).bool()
    return torch.softmax(scores.masked_fill(~past, -torch.inf), dim=-1).nan_to_num()
