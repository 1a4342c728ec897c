"""Chapter 8: what a self-attention block notices when its tokens change places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
import traitlets
from matplotlib.figure import Figure as Canvas
from torch import Tensor, nn

from attention_book.block import SelfAttentionBlock
from attention_book.figures.base import (
    Figure,
    RefusedError,
    canvas_of,
    control,
    example,
    labels,
    listed,
    numbers,
    rounded,
    shown,
)
from attention_book.language import N_, say
from attention_book.plots import draw_weights
from attention_book.positions import sinusoidal_positions

TOKENS = ["the", "dog", "bit", "a", "man"]
RATES = [0.0, 0.1, 0.3, 0.5]
DRAWS = 12  # of the dropout, one after another
DECIMALS = 9  # of what the page computes with


class GivenDropout(nn.Module):
    """Dropout that keeps the weights whose number in `draws` (length, length) reaches `rate`."""

    def __init__(self, draws: Tensor, rate: float) -> None:
        super().__init__()
        self.draws, self.rate = draws, rate

    def forward(self, x: Tensor) -> Tensor:
        self.kept: Tensor = x * (self.draws >= self.rate) / (1 - self.rate)
        return self.kept


def toy_block(size: int) -> SelfAttentionBlock:
    """A block of one head with parameters of its own, in float64."""
    block = SelfAttentionBlock(size, 1).double().eval()
    maps = [block.query, block.key, block.value, block.dense]
    for seed, linear in enumerate(maps, start=20):
        linear.weight.data = 1.5 * example(size, size, seed=seed) / size**0.5
        linear.bias.data.zero_()
    return block.requires_grad_(requires_grad=False)


def orders_of(length: int) -> dict[str, list[int]]:
    """Named orders of the tokens: the position that each new place takes its token from."""
    places = list(range(length))
    return {
        N_("as written"): places,
        N_("first two swapped"): [1, 0, *places[2:]] if length > 1 else places,
        N_("reversed"): places[::-1],
        N_("shifted by one"): places[1:] + places[:1],
    }


def parts_of(block: SelfAttentionBlock, x: Tensor, code: Tensor) -> dict[str, Any]:
    """What a page needs to run the block in any order. A query is W(x + code), so each score is the
    sum of four, and each value the sum of two: by the token or the place that asks and answers."""
    given = {"x": x, "code": code}
    queries = {name: block.query(each) for name, each in given.items()}
    keys = {name: block.key(each) for name, each in given.items()}
    return {
        "scores": [
            [rounded(queries[a] @ keys[b].T / x.shape[-1] ** 0.5, DECIMALS) for b in given]
            for a in given
        ],
        "updates": [rounded(block.dense(block.value(each)), DECIMALS) for each in given.values()],
    }


class Order(traitlets.TraitType[Any, Any]):
    """The places that the tokens are taken from, from 0, or one of the figure's named orders."""

    def validate(self, obj: Any, value: Any) -> list[int]:
        orders = obj.data.get("orders", {})
        if isinstance(value, str) and value in orders:
            return orders[value]
        places = listed(value)
        if not obj.has_data or (
            isinstance(places, list)
            and all(type(place) is int for place in places)
            and sorted(places) == orders["as written"]
        ):
            return places
        raise RefusedError(
            f"{type(obj).__name__}: order must be one of {list(orders)} or a list of the places "
            f"0 to {len(obj.data['tokens']) - 1}, but is {value!r}"
        )


