"""Toy data. Every random number of the book is drawn here, on the CPU, from a given generator."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attention_book.shapes import at_least
from attention_book.tokenizer import Tokenizer

#: Where the notebooks compute: the CPU, or what ATTENTION_BOOK_DEVICE names.
device = torch.device(os.environ.get("ATTENTION_BOOK_DEVICE", "cpu"))


def normal(*shape: int, generator: torch.Generator, dtype: torch.dtype = torch.float32) -> Tensor:
    """Draw independent numbers of mean 0 and variance 1 on the CPU, then move them to `device`.

    Raises:
        ValueError: for a generator of another device, whose numbers would differ between machines.
    """
    if generator.device.type != "cpu":
        raise ValueError(f"the generator must live on the CPU, not on {generator.device}")
    return torch.randn(shape, generator=generator, dtype=dtype).to(device)


def draw(weights: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Draw one index from each row of probabilities, by a random number of the CPU.

    So a generator gives the same indices wherever the probabilities are. An index of probability 0
    is never drawn.

    Args:
        weights: probabilities, (…, choices), each row with the sum 1.
        generator: of the CPU; PyTorch's own where not given.

    Returns:
        Integers, (…).

    Raises:
        ValueError: for a generator of another device.
    """
    if generator is not None and generator.device.type != "cpu":
        raise ValueError(f"the generator must live on the CPU, not on {generator.device}")
    height = torch.rand(weights.shape[:-1], generator=generator, dtype=torch.float64)
    ends = weights.double().cumsum(dim=-1)
    heights = height.to(weights.device).unsqueeze(-1) * ends[..., -1:]
    return (ends <= heights).sum(dim=-1)


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


#: The words of the orders: 16 people, 16 things to bring, and where each person always sits.
# fmt: off
PEOPLE = ["ana", "ben", "cleo", "dan", "eva", "finn", "gus", "hana",
          "ian", "jo", "kai", "lea", "mia", "noa", "otto", "pia"]
THINGS = ["tea", "milk", "figs", "rice", "soup", "nuts", "eggs", "cake",
          "corn", "beans", "peas", "plums", "bread", "juice", "fish", "pie"]
# fmt: on
PLACES = ["inside.", "outside."]
#: Every word of the language; a word's token is its place in this list.
WORDS = ["bring", *PEOPLE, *THINGS, *PLACES]
#: At most so many people order in one text, and the next order is a new person's so often.
MOST_PEOPLE = 6
NEW_PERSON = 1 / 3


class Orders(NamedTuple):
    """Texts of orders as tokens, on `device`, four to an order: "bring ana tea inside."."""

    tokens: Tensor  # (batch, 4 * orders), indices into WORDS
    is_known: Tensor  # (batch, orders), whether this person has ordered before in this text
    first: Tensor  # (batch, orders), the number of the first order of this person


def encode(text: str) -> Tensor:
    """Give the tokens of a text of one or more words, (1, length), on `device`.

    Raises:
        ValueError: for no words, and for a word that the language does not have.
    """
    words = text.split()
    if not words:
        raise ValueError("encode: the text has no words")
    unknown = [word for word in words if word not in WORDS]
    if unknown:
        raise ValueError(f"encode: {unknown[0]!r} is not a word of the language")
    return torch.tensor([[WORDS.index(word) for word in words]], device=device)


def decode(tokens: Tensor) -> str:
    """Give the text of the tokens (length)."""
    return " ".join(WORDS[i] for i in tokens.tolist())


