"""The queries, keys and values are not projected."""

import torch


def multi_head_attention(queries, keys, values, W_q, W_k, W_v, W_o, num_heads, valid_lens):
    def split(x):
        return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)

    q, k, v = split(queries), split(keys), split(values)
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    real = torch.arange(keys.shape[1]) < valid_lens[:, None]
    mask = real[:, None, None, :]
    attended = torch.softmax(scores.masked_fill(~mask, -1e30), dim=-1) @ v
    merged = attended.transpose(1, 2).flatten(2)
    return merged @ W_o.T
