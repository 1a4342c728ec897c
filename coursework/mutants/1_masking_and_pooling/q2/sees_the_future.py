"""Your queries see the future and themselves, not the past: the triangle is upside down."""

import torch


def causal_mask(num_queries, num_keys):
    return torch.ones(num_queries, num_keys).triu().bool()
