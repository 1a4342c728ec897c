"""A query does not see its own place: keep the diagonal."""

import torch


def causal_mask(num_queries, num_keys):
    return torch.ones(num_queries, num_keys).tril(num_keys - num_queries - 1).bool()
