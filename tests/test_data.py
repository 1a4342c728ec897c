"""Toy data: the same numbers on every device, drawn from a generator that the caller gives."""

import runpy

import pytest
import torch

from attention_book import data


def test_numbers_depend_on_the_generator_alone(device: torch.device) -> None:
    torch.manual_seed(1)
    first = data.normal(2, 3, generator=torch.Generator().manual_seed(5))
    torch.manual_seed(2)
    second = data.normal(2, 3, generator=torch.Generator().manual_seed(5))
    truth = torch.randn(2, 3, generator=torch.Generator().manual_seed(5))
    assert torch.equal(first, second)
    assert torch.equal(first.cpu(), truth)
    assert first.device.type == device.type


def test_numbers_leave_the_global_generator_alone(generator: torch.Generator) -> None:
    before = torch.get_rng_state()
    data.normal(4, generator=generator)
    assert torch.equal(torch.get_rng_state(), before)


def test_numbers_have_mean_0_and_variance_1(generator: torch.Generator) -> None:
    numbers = data.normal(100_000, generator=generator, dtype=torch.float64)
    assert numbers.dtype == torch.float64
    assert abs(numbers.mean().item()) < 0.02
    assert abs(numbers.var().item() - 1) < 0.02


def test_the_device_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTENTION_BOOK_DEVICE", "meta")
    assert runpy.run_path(data.__file__)["device"] == torch.device("meta")
    monkeypatch.delenv("ATTENTION_BOOK_DEVICE")
    assert runpy.run_path(data.__file__)["device"] == torch.device("cpu")
