"""The tanh comes before the sum: it must act on query and key together."""

import torch


def additive_scores(queries, keys, W_q, W_k, w_v):
    q, k = (queries @ W_q.T)[:, :, None], (keys @ W_k.T)[:, None]
    return (torch.tanh(q) + torch.tanh(k)) @ w_v
