"""What crosses the wall of the jail: tensors and plain data, written as JSON.

JSON instead of pickle, because reading it runs nothing, whoever wrote it. Used on both sides.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable
from typing import Any

import torch

#: More than any question needs; less than what would slow the grader down. Sizes of 0 count as 1
#: here: (2**33, 0) has no bytes, but summed over its last axis it has 2**33 numbers.
MAX_BYTES = 8 * 2**20
MAX_DIMENSIONS = 16

DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
        *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
    )
}


class MalformedError(ValueError):
    """What came over the wire is no value that this module wrote."""


class Opaque:
    """Stands for a result that is neither tensor nor plain data; equal to nothing."""

    def __init__(self, description: str) -> None:
        self.description = description


def encode(value: Any) -> Any:
    """Turn a value into what `json.dumps` takes; a type that is not carried becomes its name."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, torch.Tensor):
        return _encode_tensor(value)
    if isinstance(value, list | tuple):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [encode(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(key), encode(item)] for key, item in value.items()]}
    return {"opaque": type(value).__name__}


def _bytes(shape: Iterable[int], dtype: torch.dtype) -> int:
    return math.prod(max(size, 1) for size in shape) * dtype.itemsize


def _encode_tensor(tensor: torch.Tensor) -> dict[str, Any]:
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in DTYPES or tensor.layout is not torch.strided or tensor.is_meta:
        return {"opaque": f"tensor of {name}, {tensor.layout}"}
    if _bytes(tensor.shape, tensor.dtype) > MAX_BYTES:
        return {"opaque": f"tensor of more than {MAX_BYTES // 2**20} MiB"}
    flat = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
    raw = bytes(flat.view(torch.uint8).numpy()) if flat.numel() else b""
    return {"tensor": [name, list(tensor.shape), base64.b64encode(raw).decode()]}


def decode(data: Any) -> Any:
    """The value that `encode` was given.

    Raises:
        MalformedError: for anything that `encode` does not produce.
    """
    if data is None or isinstance(data, bool | int | float | str):
        return data
    if not isinstance(data, dict) or len(data) != 1:
        raise MalformedError("neither plain data nor a tagged value")
    ((kind, content),) = data.items()
    if kind == "opaque" and isinstance(content, str):
        return Opaque(content[:100])
    if kind == "tensor":
        return _decode_tensor(content)
    if not isinstance(content, list):
        raise MalformedError(f"{kind} holds no list")
    if kind == "list":
        return [decode(item) for item in content]
    if kind == "tuple":
        return tuple(decode(item) for item in content)
    if kind == "dict":
        try:
            return {decode(key): decode(item) for key, item in content}
        except (TypeError, ValueError) as error:
            raise MalformedError("a dict that is not pairs of key and value") from error
    raise MalformedError(f"unknown kind {kind[:20]}")


def _decode_tensor(content: Any) -> torch.Tensor:
    try:
        name, shape, text = content
        dtype = DTYPES[name]
        # Looked at before the sizes are multiplied: the product of a million of them takes hours.
        sizes_are_counts = len(shape) <= MAX_DIMENSIONS and all(
            type(size) is int and 0 <= size < 2**40 for size in shape
        )
        raw = base64.b64decode(text, validate=True)
    except (TypeError, ValueError, KeyError) as error:
        raise MalformedError("not a tensor") from error
    # A shape is believed only where the bytes for it are there, so that none can be faked into an
    # allocation of its size.
    if not sizes_are_counts or len(raw) != math.prod(shape) * dtype.itemsize:
        raise MalformedError("a tensor whose bytes do not fit its shape")
    if _bytes(shape, dtype) > MAX_BYTES:
        raise MalformedError(f"a tensor of more than {MAX_BYTES // 2**20} MiB")
    if not raw:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(raw), dtype=dtype).reshape(shape)
