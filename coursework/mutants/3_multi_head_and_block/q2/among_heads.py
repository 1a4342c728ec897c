"""Each position attends among its own heads, and no position sees another: swap the axes of length and heads before the product."""

import torch


def multi_head_attention(queries, keys, values, W_q, W_k, W_v, W_o, num_heads, valid_lens):
    q = (queries @ W_q.T).unflatten(-1, (num_heads, -1))
    k = (keys @ W_k.T).unflatten(-1, (num_heads, -1))
    v = (values @ W_v.T).unflatten(-1, (num_heads, -1))
    weights = torch.softmax(q @ k.transpose(2, 3) / q.shape[-1] ** 0.5, dim=-1)
    return (weights @ v).flatten(2) @ W_o.T
