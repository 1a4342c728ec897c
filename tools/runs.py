"""Train chapter 11's model six times with something wrong: `python tools/runs.py`, six minutes.

The chapter shows the curves from the stored file: which is which? All begin with the parameters and
the texts of the start that the chapter trains itself, in 32 bits, and differ in one thing each.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from starts import STEPS, new_model, unseen
from torch import Tensor
from torch.nn import functional as F

from attention_book import LanguageModel, MultiHeadAttention, data, train
from attention_book.training import continuation_loss, in_float64

SEED, MEAN_OF = 2, 10  #: one number is stored for so many steps, their mean
TOO_HIGH = 0.1  #: in place of 0.003
FIXED = 200  #: so many texts to learn by heart
PADDING = len(data.WORDS)
Loss = Callable[[LanguageModel, data.Orders], Tensor]


class SeesAll(MultiHeadAttention):
    """An attention that forgets the causal mask."""

    def forward(self, *args: Tensor, causal: bool = False, **kwargs: Any) -> Tensor:
        return super().forward(*args, **kwargs)


class Run(NamedTuple):
    """A training; what is not given is as in the chapter."""

    model: LanguageModel
    loss: Loss = continuation_loss
    rate: float = 0.003
    padded: bool = False
    fixed: bool = False


def leaking() -> LanguageModel:
    model = new_model(SEED)
    for layer in model.layers:
        layer.self_attention.__class__ = SeesAll
    return model


def with_padding() -> LanguageModel:
    """The model with one more token."""
    torch.manual_seed(SEED)
    with in_float64():
        return LanguageModel(len(data.WORDS) + 1, 64, 4, 128, 2, num_kv_heads=2)


def unshifted_loss(model: LanguageModel, texts: data.Orders) -> Tensor:
    """The loss of each word at its own place, which the model has read."""
    return F.cross_entropy(model(texts.tokens).flatten(0, 1), texts.tokens.flatten())


def padded(texts: data.Orders, generator: torch.Generator) -> data.Orders:
    """The same texts, cut after 2 to 12 orders and filled up with padding."""
    num_texts, length = texts.tokens.shape
    lens = 4 * torch.randint(2, length // 4 + 1, (num_texts, 1), generator=generator)
    is_word = (torch.arange(length) < lens).to(texts.tokens.device)
    return texts._replace(tokens=texts.tokens.where(is_word, PADDING))


def runs() -> dict[str, Run]:
    """The six that go wrong."""
    return {
        "rate": Run(new_model(SEED), rate=TOO_HIGH),
        "leak": Run(leaking()),
        "unshifted": Run(new_model(SEED), loss=unshifted_loss),
        "padding": Run(with_padding(), padded=True),
        "fixed": Run(new_model(SEED), fixed=True),
        "one layer": Run(new_model(SEED, num_layers=1)),
    }


def share_found(model: LanguageModel, texts: data.Orders) -> float:
    """The share of known things that the model names if it has nothing but the words before."""
    right = []
    with torch.no_grad():
        for order in range(1, texts.is_known.shape[1]):
            name = 4 * order + 1
            named = model(texts.tokens[:, : name + 1])[:, -1].argmax(dim=-1)
            found = named == texts.tokens[:, name + 1]
            right.append(found[texts.is_known[:, order]])
    return torch.cat(right).double().mean().item()


def draw_of(run: Run) -> Callable[[], data.Orders]:
    """What draws the batches of a run."""
    batches, lengths = (torch.Generator().manual_seed(SEED) for _ in range(2))
    store = data.orders(FIXED, generator=batches) if run.fixed else None

    def draw() -> data.Orders:
        if store is not None:
            which = torch.randint(FIXED, (32,), generator=batches)
            return data.Orders(*(part[which] for part in store))
        texts = data.orders(32, generator=batches)
        return padded(texts, lengths) if run.padded else texts

    return draw


def trained(run: Run) -> dict[str, Any]:
    """What is stored: the first loss and the means; the loss on new texts; what is found there."""
    model, new = run.model.float(), unseen()
    losses = train(model, draw_of(run), STEPS, loss=run.loss, learning_rate=run.rate, eps=1e-8)
    means = torch.tensor(losses).view(-1, MEAN_OF).mean(dim=1)
    with torch.no_grad():
        lengths = torch.Generator().manual_seed(SEED)
        on_new = run.loss(model, padded(new, lengths) if run.padded else new).item()
    return {
        "losses": [round(loss, 3) for loss in (losses[0], *means.tolist())],
        "on_new": round(on_new, 3),
        "found": round(share_found(model, new), 3),
    }


def main() -> None:
    torch.set_num_threads(1)
    stored = {}
    for name, run in runs().items():
        stored[name] = trained(run)
        print(name, stored[name], flush=True)
    data.RUNS.write_text(json.dumps(stored) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