def orders(num_texts: int, num_orders: int = 12, *, generator: torch.Generator) -> Orders:
    """Draw texts of orders, in which each person orders one thing, always the same.

    Whether a new person comes next is drawn with probability `NEW_PERSON`; the first always is
    new, and nobody is after `MOST_PEOPLE`. A new person and their thing are drawn evenly from
    those that this text does not have yet; one who comes again is drawn evenly from those that it
    has. The people of even numbers in PEOPLE sit inside, the others outside.

    Raises:
        TypeError, ValueError: for a number of texts or orders below 1.
    """
    at_least("orders", "num_texts", num_texts)
    at_least("orders", "num_orders", num_orders)
    rand = partial(torch.rand, generator=generator, dtype=torch.float32)
    who = rand(num_texts, len(PEOPLE)).argsort(dim=1)
    what = rand(num_texts, len(THINGS)).argsort(dim=1)
    coins = rand(2, num_orders, num_texts)
    num_known = torch.zeros(num_texts, dtype=torch.int64)
    picks, known = [], []
    for coin, again in zip(*coins, strict=True):
        is_new = (num_known == 0) | ((num_known < MOST_PEOPLE) & (coin < NEW_PERSON))
        picks.append(torch.where(is_new, num_known, (again * num_known).long()))
        known.append(~is_new)
        num_known = num_known + is_new
    pick = torch.stack(picks, dim=1)
    person, thing = who.gather(1, pick), what.gather(1, pick)
    words = [
        torch.zeros_like(person),
        1 + person,
        1 + len(PEOPLE) + thing,
        1 + len(PEOPLE) + len(THINGS) + person % 2,
    ]
    tokens = torch.stack(words, dim=2).flatten(1)
    first = (pick.unsqueeze(2) == pick.unsqueeze(1)).int().argmax(dim=2)
    return Orders(tokens.to(device), torch.stack(known, dim=1).to(device), first.to(device))


#: What came of ten trainings of chapter 11's model; `tools/starts.py` writes it.
STARTS = Path(__file__).with_name("starts.json")


def stored_starts() -> list[dict[str, Any]]:
    """The stored trainings of chapter 11, one from each seed: see `row` in `tools/starts.py`."""
    return json.loads(STARTS.read_text(encoding="utf-8"))


#: What came of six trainings of it that go wrong; `tools/runs.py` writes it.
RUNS = Path(__file__).with_name("runs.json")


def stored_runs() -> dict[str, dict[str, Any]]:
    """The six trainings of chapter 11 that go wrong: see `trained` in `tools/runs.py`."""
    return json.loads(RUNS.read_text(encoding="utf-8"))


#: Where stories260K is; its files, which `tools/stories.py` made, and their SHA-256.
STORIES_FOLDER = Path(__file__).with_name("stories260k")
STORIES = {
    "config.json": "b3bf85f4482513787450124ac53e5fd94213d31fbd845436c347bd0ba1c1a5fe",
    "model.safetensors": "407a7c581bdd66972383ce9ad24857713fb98786d06ea564a2fe9b34ebe77dfd",
    "tokenizer.json": "53ea0865bc2c0080a8d5b529fa2eebf918e92acf139332bc5fec641cef06cc2d",
}


class Stories(NamedTuple):
    """A published model of 260,032 parameters that writes English, and its tokens."""

    folder: Path  # for `LanguageModel.from_pretrained`, in Hugging Face's format
    encode: Callable[..., list[int]]  # (text, begin=True) -> tokens
    decode: Callable[[Sequence[int] | Tensor], str]


def stories() -> Stories:
    """Find stories260K in the package: nothing is downloaded.

    Raises:
        FileNotFoundError: if one of its files is missing.
        ValueError: if one is not the published one, by its checksum.

    Source: https://huggingface.co/karpathy/tinyllamas, stories260K, MIT licence; trained on the
    stories of Eldan and Li (2023).
    """
    contents = {}
    for name, checksum in STORIES.items():
        file = STORIES_FOLDER / name
        if not file.is_file():
            raise FileNotFoundError(f"stories: {file} is missing; install the package again")
        contents[name] = file.read_bytes()
        if hashlib.sha256(contents[name]).hexdigest() != checksum:
            raise ValueError(
                f"stories: {file} is not the published file, because its checksum differs; "
                "install the package again"
            )
    tokenizer = Tokenizer(json.loads(contents["tokenizer.json"])["model"])
    return Stories(STORIES_FOLDER, tokenizer.encode, tokenizer.decode)
