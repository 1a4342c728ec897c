"""The training loop of the small encoder–decoder."""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F
from tqdm import tqdm  # type: ignore[import-untyped]

from attention_book.data import Words
from attention_book.shapes import at_least
from attention_book.transformer import Transformer


def next_token_loss(model: Transformer, words: Words) -> Tensor:
    """The mean cross-entropy of the next token, in nats, over all targets that are not padding."""
    logits = model(words.sources, words.inputs, words.source_lens, words.target_lens)
    positions = torch.arange(words.outputs.shape[1], device=words.outputs.device)
    is_word = positions < words.target_lens.unsqueeze(1)
    return F.cross_entropy(logits[is_word], words.outputs[is_word])


def train(
    model: Transformer,
    draw: Callable[[], Words],
    num_steps: int,
    *,
    learning_rate: float = 0.01,
    warm_up: int = 50,
) -> list[float]:
    """Fit the model to `num_steps` drawn batches with Adam, and return the loss of each step.

    The learning rate rises over `warm_up` steps and then falls to 0. A bar shows how far it is
    wherever someone may be watching, and is gone at the end.

    Raises:
        TypeError, ValueError: for a number of steps below 1, in all or to warm up.
    """
    at_least("train", "num_steps", num_steps)
    at_least("train", "warm_up", warm_up)
    # ε keeps rounding noise from being divided by almost nothing: with the default, 1e-8, two
    # processors that round differently would part ways within a few hundred steps.
    optimiser = torch.optim.Adam(
        model.parameters(), lr=learning_rate, betas=(0.9, 0.98), eps=1e-3, fused=True
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / warm_up, 1.0) * (1 - step / num_steps)
    )
    losses = []
    model.train()
    for _ in tqdm(range(num_steps), desc="training", leave=False, disable=not _is_watched()):
        loss = next_token_loss(model, draw())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        losses.append(loss.detach())
    model.eval()
    return torch.stack(losses).tolist()


def _is_watched() -> bool:
    """Whether a terminal, or a notebook that names the cell it runs, as programs do not."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return sys.stderr.isatty()
    return "cellId" in kernel.get_parent().get("metadata", {})
