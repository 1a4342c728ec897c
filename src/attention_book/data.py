"""Toy data. Every random number of the book is drawn here, on the CPU, from a given generator."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

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


#: The tokens of the words to reverse: 26 letters, the start of a target, and the end and padding.
LETTERS = "abcdefghijklmnopqrstuvwxyz"
START, END = 26, 27


class Words(NamedTuple):
    """Words as tokens, on `device`: what an encoder–decoder reads, and what it is to write."""

    sources: Tensor  # (batch, keys), the letters
    inputs: Tensor  # (batch, queries), START and the letters in reverse
    outputs: Tensor  # (batch, queries), the letters in reverse and END
    source_lens: Tensor  # (batch), letters of each word
    target_lens: Tensor  # (batch), tokens of each target: the letters and END


def reversed_words(words: Sequence[str], *, longest: int | None = None) -> Words:
    """Lay out words of the letters a to z, padded to the longest, or to so many letters.

    Raises:
        ValueError: for no words, and for words that are longer than that.
    """
    if not words:
        raise ValueError("words must hold at least one word")
    lens = torch.tensor([len(word) for word in words])
    most = int(lens.max())
    longest = most if longest is None else longest
    if most > longest:
        raise ValueError(f"longest is {longest}, but a word has {most} letters")
    letters = [[LETTERS.index(letter) for letter in word] for word in words]
    padded = [row + [END] * (longest - len(row)) for row in letters]
    sources = torch.tensor(padded, dtype=torch.int64)  # said, because empty words hold no integer
    backwards = torch.tensor([row[::-1] + [END] * (longest + 1 - len(row)) for row in letters])
    inputs = torch.cat([torch.full((len(words), 1), START), backwards[:, :-1]], dim=1)
    return Words(*(x.to(device) for x in (sources, inputs, backwards, lens, lens + 1)))


def words_to_reverse(
    num_words: int, *, shortest: int = 3, longest: int = 6, generator: torch.Generator
) -> Words:
    """Draw words of `shortest` to `longest` random letters, with their reversals."""
    lens = torch.randint(shortest, longest + 1, (num_words,), generator=generator)
    letters = torch.randint(26, (num_words, longest), generator=generator)
    pairs = zip(letters.tolist(), lens.tolist(), strict=True)
    words = ["".join(LETTERS[i] for i in row[:n]) for row, n in pairs]
    return reversed_words(words, longest=longest)
