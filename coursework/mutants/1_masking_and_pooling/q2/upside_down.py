"""Your queries see the future, not the past: the triangle is upside down."""

import torch


def causal_mask(num_queries, num_keys):
    every = torch.ones(num_queries, num_keys, dtype=torch.bool)
    return every.triu(num_keys - num_queries)
