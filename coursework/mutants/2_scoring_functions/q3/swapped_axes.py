"""The scores are transposed: the two new axes are swapped."""

import torch


def additive_scores(queries, keys, W_q, W_k, w_v):
    summed = (queries @ W_q.T).unsqueeze(1) + (keys @ W_k.T).unsqueeze(2)
    return torch.tanh(summed) @ w_v
