"""Shared set-up: the device, the number of generated examples, and sizes no two of which agree."""

import os
from types import SimpleNamespace

import pytest
import torch
from hypothesis import HealthCheck, settings

from attention_book import data

# The same examples on every run, so that a red test is red for everyone: a few of each property, or
# many with HYPOTHESIS_PROFILE=deep. A busy machine is no reason to fail.
for profile, max_examples in [("book", 40), ("deep", 10_000)]:
    settings.register_profile(
        profile,
        derandomize=True,
        deadline=None,
        max_examples=max_examples,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "book"))

# The checks of the exercises answer in English here, whatever the language of the machine.
os.environ["ATTENTION_BOOK_LANGUAGE"] = "en"

# On tensors of a few numbers threads only wait for each other, and pytest runs in parallel.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def device() -> torch.device:
    """Where the package computes in this run: the CPU, or what ATTENTION_BOOK_DEVICE names."""
    return data.device


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.fixture(scope="session")
def sizes() -> SimpleNamespace:
    """Every dimension its own prime, so that no two can be mistaken for each other."""
    return SimpleNamespace(
        batch=3,
        heads=2,
        queries=5,
        keys=7,
        size=11,
        query_size=13,
        key_size=17,
        value_size=19,
        hidden=23,
        d_k=29,
        d_v=31,
        d_model=37,
    )
