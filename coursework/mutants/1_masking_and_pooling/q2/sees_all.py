"""Every query sees every key: the mask forbids nothing."""

import torch


def causal_mask(num_queries, num_keys):
    every = torch.ones(num_queries, num_keys, dtype=torch.bool)
    return every
