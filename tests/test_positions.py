"""Sinusoidal positions, number by number."""

import hypothesis
import oracles
import pytest
import torch
from cases import close, refuses
from hypothesis import strategies as st

from attention_book import data, sinusoidal_positions


@hypothesis.given(length=st.integers(0, 12), width=st.integers(1, 12))
def test_numbers_equal_those_of_the_formula(length: int, width: int) -> None:
    encoded = sinusoidal_positions(length, width, device=data.device)
    truth = [
        [oracles.position(place, column, width) for column in range(width)]
        for place in range(length)
    ]
    assert encoded.dtype == torch.float32
    assert encoded.device.type == data.device.type
    close(encoded, torch.tensor(truth, dtype=torch.float64).view(length, width), torch.float32)


@pytest.mark.parametrize("width", [4, 6])
def test_far_positions_are_as_exact_as_near_ones(width: int) -> None:
    far = sinusoidal_positions(100_001, width)[100_000]
    truth = [oracles.position(100_000, column, width) for column in range(width)]
    close(far, torch.tensor(truth, dtype=torch.float64), torch.float32)


def test_no_two_positions_are_alike() -> None:
    encoded = sinusoidal_positions(500, 16)
    distances = torch.cdist(encoded, encoded) + 10 * torch.eye(500)
    assert distances.min() > 0.1


def test_sizes_out_of_range() -> None:
    with refuses(ValueError, "length", -1):
        sinusoidal_positions(-1, 8)
    with refuses(ValueError, "d_model", -2):
        sinusoidal_positions(4, -2)
    with refuses(TypeError, "d_model", "float"):
        sinusoidal_positions(4, 8.0)  # type: ignore[arg-type]
