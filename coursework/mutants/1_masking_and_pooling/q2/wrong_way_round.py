"""The mask is the wrong way round: True means may attend."""

import torch


def causal_mask(num_queries, num_keys):
    return torch.ones(num_queries, num_keys).triu(1 + num_keys - num_queries).bool()
