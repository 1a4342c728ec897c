"""The tanh comes before the sum: it must see query and key together."""

import torch


def additive_scores(queries, keys, W_q, W_k, w_v):
    return (torch.tanh(queries @ W_q.T).unsqueeze(2) + torch.tanh(keys @ W_k.T).unsqueeze(1)) @ w_v
