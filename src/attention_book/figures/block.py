"""Chapter 8: what a self-attention block notices when its tokens change places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from matplotlib.figure import Figure as Canvas
from torch import Tensor, nn

from attention_book.block import SelfAttentionBlock
from attention_book.figures.base import (
    N_,
    Figure,
    canvas_of,
    control,
    example,
    labels,
    numbers,
    rounded,
    shown,
)
from attention_book.plots import draw_weights
from attention_book.positions import sinusoidal_positions

TOKENS = ["the", "dog", "bit", "a", "man"]
RATES = [0.0, 0.1, 0.3, 0.5]
DRAWS = 200  # of the dropout, over which a change is averaged


class SeededDropout(nn.Module):
    """Dropout from a generator of its own; PyTorch's draws differ between processors."""

    def __init__(self, rate: float, seed: int) -> None:
        super().__init__()
        self.rate = rate
        self.generator = torch.Generator().manual_seed(seed)

    def forward(self, x: Tensor) -> Tensor:
        draws = torch.rand(x.shape, generator=self.generator, dtype=torch.float64)
        self.kept: Tensor = x * (draws >= self.rate) / (1 - self.rate)
        return self.kept


def toy_block(size: int) -> SelfAttentionBlock:
    """A block of one head with parameters of its own, in float64."""
    block = SelfAttentionBlock(size, 1).double().eval()
    maps = [block.query, block.key, block.value, block.dense]
    for seed, linear in enumerate(maps, start=20):
        linear.weight.data = 1.5 * example(size, size, seed=seed) / size**0.5
        linear.bias.data.zero_()
    return block


def orders_of(length: int) -> dict[str, list[int]]:
    """Named orders of the tokens: the position that each new place takes its token from."""
    places = list(range(length))
    return {
        N_("as written"): places,
        N_("first two swapped"): [1, 0, *places[2:]] if length > 1 else places,
        N_("ends swapped"): [places[-1], *places[1:-1], 0] if length > 1 else places,
        N_("reversed"): places[::-1],
        N_("shifted by one"): places[1:] + places[:1],
    }


def measure(
    block: SelfAttentionBlock, x: Tensor, order: list[int], *, positions: bool, rate: float
) -> dict[str, Any]:
    """Weights (length, length) after dropout in the new order, and how far each token's output is
    from its output in the order as written: a Euclidean distance, the mean over the draws."""
    code = sinusoidal_positions(*x.shape).double() if positions else torch.zeros_like(x)
    draws = DRAWS if rate else 1
    dropout = SeededDropout(rate, seed=8)
    block.attention.dropout = dropout  # type: ignore[assignment]
    with torch.no_grad():
        before = block((x + code).expand(draws, -1, -1))
        after = block((x[order] + code).expand(draws, -1, -1))
    change = (after - before[:, order]).norm(dim=-1).mean(dim=0)
    return {"weights": rounded(dropout.kept[0, 0]), "change": rounded(change)}


class BlockFigure(Figure):
    """Shuffle the tokens of a self-attention block, with dropout and positions to turn on.

    `x` (length, d_model) holds one vector per token and `tokens` their names; equal tokens need not
    be equal vectors. `dropout` is the rate, `positions` whether sines are added, `order` how the
    tokens stand; all follow the controls and may be set.

    Raises:
        TypeError, ValueError: for what cannot be drawn; traitlets.TraitError: for a rate or an
            order that the figure does not hold.
    """

    kind = "block"
    dropout = control(0.0, lambda figure: RATES)
    positions = control(True, lambda figure: [False, True])
    order = control("reversed", lambda figure: list(figure.data["orders"]))

    def __init__(
        self,
        x: Tensor | None = None,
        *,
        tokens: Sequence[str] | None = None,
        dropout: float = 0.0,
        positions: bool = True,
        order: str = "reversed",
    ) -> None:
        if x is None and tokens is None:
            tokens = TOKENS
        x = example(5, 8, seed=7) if x is None else x
        x = numbers("BlockFigure", "x", x, {"length": 8, "d_model": 64})
        block, orders = toy_block(x.shape[-1]), orders_of(len(x))
        seen = {
            f"{on}": {
                f"{rate:g}": {
                    name: measure(block, x, places, positions=on == "on", rate=rate)
                    for name, places in orders.items()
                }
                for rate in RATES
            }
            for on in ("off", "on")
        }
        super().__init__(
            data={
                "orders": orders,
                "rates": RATES,
                "seen": seen,
                "tokens": labels("BlockFigure", "tokens", tokens, len(x), "t", first=1),
            },
            dropout=dropout,
            positions=positions,
            order=order,
            caption="The table shows the weights in the chosen order, after one draw of dropout. "
            "The bars show how far each token's output moves from its output in the order as "
            "written, as a mean over many draws. The components of an output have variance 1.",
        )

    def _now(self) -> dict[str, Any]:
        on = "on" if self.positions else "off"
        return self.data["seen"][on][f"{self.dropout:g}"][self.order]

    def describe(self) -> str:
        change = self._now()["change"]
        most = max(range(len(change)), key=lambda place: change[place])
        dropout = f"dropout {shown(self.dropout, 1)}" if self.dropout else "no dropout"
        token = self.data["tokens"][self.data["orders"][self.order][most]]
        outcome = (
            f"the output of “{token}” changes most, by {shown(change[most])}"
            if change[most] >= 0.005
            else "no output changes"
        )
        return (
            "The weights of a block in the chosen order, and how far each token's output moves. "
            f"With the tokens {self.order}, positions {'added' if self.positions else 'off'} and "
            f"{dropout}, {outcome}."
        )

    def picture(self) -> Canvas:
        tokens = [self.data["tokens"][i] for i in self.data["orders"][self.order]]
        canvas, (left, right) = canvas_of(1, 2, (7.0, 3.0))
        weights = torch.tensor(self._now()["weights"]).clamp(max=1)
        draw_weights(weights, ax=left, queries=tokens, keys=tokens, title=self.order)
        right.bar(range(len(tokens)), self._now()["change"])
        right.set_xticks(range(len(tokens)), tokens)
        right.set(ylabel="change of the output", ylim=(0, 4), title="against the order as written")
        return canvas
