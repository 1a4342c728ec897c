"""The mask contains numbers: make it boolean."""

import torch


def causal_mask(num_queries, num_keys):
    every = torch.ones(num_queries, num_keys, dtype=torch.bool)
    return every.tril(num_keys - num_queries).float()
