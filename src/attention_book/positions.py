"""Positions: what tells attention the order of a sequence."""

from __future__ import annotations

import torch
from torch import Tensor

from attention_book.shapes import ShapeError, at_least, checked, number


def sinusoidal_positions(
    length: int,
    d_model: int,
    *,
    offset: int = 0,
    device: torch.device | str | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Encode each position by sines (even columns) and cosines (odd columns) of falling frequency.

    Column 2i is sin(position / 10000^(2i/d_model)), column 2i + 1 its cosine. The first position
    is `offset`.

    Returns:
        Numbers from −1 to 1, (length, d_model).

    Raises:
        TypeError, ValueError: for a length or an offset below 0, or a d_model below 1.

    Source: Vaswani et al. (2017), section 3.5.
    """
    owner = "sinusoidal_positions"
    at_least(owner, "length", length, least=0)
    at_least(owner, "d_model", d_model)
    at_least(owner, "offset", offset, least=0)
    positions = torch.arange(length, dtype=torch.float64, device=device) + offset
    columns = torch.arange(d_model, dtype=torch.float64, device=device)
    wavelengths = 10000.0 ** ((columns - columns % 2) / d_model)
    angles = positions.unsqueeze(-1) / wavelengths
    return torch.where(columns % 2 == 0, angles.sin(), angles.cos()).to(dtype)


@checked
def rotary_embedding(x: Tensor, offset: int = 0, base: float = 10000.0) -> Tensor:
    """Rotate each position's vector by its position, so that dot products depend on distances.

    Feature i and feature i + size/2 are a point in a plane, which position p turns by the angle
    p / base^(2i/size). Apply it to queries and keys, not to values. `offset` is the first position.

    Shapes:
        x        (batch, length, size) or (batch, heads, length, size)
        angles   (length, half)
        cosines  (length, half)
        sines    (length, half)
        first    (batch, length, half) or (batch, heads, length, half)
        second   (batch, length, half) or (batch, heads, length, half)
        returns  (batch, length, size) or (batch, heads, length, size)

    Raises:
        ShapeError: for an odd size.
        TypeError, ValueError: for an offset below 0 or a base that is not a number above 0.

    Source: Su et al. (2021), section 3.4.2; the pairing of features is that of Llama in Hugging
    Face's transformers.
    """
    owner = "rotary_embedding"
    length, size = x.shape[-2:]
    if size % 2:
        raise ShapeError(f"{owner}: 'size' must be even, to pair its features, but is {size} in x")
    at_least(owner, "offset", offset, least=0)
    if number(owner, "base", base) <= 0:
        raise ValueError(f"{owner}: base must be above 0, but is {base}")
    half = size // 2
    exponents = torch.arange(half, dtype=torch.float64, device=x.device) / max(half, 1)
    positions = torch.arange(length, dtype=torch.float64, device=x.device) + offset
    angles = positions.unsqueeze(-1) / base**exponents
    cosines, sines = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x.tensor_split(2, dim=-1)
    return torch.cat([first * cosines - second * sines, second * cosines + first * sines], dim=-1)
