"""Positional encodings: what tells attention the order of a sequence."""

from __future__ import annotations

import torch
from torch import Tensor

from attention_book.shapes import positive


def sinusoidal_positions(
    length: int, d_model: int, *, device: torch.device | str | None = None
) -> Tensor:
    """Encode each position by sines (even columns) and cosines (odd columns) of falling frequency.

    Column 2i is sin(position / 10000^(2i/d_model)), column 2i + 1 its cosine.

    Returns:
        Numbers from −1 to 1, (length, d_model), float32.

    Raises:
        TypeError, ValueError: for a length below 0 or a width below 1.

    Source: Vaswani et al. (2017), section 3.5.
    """
    positions = torch.arange(
        positive("length", length, least=0), dtype=torch.float64, device=device
    )
    columns = torch.arange(positive("d_model", d_model), dtype=torch.float64, device=device)
    wavelengths = 10000.0 ** ((columns - columns % 2) / d_model)
    angles = positions[:, None] / wavelengths
    return torch.where(columns % 2 == 0, angles.sin(), angles.cos()).float()
