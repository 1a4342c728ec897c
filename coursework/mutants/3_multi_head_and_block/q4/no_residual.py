"""The residual connection is missing: add x before the norm."""

import torch


def norm(x, p):
    return torch.nn.functional.layer_norm(
        x, x.shape[-1:], p["norm.weight"], p["norm.bias"], eps=1e-12
    )


def attend(x, p, num_heads, valid_lens):
    q, k, v = (
        torch.nn.functional.linear(x, p[f"{name}.weight"], p[f"{name}.bias"])
        .unflatten(-1, (num_heads, -1))
        .transpose(1, 2)
        for name in ("query", "key", "value")
    )
    real = (torch.arange(x.shape[1]) < valid_lens[:, None])[:, None, None, :]
    attended = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=real)
    merged = attended.transpose(1, 2).flatten(2)
    return torch.nn.functional.linear(merged, p["dense.weight"], p["dense.bias"])


def self_attention_block(x, parameters, num_heads, valid_lens):
    return norm(attend(x, parameters, num_heads, valid_lens), parameters)
