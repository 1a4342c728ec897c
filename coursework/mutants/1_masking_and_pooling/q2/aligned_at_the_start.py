"""The queries are taken for the first places: the last query must see all keys."""

import torch


def causal_mask(num_queries, num_keys):
    return torch.arange(num_keys) <= torch.arange(num_queries)[:, None]
