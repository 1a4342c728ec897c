"""Sinusoidal positions number by number, and rotations against Hugging Face's Llama."""

import hypothesis
import oracles
import pytest
import torch
from cases import close, refuses
from hypothesis import strategies as st
from torch import Tensor
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

import attention_book as book
from attention_book import ShapeError, data, sinusoidal_positions


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
        sinusoidal_positions(4, 8.0)


# Rotary positions


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("with_heads", [False, True])
def test_rotation_equals_that_of_llama_in_hugging_face(
    dtype: torch.dtype, with_heads: bool
) -> None:
    heads, length, size, offset = 3, 9, 8, 5
    generator = torch.Generator().manual_seed(0)
    x = data.normal(2, heads, length, size, generator=generator, dtype=torch.float64).to(dtype)
    config = LlamaConfig(
        hidden_size=heads * size, num_attention_heads=heads, head_dim=size, rope_theta=10000.0
    )
    places = torch.arange(offset, offset + length, device=data.device).unsqueeze(0)
    cosines, sines = LlamaRotaryEmbedding(config).to(data.device)(x, places)
    theirs, _ = apply_rotary_pos_emb(x, x, cosines, sines)
    ours = book.rotary_embedding(x, offset)
    if not with_heads:
        ours = book.rotary_embedding(x[:, 0], offset)
        theirs = theirs[:, 0]
    # Their angles are computed in float32.
    close(ours, theirs, torch.float32 if dtype == torch.float64 else dtype)


def test_rotated_dot_products_depend_on_the_distance_alone() -> None:
    generator = torch.Generator().manual_seed(0)
    query, key = (data.normal(1, 1, 8, generator=generator, dtype=torch.float64) for _ in range(2))

    def score(query_position: int, key_position: int) -> Tensor:
        rotated = book.rotary_embedding(query, query_position)
        return (rotated * book.rotary_embedding(key, key_position)).sum()

    for distance in (0, 1, 5):
        for start in (0, 3, 1000):
            close(score(start + distance, start), score(distance, 0))
    assert abs(score(3, 0) - score(0, 3)) > 1e-3  # ahead is not behind
    close(book.rotary_embedding(query).norm(), query.norm())


@pytest.mark.parametrize(
    ("call", "kind", "pieces"),
    [
        (lambda: book.rotary_embedding(torch.ones(1, 2, 3)), ShapeError, ["'size'", "even", 3]),
        (lambda: book.rotary_embedding(torch.ones(1, 2, 4), -1), ValueError, ["offset", -1]),
        (lambda: book.rotary_embedding(torch.ones(1, 2, 4), 1.5), TypeError, ["offset", "float"]),
        (lambda: book.rotary_embedding(torch.ones(1, 2, 4), base=0), ValueError, ["base", 0]),
        (lambda: book.rotary_embedding(torch.ones(2, 4)), ShapeError, ["x must have 3 or 4 axes"]),
    ],
)
def test_wrong_rotations_are_refused(call: object, kind: type, pieces: list[object]) -> None:
    with refuses(kind, "rotary_embedding", *pieces):
        call()


def test_positions_come_in_the_dtype_asked_for_and_from_an_offset() -> None:
    whole = book.sinusoidal_positions(9, 6, dtype=torch.float64)
    assert whole.dtype == torch.float64
    assert torch.equal(book.sinusoidal_positions(4, 6, offset=5, dtype=torch.float64), whole[5:])
    half = book.sinusoidal_positions(9, 6, dtype=torch.bfloat16)
    assert torch.equal(half, whole.bfloat16())
