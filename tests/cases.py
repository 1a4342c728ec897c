"""Generated problems, and the two ways to hold a result: close to the truth, or well refused."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from attention_book import data

#: What rounding in each type may cost on sums of a few dozen numbers near 1.
TOLERANCE = {
    torch.float64: 1e-12,
    torch.float32: 1e-5,
    torch.bfloat16: 3e-2,
    torch.float16: 4e-3,
}
DTYPES = list(TOLERANCE)
LAYOUTS = ["contiguous", "transposed", "strided", "expanded"]


def close(
    result: Tensor, truth: Tensor, dtype: torch.dtype | None = None, *, reach: float = 1.0
) -> None:
    """Assert that a result equals the truth up to the rounding of its type.

    `reach` is the size of the numbers on the way to the result, whose rounding it inherits.
    """
    tolerance = TOLERANCE[dtype or result.dtype]
    assert torch.isfinite(result).all()
    torch.testing.assert_close(
        result.detach().double().cpu(),
        truth.detach().double().cpu(),
        rtol=tolerance,
        atol=tolerance * max(reach, 1.0),
    )


def largest(tensor: Tensor) -> float:
    """The largest absolute value; 0 of no numbers."""
    return float(tensor.detach().abs().max()) if tensor.numel() else 0.0


def laid_out(tensor: Tensor, layout: str) -> Tensor:
    """A tensor of the same shape whose numbers lie otherwise in memory; expanded ones repeat."""
    if layout == "transposed" and tensor.dim() > 1:
        return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
    if layout == "strided":
        others = ~tensor if tensor.dtype == torch.bool else tensor + 1
        return torch.stack([tensor, others], dim=-1)[..., 0]
    if layout == "expanded":
        return tensor[:1].expand(tensor.shape)
    return tensor


@dataclass
class Problem:
    """What an attention is called with; `heads` is 0 where the tensors have no such axis."""

    queries: Tensor
    keys: Tensor
    values: Tensor
    valid_lens: Tensor | None
    mask: Tensor | None
    heads: int

    def call(self, attention: Any) -> Tensor:
        return attention(self.queries, self.keys, self.values, self.valid_lens, mask=self.mask)

    def tensors(self) -> list[Tensor]:
        found = (getattr(self, field.name) for field in fields(self))
        return [value for value in found if isinstance(value, Tensor)]


@st.composite
def problems(
    draw: st.DrawFn,
    *,
    heads: tuple[int, ...] = (0,),
    mask_heads: int | None = None,
    sizes: tuple[int, int, int] | None = None,
    least_size: int = 1,
    square: bool = False,
) -> Problem:
    """Problems of every small shape, dtype, mask, length and layout; an axis may be empty.

    `sizes` fixes the sizes of query, key and value; `mask_heads` lets a mask have a heads axis
    of this size where the tensors have none; `square` gives as many queries as keys.
    """
    # Each as often as the others: integers of hypothesis would be 0 in most examples.
    batch, num_queries, num_keys = (draw(st.sampled_from([2, 3, 1, 5, 4, 6, 0])) for _ in range(3))
    if square:
        num_queries = num_keys
    num_heads = draw(st.sampled_from(heads))
    shared = draw(st.integers(least_size, 6))
    query_size, key_size, value_size = sizes or (shared, shared, draw(st.integers(0, 6)))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    dtype = draw(st.sampled_from(DTYPES))
    # In half precision, products of large numbers would have no digits left to compare.
    magnitude = draw(st.sampled_from([1.0, 1e-3] + [30.0] * (dtype.itemsize > 2)))

    def placed(tensor: Tensor) -> Tensor:
        return laid_out(tensor.to(data.device), draw(st.sampled_from(LAYOUTS)))

    def tensor(length: int, size: int) -> Tensor:
        shape = (batch, num_heads, length, size) if num_heads else (batch, length, size)
        numbers = magnitude * torch.randn(shape, generator=generator, dtype=torch.float64)
        return placed(numbers.to(dtype))

    lens_shape = draw(st.sampled_from([None, (batch,), (batch, num_queries)]))
    valid_lens = None
    if lens_shape is not None:
        integers = draw(st.sampled_from([torch.int64, torch.int32, torch.uint8]))
        lens = torch.randint(0, num_keys + 1, lens_shape, generator=generator)
        valid_lens = placed(lens.to(integers))

    masked_heads = num_heads or mask_heads
    full_shapes = [None, (num_queries, num_keys), (batch, num_queries, num_keys)]
    if masked_heads:
        full_shapes.append((batch, masked_heads, num_queries, num_keys))
    full = draw(st.sampled_from(full_shapes))
    mask = None
    if full is not None:
        shape = tuple(draw(st.sampled_from([n, 1])) for n in full)
        mask = placed(torch.rand(shape, generator=generator) < 0.6)

    return Problem(
        tensor(num_queries, query_size),
        tensor(num_keys, key_size),
        tensor(num_keys, value_size),
        valid_lens,
        mask,
        num_heads,
    )


def every_rule(
    batch: int, queries: int, keys: int, *, heads: int = 0
) -> Iterator[tuple[Tensor | None, Tensor | None]]:
    """Lengths of each kind together with masks of each, any of whose sizes may be 1."""
    generator = torch.Generator().manual_seed(0)
    full = [(queries, keys), (batch, queries, keys)]
    full += [(batch, heads, queries, keys)] if heads else []
    shapes = [shape for sizes in full for shape in product(*((n, 1) for n in sizes))]
    for lens_shape in (None, (batch,), (batch, queries)):
        for shape in (None, *shapes):
            lens = mask = None
            if lens_shape is not None:
                lens = torch.randint(keys + 1, lens_shape, generator=generator).to(data.device)
            if shape is not None:
                mask = (torch.rand(shape, generator=generator) < 0.6).to(data.device)
            yield lens, mask


class _Arithmetic(TorchDispatchMode):
    """Notes the operations that compute new numbers; views, copies and casts are none."""

    NAMES = re.compile(
        "add|addmm|baddbmm|bmm|div|exp|linear|mm|mul|pow|sub|sum|tanh|_softmax|.*scaled_dot.*"
    )

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        name = str(func.overloadpacket).removeprefix("aten.")
        if self.NAMES.fullmatch(name):
            self.seen.append(name)
        return func(*args, **(kwargs or {}))


def outline(shapes: Any) -> str:
    """The numbers and names of the steps of a trace."""
    return ", ".join(f"{step.number} {step.name}" for step in shapes)


@contextmanager
def refuses(kind: type[Exception], *pieces: object) -> Iterator[None]:
    """Assert that the block raises `kind`, in one line that holds each piece, before computing."""
    with pytest.raises(kind) as caught, _Arithmetic() as arithmetic:
        yield
    message = str(caught.value)
    for piece in pieces:
        found = re.search(rf"(?<![\w.]){re.escape(str(piece))}(?![\w.]*\w)", message)
        assert found, f"{piece!r} is not in {message!r}"
    assert "\n" not in message
    assert not arithmetic.seen, f"computed before it refused: {arithmetic.seen}"


@contextmanager
def untouched(*tensors: Tensor | None) -> Iterator[None]:
    """Assert that the block writes into none of the tensors."""
    given = [tensor for tensor in tensors if tensor is not None]
    before = [(tensor.clone(), tensor._version) for tensor in given]
    yield
    for tensor, (copy, version) in zip(given, before, strict=True):
        assert torch.equal(tensor, copy)
        assert tensor._version == version
