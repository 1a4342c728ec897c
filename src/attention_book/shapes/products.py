"""The matrix products of a trace: what each makes, and over which axis it sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

Axis = tuple[Tensor, int]

_MATMUL = {
    torch.matmul,
    torch.bmm,
    torch.mm,
    Tensor.matmul,
    Tensor.bmm,
    Tensor.mm,
    Tensor.__matmul__,
}

#: Functions whose result has the axes of its arguments, in the same places.
_KEEPS_AXES = {
    torch.where,
    torch.dropout,
    Tensor.masked_fill,
    Tensor.to,
    Tensor.__mul__,
    Tensor.mul,
}


class Product(NamedTuple):
    """One matrix product: `numbers` results, each a sum over one axis, met in both operands.

    `made` are the axes of the result where it is not returned: the scores inside a fused kernel.
    """

    numbers: int
    sums: tuple[Axis, Axis]
    made: list[Axis] | None = None


def products(function: Any, args: tuple[Any, ...], result: Any) -> Iterator[Product]:
    """The matrix products of one call into PyTorch."""
    if function is F.linear:
        yield Product(result.numel(), ((args[0], -1), (args[1], -1)))
    elif function in _MATMUL:
        right = -1 if args[1].dim() == 1 else -2
        yield Product(result.numel(), ((args[0], -1), (args[1], right)))
    elif function is F.scaled_dot_product_attention:
        queries, keys, values = args[:3]
        made = [(queries, axis) for axis in range(-queries.dim(), -1)] + [(keys, -2)]
        numbers = queries.numel() // max(queries.shape[-1], 1) * keys.shape[-2]
        yield Product(numbers, ((queries, -1), (keys, -1)), made)
        yield Product(result.numel(), ((keys, -2), (values, -2)))


class WatchProducts(TorchFunctionMode):
    """Report what PyTorch computes inside the block: each matrix product to `note_product`, and
    to `note_copy` each result that has the axes of an argument."""

    def __init__(
        self,
        note_product: Callable[[Product], None],
        note_copy: Callable[[Tensor, Tensor], None],
    ) -> None:
        super().__init__()
        self.note_product = note_product
        self.note_copy = note_copy

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for product in products(func, args, result):
            self.note_product(product)
        if func in _KEEPS_AXES:
            for source in args:
                if isinstance(source, Tensor) and source.shape == result.shape:
                    self.note_copy(source, result)
        return result
