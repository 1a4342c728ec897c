"""The mask is the wrong way round: True means may attend."""

import torch


def causal_mask(num_queries, num_keys):
    every = torch.ones(num_queries, num_keys, dtype=torch.bool)
    return ~every.tril(num_keys - num_queries)
