"""The mean over the hidden units is taken: w_v sums them."""

import torch


def additive_scores(queries, keys, W_q, W_k, w_v):
    q, k = (queries @ W_q.T)[:, :, None], (keys @ W_k.T)[:, None]
    return (torch.tanh(q + k) * w_v).mean(-1)
