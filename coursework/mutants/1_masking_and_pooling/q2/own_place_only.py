"""Each query sees its own position only: let it see those before it."""

import torch


def causal_mask(num_queries, num_keys):
    every = torch.ones(num_queries, num_keys, dtype=torch.bool)
    return every.tril(num_keys - num_queries).triu(num_keys - num_queries)
