"""Right, in another way."""

import math

import torch

cause_1 = "b"
number_1 = 2 / (math.e + math.e**2 + 2)


def repaired_1(scores, valid_len):
    real = torch.softmax(scores[:valid_len], -1)
    return torch.cat([real, torch.zeros(len(scores) - valid_len)])
