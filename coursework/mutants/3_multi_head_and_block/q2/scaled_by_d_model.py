"""Scaled by the root of d_model: each head's vectors have size d_model / heads."""

import torch


def split(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def merge(x):
    return x.transpose(1, 2).flatten(2)


def weigh(scores, valid_lens):
    padding = torch.arange(scores.shape[-1]) >= valid_lens[:, None, None, None]
    return torch.softmax(scores.masked_fill(padding, -torch.inf), dim=-1)


def multi_head_attention(queries, keys, values, W_q, W_k, W_v, W_o, num_heads, valid_lens):
    q, k, v = (split(x @ W.T, num_heads) for x, W in ((queries, W_q), (keys, W_k), (values, W_v)))
    scores = q @ k.mT / queries.shape[-1] ** 0.5
    return merge(weigh(scores, valid_lens) @ v) @ W_o.T
