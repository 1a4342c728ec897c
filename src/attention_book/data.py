"""Toy data. Every random number of the book is drawn here, on the CPU, from a given generator."""

from __future__ import annotations

import os

import torch
from torch import Tensor

#: Where the notebooks compute: the CPU, or what ATTENTION_BOOK_DEVICE names.
device = torch.device(os.environ.get("ATTENTION_BOOK_DEVICE", "cpu"))


def normal(*shape: int, generator: torch.Generator, dtype: torch.dtype = torch.float32) -> Tensor:
    """Draw independent numbers of mean 0 and variance 1 on the CPU, then move them to `device`.

    Raises:
        ValueError: for a generator of another device, whose numbers would differ between machines.
    """
    if generator.device.type != "cpu":
        raise ValueError(f"the generator must live on the CPU, not on {generator.device}")
    return torch.randn(*shape, generator=generator, dtype=dtype).to(device)


def noisy_wave(num_points: int, *, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw places on a line and noisy heights of a wave above them: the toy regression.

    Returns:
        Places from 0 to 5, in rising order, and heights sin(2x) + x/2 plus normal noise of
        standard deviation 0.2; both (num_points,), float64, on the CPU.
    """
    places = 5 * torch.rand(num_points, generator=generator, dtype=torch.float64).sort().values
    noise = 0.2 * torch.randn(num_points, generator=generator, dtype=torch.float64)
    return places, wave(places) + noise


def wave(places: Tensor) -> Tensor:
    """The noiseless heights of `noisy_wave`."""
    return torch.sin(2 * places) + places / 2
