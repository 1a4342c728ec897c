"""Positions: what tells attention the order of a sequence."""

from __future__ import annotations

import math
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Llama3Scaling:
    """How Llama 3.1 slows down its rotations, so that longer texts stay within angles it has met.

    A pair of features that turns less than `low_freq_factor` times in the original length turns
    `factor` times more slowly, one that turns more than `high_freq_factor` times as before; between
    the two it is interpolated.

    Source: rope_type "llama3" in Hugging Face's transformers.
    """

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_length: int

    def __call__(self, frequencies: Tensor) -> Tensor:
        """The slower frequencies, in radians per position."""
        turns = self.original_length * frequencies / (2 * math.pi)
        low, high = self.low_freq_factor, self.high_freq_factor
        kept = ((turns - low) / (high - low)).clamp(0, 1)
        return frequencies * (kept + (1 - kept) / self.factor)


@checked
def rotary_embedding(
    x: Tensor, offset: int = 0, base: float = 10000.0, *, scaling: Llama3Scaling | None = None
) -> Tensor:
    """Rotate each position's vector by its position, so that dot products depend on distances.

    Feature i and feature i + size/2 are a point in a plane, which position p turns by the angle
    p / base^(2i/size). Apply it to queries and keys, not to values. `offset` is the first position;
    `scaling` changes the frequencies 1 / base^(2i/size).

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
    if not number(owner, "base", base) > 0:  # which refuses NaN, too
        raise ValueError(f"{owner}: base must be above 0, but is {base}")
    exponents = torch.arange(0, size, 2, dtype=torch.float64, device=x.device) / max(size, 1)
    frequencies = base**-exponents
    if scaling is not None:
        frequencies = scaling(frequencies)
    positions = torch.arange(offset, offset + length, dtype=torch.float64, device=x.device)
    angles = torch.outer(positions, frequencies)
    cosines, sines = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cosines - second * sines, second * cosines + first * sines], dim=-1)
