"""How the parameters of a model travel to a page: in 8 bits per component of a matrix, or in 16."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


def packed(owner: str, model: nn.Module, most: int) -> dict[str, Any]:
    """A model's parameters as the page takes them: 8 bits per component of a matrix, 32 per other.

    Each row of a matrix is stored as integers from −127 to 127 and one scale, so rounding changes a
    component by at most half a scale. `parameters` contains, in base64, first the vectors and
    scales (float32), then the integers, both in the order of `layout`: name, rows and columns,
    where a vector has 0 columns.

    Raises:
        ValueError: for more than `most` parameters, and for parameters that are NaN or infinite.
    """
    tensors = {name: part.detach().cpu() for name, part in model.state_dict().items()}
    number = sum(part.numel() for part in tensors.values())
    if number > most:
        raise ValueError(_too_many(owner, number, most))
    if not all(part.isfinite().all() for part in tensors.values()):
        raise ValueError(f"{owner}: the model has parameters that are NaN or infinite")
    layout, numbers, integers = [], [], []
    for name, part in tensors.items():
        layout.append([name, len(part), part.shape[1] if part.dim() == 2 else 0])
        if part.dim() == 2:
            scales = part.abs().amax(dim=1, keepdim=True).double().clamp(min=1e-30) / 127
            scales = scales.float()
            integers.append((part.double() / scales.double()).round().to(torch.int8))
            numbers.append(scales)
        else:
            numbers.append(part.float())
    stored = torch.cat([part.flatten() for part in numbers]).numpy().astype("<f4").tobytes()
    stored += torch.cat([part.flatten() for part in integers]).numpy().tobytes()
    return {"layout": layout, "parameters": base64.b64encode(stored).decode()}


def halves(owner: str, tensors: Mapping[str, np.ndarray], most: int) -> dict[str, Any]:
    """Parameters by name as a page takes them in 16 bits: `halves` contains, in base64, the float16
    numbers in the order of `layout`: name, rows and columns, where a vector has 0 columns.

    Raises:
        ValueError: for more than `most` parameters, and for parameters that are NaN, infinite or
            too large for 16 bits.
    """
    number = sum(part.size for part in tensors.values())
    if number > most:
        raise ValueError(_too_many(owner, number, most))
    with np.errstate(over="ignore"):
        parts = [part.astype("<f2") for part in tensors.values()]
    if not all(np.isfinite(part).all() for part in parts):
        raise ValueError(
            f"{owner}: the model has parameters that are NaN, infinite or above 65,504"
        )
    layout = [
        [name, len(part), part.shape[1] if part.ndim == 2 else 0] for name, part in tensors.items()
    ]
    stored = b"".join(part.tobytes() for part in parts)
    return {"layout": layout, "halves": base64.b64encode(stored).decode()}


def _too_many(owner: str, number: int, most: int) -> str:
    return (
        f"{owner}: the model has {number:,} parameters, more than the {most:,} that a page can hold"
    )


def unpacked(data: Mapping[str, Any]) -> dict[str, Tensor]:
    """The rounded parameters by name, in float64, as the page unpacks them."""
    stored = bytearray(base64.b64decode(data["parameters"]))
    num_floats = sum(rows for _, rows, _ in data["layout"])
    floats = torch.frombuffer(stored, dtype=torch.float32, count=num_floats).double()
    integers = torch.frombuffer(stored, dtype=torch.int8, offset=4 * num_floats).double()
    tensors: dict[str, Tensor] = {}
    first_float = first_integer = 0
    for name, rows, columns in data["layout"]:
        tensors[name] = floats[first_float : first_float + rows]
        first_float += rows
        if columns:
            part = integers[first_integer : first_integer + rows * columns]
            first_integer += rows * columns
            tensors[name] = part.reshape(rows, columns) * tensors[name].unsqueeze(1)
    return tensors