class BlockFigure(Figure):
    """Put the tokens of a self-attention block in any order, with dropout and positions to turn on.

    `x` (length, d_model) holds one vector per token and `tokens` their names; equal tokens need not
    be equal vectors. `order` is the name of an order or a list of the places that the tokens are
    taken from; `positions` is whether sines are added, `dropout` the rate and `draw` which of the
    stored draws of dropout is used. All follow the controls and may be set.

    Raises:
        TypeError, ValueError: for what cannot be drawn; traitlets.TraitError: for a rate, a draw or
            an order that the figure does not hold.
    """

    kind = "block"
    order = Order([]).tag(sync=True)
    positions = control(False, {False: N_("off"), True: N_("added")}, N_("Positions:"))
    dropout = control(0.0, RATES, N_("dropout rate"))
    draw = control(0, range(DRAWS))
    phrases: ClassVar = {
        "dropout": N_("dropout {0} (draw {1})"),
        "no dropout": N_("no dropout"),
        "changes": N_(
            "In the order “{0}”, with positions {1} and {2}, the output of “{3}” changes most, by "
            "{4}."
        ),
        "moved": N_(
            "In the order “{0}”, with positions {1} and {2}, each output moves along with its "
            "word, and its numbers stay as they are."
        ),
        "nothing changes": N_("In the order “{0}”, with positions {1} and {2}, no output changes."),
    }

    def __init__(
        self,
        x: Tensor | None = None,
        *,
        tokens: Sequence[str] | None = None,
        dropout: float = 0.0,
        positions: bool = False,
        order: str | Sequence[int] = "as written",
        draw: int = 0,
    ) -> None:
        if x is None and tokens is None:
            tokens = TOKENS
        x = example(5, 8, seed=7) if x is None else x
        x = numbers("BlockFigure", "x", x, {"length": 8, "d_model": 64})
        code = sinusoidal_positions(*x.shape).double()
        generator = torch.Generator().manual_seed(8)
        draws = torch.rand(DRAWS, len(x), len(x), generator=generator, dtype=torch.float64)
        super().__init__(
            data={
                "orders": orders_of(len(x)),
                "rates": RATES,
                "draws": rounded(draws, 3),
                "x": rounded(x, DECIMALS),
                "code": rounded(code, DECIMALS),
                **parts_of(toy_block(x.shape[-1]), x, code),
                "tokens": labels("BlockFigure", "tokens", tokens, len(x), "t", first=1),
            },
            dropout=dropout,
            positions=positions,
            order=order,
            draw=draw,
            caption="Drag a word to another place. Each thread leads from an output to a word that "
            "it reads, and is as wide as the weight, after dropout. Below each output stands the "
            "same word's output in the order as written, without dropout, and how far the two are "
            "apart; the marks between the two show which components differ, the stronger the more. "
            "The components of an output have variance 1.",
        )

    def outputs(self, order: list[int], rate: float) -> tuple[Tensor, Tensor]:
        """Weights (length, length) after dropout and outputs (length, d_model) in an order."""
        x, code, draws = (
            torch.tensor(self.data[name], dtype=torch.float64) for name in ("x", "code", "draws")
        )
        block = toy_block(x.shape[-1])
        dropout = block.attention.dropout = GivenDropout(draws[self.draw], rate)  # type: ignore[assignment]
        outputs = block((x[order] + self.positions * code)[None])[0]
        return dropout.kept[0, 0], outputs

    def changes(self) -> list[float]:
        """How far the output at each place is from its token's output in the order as written."""
        _, now = self.outputs(self.order, self.dropout)
        _, before = self.outputs(self.data["orders"]["as written"], 0.0)
        distances: list[float] = (now - before[self.order]).norm(dim=-1).tolist()
        return distances

    def _words(self) -> list[str]:
        return [self.data["tokens"][place] for place in self.order]

    def describe(self) -> str:
        change, words = self.changes(), self._words()
        most = max(range(len(change)), key=lambda place: change[place])
        dropout = self.phrase("no dropout")
        if self.dropout:
            dropout = self.phrase("dropout", shown(self.dropout, 1), self.draw + 1)
        state = " ".join(words), "added" if self.positions else "off", dropout
        told = self.phrase(
            "moved" if self.order != sorted(self.order) else "nothing changes", *state
        )
        if change[most] >= 0.005:
            told = self.phrase("changes", *state, words[most], shown(change[most]))
        return f"What each word of a block reads and returns, and how far its output moves. {told}"

    def picture(self) -> Canvas:
        words = self._words()
        canvas, (left, right) = canvas_of(1, 2, (7.0, 3.0))
        weights, _ = self.outputs(self.order, self.dropout)
        draw_weights(weights.clamp(max=1), ax=left, queries=words, keys=words, title=say("weights"))
        right.bar(range(len(words)), self.changes())
        right.set_xticks(range(len(words)), words)
        right.set(ylabel=say("change of the output"), ylim=(0, 4))
        right.set_title(say("against the order as written"))
        return canvas
