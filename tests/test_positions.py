"""Sinusoidal positions, number by number."""

import math

import pytest
import torch
from cases import close, refuses

from attention_book import data, sinusoidal_positions


@pytest.mark.parametrize(("length", "width"), [(7, 8), (5, 11), (1, 1), (3, 2)])
def test_numbers_equal_those_of_the_formula(length: int, width: int) -> None:
    encoded = sinusoidal_positions(length, width, device=data.device)
    truth = [
        [
            (math.cos if column % 2 else math.sin)(position / 10000 ** ((column // 2 * 2) / width))
            for column in range(width)
        ]
        for position in range(length)
    ]
    assert encoded.dtype == torch.float32
    assert encoded.device.type == data.device.type
    close(encoded, torch.tensor(truth, dtype=torch.float64), torch.float32)


def test_far_positions_are_as_exact_as_near_ones() -> None:
    far = sinusoidal_positions(100_001, 4)[100_000]
    truth = [math.sin(1e5), math.cos(1e5), math.sin(1e3), math.cos(1e3)]
    close(far, torch.tensor(truth, dtype=torch.float64), torch.float32)


def test_no_two_positions_are_alike() -> None:
    encoded = sinusoidal_positions(500, 16)
    distances = torch.cdist(encoded, encoded) + 10 * torch.eye(500)
    assert distances.min() > 0.1


def test_sizes_that_are_no_positive_integers() -> None:
    with refuses(ValueError, "length", 0):
        sinusoidal_positions(0, 8)
    with refuses(ValueError, "d_model", -2):
        sinusoidal_positions(4, -2)
    with refuses(TypeError, "d_model", "float"):
        sinusoidal_positions(4, 8.0)  # type: ignore[arg-type]
