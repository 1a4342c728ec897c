"""The queries are taken to be the first positions: the last query must see all keys."""

import torch


def causal_mask(num_queries, num_keys):
    every = torch.ones(num_queries, num_keys, dtype=torch.bool)
    return every.tril()
