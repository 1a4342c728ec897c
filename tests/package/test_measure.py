"""Measuring: how often a function is called, and the memory that its tensors hold at the peak."""

import hypothesis
import torch
from hypothesis import strategies as st

from attention_book import data, measure


@hypothesis.given(repeats=st.integers(1, 20))
def test_times_are_taken_of_so_many_calls_after_a_first(repeats: int) -> None:
    calls = []
    assert measure.seconds(lambda: calls.append("alone"), repeats=repeats) > 0
    assert calls == ["alone"] * (repeats + 1)
    calls.clear()
    ratio = measure.ratio(
        lambda: calls.append("ours"), lambda: calls.append("peer"), repeats=repeats
    )
    assert ratio > 0
    assert calls == ["ours", "peer"] * (repeats + 1)


@hypothesis.given(
    steps=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50), st.booleans()), max_size=8)
)
def test_peak_memory_is_that_of_the_tensors_alive_at_one_time(
    steps: list[tuple[int, int, bool]],
) -> None:
    """Each step fills one of four places, so that what it held is freed, and may look at it."""
    given = torch.ones(1000, device=data.device)

    def fill() -> None:
        places: list[torch.Tensor | None] = [None] * 4
        for place, size, looks in steps:
            places[place] = None
            places[place] = torch.zeros(size, device=data.device)
            if looks:
                places[place][:1], given[:10]  # views make no numbers

    peak, held = 0, [0] * 4
    for place, size, _ in steps:
        held[place] = 0
        held[place] = 4 * size
        peak = max(peak, sum(held))
    assert measure.peak_bytes(fill) == peak


def test_a_result_is_counted_and_an_argument_is_not() -> None:
    x = torch.ones(1000, dtype=torch.float64, device=data.device)
    assert measure.peak_bytes(lambda: x + 1) == 8000
    assert measure.peak_bytes(lambda: x.add_(1)) == 0
    assert measure.peak_bytes(lambda: (x * 2) * 2) == 16000
