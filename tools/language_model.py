"""Train the model of chapter 11's figure and store it: `python tools/language_model.py`, a minute.

The package's figure and its tests use the stored parameters, since training on another processor
differs in the last bits. The model is the one that the chapter trains.
"""

from __future__ import annotations

import json
from typing import Any

import starts
import torch

from attention_book import LanguageModel
from attention_book.data import WORDS
from attention_book.figures.base import HERE
from attention_book.figures.language_model import packed

#: The start that the chapter trains, and the length of its texts.
SEED, LENGTH = 2, 48
#: What the figure opens with. The last name was mentioned before, with this thing.
PROMPT = "bring mia pie inside. bring ian plums inside. bring lea fish outside. bring mia"
WANTED = "pie"


def trained(num_steps: int = starts.STEPS) -> LanguageModel:
    """The language model of the chapter, which has learned to continue orders."""
    return starts.trained(SEED, num_steps=num_steps)[0]


@torch.no_grad()
def head_that_looks_back(model: LanguageModel) -> list[int]:
    """The head of layer 0 that gives the word before most weight, from a thing to its person."""
    tokens = starts.unseen().tokens
    model(tokens)
    attention: Any = model.layers[0].self_attention
    things = torch.arange(2, tokens.shape[1], 4)
    weights = attention.attention_weights[:, :, things, things - 1].mean(dim=(0, 2))
    return [0, int(weights.argmax())]


def main() -> None:
    model = trained()
    data = packed(model, WORDS, longest=LENGTH)
    more = {"prompt": PROMPT, "wanted": WANTED, "back": head_that_looks_back(model)}
    text = json.dumps({**more, **data}, indent=1, ensure_ascii=False)
    (HERE / "language_model.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
