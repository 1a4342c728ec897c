"""Right, in another way."""

import torch

cause_2 = "a "
number_2 = 10


def repaired_2(scores, bias):
    n = len(scores)
    rows = [bias[n - 1 - i : 2 * n - 1 - i] for i in range(n)]
    return torch.softmax(scores + torch.stack(rows), dim=-1)
