"""Toy data: the same numbers on every device, drawn from a generator that the caller gives."""

import math
import runpy

import hypothesis
import pytest
import torch
from cases import DTYPES, close, refuses, untouched
from hypothesis import strategies as st

from attention_book import data

SEEDS = st.integers(0, 2**31)


@hypothesis.given(
    shape=st.lists(st.integers(0, 6), max_size=4),  # none for a single number
    seed=SEEDS,
    dtype=st.sampled_from(DTYPES),
)
def test_numbers_depend_on_the_generator_alone(
    shape: list[int], seed: int, dtype: torch.dtype
) -> None:
    torch.manual_seed(1)
    first = data.normal(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    torch.manual_seed(2)
    second = data.normal(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    truth = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    assert torch.equal(first, second)
    assert torch.equal(first.cpu(), truth)
    assert first.dtype == dtype
    assert first.device.type == data.device.type


@hypothesis.given(num_points=st.integers(0, 40), seed=SEEDS)
def test_the_noisy_wave_lies_around_the_wave(num_points: int, seed: int) -> None:
    places, heights = (
        numbers.tolist()
        for numbers in data.noisy_wave(num_points, generator=torch.Generator().manual_seed(seed))
    )
    assert len(places) == len(heights) == num_points
    assert places == sorted(places)
    for place, height in zip(places, heights, strict=True):
        assert 0 <= place <= 5
        assert abs(height - (math.sin(2 * place) + place / 2)) < 0.2 * 7  # standard deviations


@hypothesis.given(places=st.lists(st.floats(-100, 100)))
def test_the_wave_is_that_of_the_formula(places: list[float]) -> None:
    truth = [math.sin(2 * place) + place / 2 for place in places]
    tensor = torch.tensor(places, dtype=torch.float64)
    with untouched(tensor):
        close(data.wave(tensor), torch.tensor(truth, dtype=torch.float64))


@hypothesis.given(
    words=st.lists(st.text(data.LETTERS, max_size=7), min_size=1, max_size=5),
    more=st.none() | st.integers(0, 3),
)
def test_words_are_laid_out_letter_by_letter(words: list[str], more: int | None) -> None:
    longest = max(map(len, words)) + (more or 0)
    batch = data.reversed_words(words, longest=None if more is None else longest)
    assert batch.source_lens.tolist() == list(map(len, words))
    for word, source, given, wanted in zip(
        words, *(x.tolist() for x in (batch.sources, batch.inputs, batch.outputs)), strict=True
    ):
        letters = list(map(data.LETTERS.index, word))
        padding = [data.END] * (longest - len(word))
        assert source == letters + padding
        assert given == [data.START, *letters[::-1], *padding]
        assert wanted == [*letters[::-1], data.END, *padding]
    assert {x.dtype for x in batch} == {torch.int64}
    assert {x.device.type for x in batch} == {data.device.type}


def test_words_longer_than_their_room_are_refused() -> None:
    with refuses(ValueError, "longest", 2, 3):
        data.reversed_words(["ab", "abc"], longest=2)


@hypothesis.given(num_words=st.integers(1, 8), longest=st.integers(3, 9), seed=SEEDS)
def test_drawn_words_are_short_enough_and_depend_on_the_generator_alone(
    num_words: int, longest: int, seed: int
) -> None:
    first, second = (
        data.words_to_reverse(
            num_words, longest=longest, generator=torch.Generator().manual_seed(seed)
        )
        for _ in range(2)
    )
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))
    assert first.sources.shape == (num_words, longest)
    letters = (first.sources != data.END).sum(dim=1)
    assert torch.equal(letters, first.source_lens)
    assert set(letters.tolist()) <= set(range(3, longest + 1))


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


@hypothesis.given(num_texts=st.integers(1, 5), num_orders=st.integers(1, 30), seed=SEEDS)
def test_orders_keep_the_rules_of_their_language(
    num_texts: int, num_orders: int, seed: int
) -> None:
    drawn = data.orders(num_texts, num_orders, generator=torch.Generator().manual_seed(seed))
    assert drawn.tokens.shape == (num_texts, 4 * num_orders)
    for text, known, first in zip(drawn.tokens, drawn.is_known, drawn.first, strict=True):
        words = data.decode(text).split()
        assert torch.equal(data.encode(" ".join(words))[0], text)
        ordered: dict[str, tuple[str, int]] = {}
        for i in range(num_orders):
            verb, person, thing, place = words[4 * i : 4 * i + 4]
            assert verb == "bring"
            assert place == data.PLACES[data.PEOPLE.index(person) % 2]
            assert bool(known[i]) == (person in ordered)
            ordered.setdefault(person, (thing, i))
            assert ordered[person] == (thing, int(first[i]))
        things = [thing for thing, _ in ordered.values()]
        assert len(set(things)) == len(things) <= data.MOST_PEOPLE


def test_new_people_order_as_often_as_the_language_says() -> None:
    drawn = data.orders(4000, 3, generator=torch.Generator().manual_seed(0))
    second, third = (~drawn.is_known[:, 1:]).double().mean(dim=0).tolist()
    assert not drawn.is_known[:, 0].any()
    assert second == pytest.approx(data.NEW_PERSON, abs=0.03)
    assert third == pytest.approx(data.NEW_PERSON, abs=0.03)


@pytest.mark.parametrize(("text", "words"), [("", "has no words"), ("bring ana gin", "'gin'")])
def test_a_text_out_of_the_language_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        data.encode(text)


@pytest.mark.parametrize("name", ["num_texts", "num_orders"])
def test_no_orders_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        data.orders(**{"num_texts": 2, name: 0}, generator=torch.Generator())
