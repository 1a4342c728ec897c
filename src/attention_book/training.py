"""The training loop of the book's two models, and the loss of each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm import tqdm  # type: ignore[import-untyped]

from attention_book.data import Orders, Words
from attention_book.language_model import LanguageModel
from attention_book.shapes import at_least
from attention_book.transformer import Transformer

Model = TypeVar("Model", bound=nn.Module)
Batch = TypeVar("Batch")


def next_token_loss(model: Transformer, words: Words) -> Tensor:
    """The mean cross-entropy of the next token, in nats, over all targets that are not padding."""
    logits = model(words.sources, words.inputs, words.source_lens, words.target_lens)
    positions = torch.arange(words.outputs.shape[1], device=words.outputs.device)
    is_word = positions < words.target_lens.unsqueeze(1)
    return F.cross_entropy(logits[is_word], words.outputs[is_word])


def continuation_loss(model: LanguageModel, orders: Orders) -> Tensor:
    """The mean cross-entropy of each token of the texts but the first, in nats."""
    logits = model(orders.tokens[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), orders.tokens[:, 1:].flatten())


@contextmanager
def in_float64() -> Iterator[None]:
    """Within, PyTorch makes float64 where no other dtype is named: `with in_float64(): model = …`.

    A model that is drawn so, and not drawn in float32 and converted, starts with the same
    parameters on each processor but for the last of 16 digits, and a training that does not
    magnify this too much ends with the same printed numbers.
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def train(
    model: Model,
    draw: Callable[[], Batch],
    num_steps: int,
    *,
    loss: Callable[[Model, Batch], Tensor] = next_token_loss,  # type: ignore[assignment]
    learning_rate: float = 0.01,
    warm_up: int = 50,
    eps: float = 1e-3,
) -> list[float]:
    """Fit the model to `num_steps` drawn batches with Adam, and return the loss of each step.

    The learning rate rises over `warm_up` steps and then falls to 0. A bar shows how far it is
    wherever someone may be watching, and is gone at the end.

    Args:
        draw: called before each step, for its batch.
        loss: of the model and a batch: `next_token_loss` of an encoder–decoder, or
            `continuation_loss` of a language model.
        eps: what Adam adds to its denominator.

    Raises:
        TypeError, ValueError: for a number of steps below 1, in all or to warm up.
    """
    at_least("train", "num_steps", num_steps)
    at_least("train", "warm_up", warm_up)
    # ε keeps rounding noise from being divided by almost nothing: with the default, 1e-8, two
    # processors that round differently can part ways within a few hundred steps.
    optimiser = torch.optim.Adam(
        model.parameters(), lr=learning_rate, betas=(0.9, 0.98), eps=eps, fused=True
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / warm_up, 1.0) * (1 - step / num_steps)
    )
    losses = []
    model.train()
    for _ in tqdm(range(num_steps), desc="training", leave=False, disable=not _is_watched()):
        step_loss = loss(model, draw())
        optimiser.zero_grad()
        step_loss.backward()
        optimiser.step()
        schedule.step()
        losses.append(step_loss.detach())
    model.eval()
    return torch.stack(losses).tolist()


def _is_watched() -> bool:
    """Whether a terminal, or a notebook that names the cell it runs, as programs do not."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return sys.stderr.isatty()
    return "cellId" in kernel.get_parent().get("metadata", {})
