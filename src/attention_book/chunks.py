"""A function over a long axis, piece by piece, so that its intermediate results stay small."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint


def in_chunks(
    function: Callable[[Tensor, Tensor], Tensor], x: Tensor, other: Tensor, size: int
) -> Tensor:
    """function(x, other), computed for `size` entries of axis 1 of x at a time.

    In training a chunk keeps only its inputs and is computed again in the backward pass. Compiled,
    all of it is one piece: a graph of pieces would hold for one length only, and the compiler's
    kernels do not store what lies between a sum and its reduction.
    """
    if torch.compiler.is_compiling():
        return function(x, other)
    chunks = x.split(size, dim=1)
    if torch.is_grad_enabled() and _may_recompute():
        results = [checkpoint(function, chunk, other, use_reentrant=False) for chunk in chunks]
    else:
        results = [function(chunk, other) for chunk in chunks]
    return torch.cat(results, dim=1)


def _may_recompute() -> bool:
    """Whether saved tensors can be replaced by a recomputation; torch.func does not allow it."""
    try:
        with saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
            return True
    except RuntimeError:
        return False
