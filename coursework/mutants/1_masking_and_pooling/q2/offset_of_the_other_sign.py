"""The offset has the wrong sign: with more keys than queries, each query sees more keys, not fewer."""

import torch


def causal_mask(num_queries, num_keys):
    every = torch.ones(num_queries, num_keys, dtype=torch.bool)
    return every.tril(num_queries - num_keys)
