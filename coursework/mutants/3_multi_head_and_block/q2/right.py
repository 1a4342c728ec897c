"""Right, in another way."""

import torch


def multi_head_attention(queries, keys, values, W_q, W_k, W_v, W_o, num_heads, valid_lens):
    size = queries.shape[-1] // num_heads
    real = (torch.arange(keys.shape[1]) < valid_lens[:, None])[:, None, :]
    result = 0
    for head in range(num_heads):
        rows = slice(head * size, (head + 1) * size)
        attended = torch.nn.functional.scaled_dot_product_attention(
            queries @ W_q[rows].T, keys @ W_k[rows].T, values @ W_v[rows].T, attn_mask=real
        )
        result = result + attended @ W_o[:, rows].T
    return result
