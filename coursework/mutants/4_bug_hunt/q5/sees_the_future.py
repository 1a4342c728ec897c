"""Each step sees one step of the future."""

import torch


def repaired_5(scores):
    seen = torch.ones_like(scores).tril(1).bool()
    return torch.softmax(scores.masked_fill(~seen, -torch.inf), dim=-1)
