"""These are weights, not scores: the softmax comes later."""

import torch


def additive_scores(queries, keys, W_q, W_k, w_v):
    q, k = (queries @ W_q.T)[:, :, None], (keys @ W_k.T)[:, None]
    return torch.softmax(torch.tanh(q + k) @ w_v, dim=-1)
