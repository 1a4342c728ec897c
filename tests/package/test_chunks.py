"""What `query_chunk` saves: the hidden units of all pairs, in training as without."""

import pytest
import torch
from torch import Tensor

from attention_book import AdditiveAttention, data
from attention_book.measure import peak_bytes

BATCH, LENGTH, HIDDEN, CHUNK = 2, 96, 32, 4
ALL_UNITS = BATCH * LENGTH * LENGTH * HIDDEN * 4  # bytes of the hidden units of all pairs
SCORES = BATCH * LENGTH * LENGTH * 4


def peak(query_chunk: int | None, *, learns: bool) -> int:
    torch.manual_seed(0)
    attention = AdditiveAttention(8, 8, HIDDEN, query_chunk=query_chunk).to(data.device)
    x = data.normal(BATCH, LENGTH, 8, generator=torch.Generator().manual_seed(0))

    def step() -> Tensor | None:
        with torch.set_grad_enabled(learns):
            output = attention(x, x, x)
            return output.sum().backward() if learns else output

    return peak_bytes(step)


@pytest.mark.parametrize("learns", [False, True])
def test_chunks_bound_the_memory_of_a_call_and_of_a_training_step(learns: bool) -> None:
    """A few copies of one chunk's hidden units, and of the scores of all pairs; never all units."""
    assert peak(None, learns=learns) > 1.5 * ALL_UNITS
    bounded = peak(CHUNK, learns=learns)
    assert bounded < 6 * ALL_UNITS * CHUNK / LENGTH + 8 * SCORES < ALL_UNITS
