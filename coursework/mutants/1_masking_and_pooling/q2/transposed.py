"""The mask is transposed: it has one row per query and one column per key."""

import torch


def causal_mask(num_queries, num_keys):
    every = torch.ones(num_queries, num_keys, dtype=torch.bool)
    return torch.ones(num_keys, num_queries, dtype=torch.bool).tril(num_queries - num_keys)
