"""What crosses the wall of the jail: tensors and plain data, written as JSON.

JSON instead of pickle, because reading it runs nothing, whoever wrote it. Used on both sides.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

import torch

#: More than any question needs; less than what would slow the grader down.
MAX_LINE = 2**20
MAX_ITEMS = 10_000
#: Of a tensor. Sizes of 0 count as 1 here: (2**33, 0) has no bytes, but summed over its last axis
#: it has 2**33 numbers.
MAX_BYTES = 2**19
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


def parse(line: bytes) -> dict[str, Any]:
    """One line that crossed the wall, as an object of JSON.

    Raises:
        MalformedError: where it is none, or a large one: a megabyte of `{},{},…` takes fifty.
    """
    if len(line) > MAX_LINE or sum(map(line.count, (b"[", b"{", b","))) > MAX_ITEMS:
        raise MalformedError("too much")
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise MalformedError("no JSON") from error
    if not isinstance(parsed, dict):
        raise MalformedError("no object")
    return parsed


def encode(value: Any) -> Any:
    """Turn a value into what `json.dumps` takes; a type that is not carried becomes its name."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, torch.Tensor):
        return _encode_tensor(value)
    if isinstance(value, list | tuple):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [encode(item) for item in value]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: encode(item) for key, item in value.items()}}
    return {"opaque": type(value).__name__}


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in plain data, in the order in which `encode` writes them."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from tensors(item)


def _bytes(shape: Iterable[int], dtype: torch.dtype) -> int:
    return math.prod(max(size, 1) for size in shape) * dtype.itemsize


def _encode_tensor(tensor: torch.Tensor) -> dict[str, Any]:
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in DTYPES or tensor.layout is not torch.strided or tensor.is_meta:
        return {"opaque": "Tensor_of_a_kind_that_is_not_carried"}
    if _bytes(tensor.shape, tensor.dtype) > MAX_BYTES:
        return {"opaque": f"Tensor_of_more_than_{MAX_BYTES // 2**10}_KiB"}
    flat = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
    raw = bytes(flat.view(torch.uint8).numpy()) if flat.numel() else b""
    return {"tensor": [name, list(tensor.shape), base64.b64encode(raw).decode()]}


def decode(data: Any, memory: Any = b"") -> Any:
    """The value that `encode` was given.

    Args:
        memory: what tensors under `shared` lie in; they are not copied from it.

    Raises:
        MalformedError: for anything that `encode` does not produce.
    """
    if data is None or isinstance(data, bool | int | float | str):
        return data
    if not isinstance(data, dict) or len(data) != 1:
        raise MalformedError("neither plain data nor a tagged value")
    ((kind, content),) = data.items()
    match kind, content:
        case "opaque", str(name):
            # Whoever asks for its type is told that of the result.
            name = name[:100] if name.isidentifier() and name.isascii() else "object"
            return type(name, (Opaque,), {})()
        case "tensor", _:
            return _decode_tensor(content)
        case "shared", [name, shape, offset] if memory:
            if not math.prod(shape):
                return torch.empty(shape, dtype=DTYPES[name])
            place = {"count": math.prod(shape), "offset": offset}
            return torch.frombuffer(memory, dtype=DTYPES[name], **place).reshape(shape)
        case "list", list(items):
            return [decode(item, memory) for item in items]
        case "tuple", list(items):
            return tuple(decode(item, memory) for item in items)
        case "dict", dict(items):
            return {key: decode(item, memory) for key, item in items.items()}
    raise MalformedError(f"no {kind[:20]}")


def _decode_tensor(content: Any) -> torch.Tensor:
    try:
        name, shape, text = content
        dtype = DTYPES[name]
        if not isinstance(shape, list):
            raise TypeError
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
        raise MalformedError(f"a tensor of more than {MAX_BYTES // 2**10} KiB")
    if dtype is torch.bool and raw.strip(b"\0\1"):
        raise MalformedError("a truth value that is neither")
    if not raw:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(raw), dtype=dtype).reshape(shape)
