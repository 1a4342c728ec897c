"""Chapter 7: the maps of trained heads, one head or several, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar

import torch
import traitlets
from matplotlib.figure import Figure as Canvas
from torch import Tensor

from attention_book.figures.base import (
    Count,
    Figure,
    canvas_of,
    control,
    labels,
    numbers,
    rounded,
    shown,
)
from attention_book.language import N_, say
from attention_book.multihead import MultiHeadAttention
from attention_book.plots import STYLE, draw_weights
from attention_book.training import in_float64

PLACES = 8  # on the ring
WIDTH = 16  # shared by the heads
COUNTS = [1, 2, 4, 8]
STEPS = 150
LEAST = 0.02  # the smallest weight that gets an arrow


@cache
def ring(num_heads: int) -> tuple[Tensor, float]:
    """Train `num_heads` heads on chapter 7's ring; maps (heads, places, places) and the error.

    Each place has four numbers, and wants the first two of the place before it and the last two
    of the place after it. The answer is linear in the numbers, so the mean squared error over all
    normally distributed numbers is the one over the 32 unit inputs: training needs no random data.
    """
    with torch.random.fork_rng(devices=[]), in_float64():
        torch.manual_seed(0)
        attention = MultiHeadAttention(
            4,
            num_heads,
            d_k=WIDTH // num_heads,
            d_v=WIDTH // num_heads,
            query_size=PLACES,
            key_size=PLACES,
        )
    x = torch.eye(PLACES * 4, dtype=torch.float64).reshape(-1, PLACES, 4)
    wanted = torch.cat([x.roll(1, dims=1)[..., :2], x.roll(-1, dims=1)[..., 2:]], dim=-1)
    where = torch.eye(PLACES, dtype=torch.float64).expand(len(x), -1, -1)
    optimiser = torch.optim.Adam(attention.parameters(), lr=0.03)
    for _ in range(STEPS):
        error = (attention(where, where, x) - wanted).square().sum() / len(x)
        optimiser.zero_grad()
        error.backward()
        optimiser.step()
    assert attention.attention_weights is not None
    return attention.attention_weights[0].detach(), error.item()


class HeadsFigure(Figure):
    """Compare the maps of one head with those of several that were trained on the same task.

    Each of `maps`, (heads, length, length), contains the weights of a model with another number of
    heads, as `attention.attention_weights[0]` does; `tokens` names their positions. Without them
    the figure trains one, two, four and eight heads on chapter 7's ring. `num_heads` is the model
    shown, `query` the position whose weights are shown, and `head` the one head whose map is
    shown, or "all"; all three follow the controls and may be set.

    Raises:
        TypeError, ValueError: for maps or tokens that cannot be drawn; traitlets.TraitError: for
            a number of heads, a position or a head that there is not.
    """

    kind = "heads"
    look = "heads.css"
    num_heads = control(1, "counts", N_("heads"))
    query = control(0, Count(("tokens",)), N_("query position"))
    head = control("all", Count(("num_heads",), also=("all",)), N_("heads shown"))
    phrases: ClassVar = {
        "one head": N_("In head {0}, position {1} attends most to {2} ({3})."),
        "head": N_("{0} in head {1}"),
        "heads": N_("{0} in heads {1}"),
        "all": N_("Position {0} attends most to {1}."),
        "mixed": N_("One head mixes both neighbours of {0}, {1} ({2}) and {3} ({4}): error {5}."),
        "split": N_("From {0} one head looks before, one after: the error falls from {1} to {2}."),
    }

    def __init__(
        self,
        *maps: Tensor,
        tokens: Sequence[str] | None = None,
        num_heads: int | None = None,
        query: int | None = None,
        head: int | str = "all",
    ) -> None:
        errors: list[float] = []
        if not maps:
            trained = [ring(count) for count in COUNTS]
            maps = tuple(weights for weights, _ in trained)
            errors = [round(error, 3) for _, error in trained]
            tokens = "ABCDEFGH" if tokens is None else tokens
        data: dict[str, Any] = {"counts": [], "maps": {}, "errors": errors, "least": LEAST}
        sizes: dict[str, int] = {}
        for given in maps:
            # Checked by axes; the last two of a map of one sequence over itself share a name.
            limits = {"heads": 16, "length": 12, "length again": 12}
            sizes.pop("heads", None)
            weights = numbers("HeadsFigure", "maps", given, limits, sizes)
            if sizes["length again"] != sizes["length"]:
                raise ValueError(f"HeadsFigure: maps must be square, but one is {given.shape}")
            if str(len(weights)) in data["maps"]:
                raise ValueError(f"HeadsFigure: two of the maps have {len(weights)} heads")
            data["counts"].append(len(weights))
            data["maps"][str(len(weights))] = rounded(weights, 4)
        data["tokens"] = labels("HeadsFigure", "tokens", tokens, sizes["length"], "")
        super().__init__(
            data=data,
            num_heads=data["counts"][0] if num_heads is None else num_heads,
            query=sizes["length"] // 2 if query is None else query,
            head=head,
            caption="Arrows lead from the chosen query to the keys that it reads. Strips show the "
            "weights of each head.",
        )

    @traitlets.observe("num_heads")
    def _show_all_again(self, change: Any) -> None:
        if self.head not in ("all", *range(change["new"])):
            self.head = "all"

    def _shown_heads(self) -> list[int]:
        return list(range(self.num_heads)) if self.head == "all" else [self.head]

    def describe(self) -> str:
        maps, tokens = self.data["maps"][str(self.num_heads)], self.data["tokens"]
        shown_heads, query = self._shown_heads(), tokens[self.query]
        looks: dict[int, list[int]] = {}  # for each key the heads that read it most
        for head in shown_heads:
            row = maps[head][self.query]
            best = max(range(len(row)), key=lambda key: row[key])
            looks.setdefault(best, []).append(head)
        told = ", ".join(
            self.phrase("heads" if len(of) > 1 else "head", tokens[key], ", ".join(map(str, of)))
            for key, of in looks.items()
        )
        told = self.phrase("all", query, told)
        if len(shown_heads) == 1:
            told = self.phrase("one head", shown_heads[0], query, tokens[best], shown(row[best]))
        if self.data["errors"] and self.num_heads <= 2:  # of the ring
            ends = [shown(error, 3) for error in self.data["errors"][:2]]
            if self.num_heads == 1:
                keys = [(self.query + step) % len(tokens) for step in (1, -1)]
                keys.sort(key=lambda key: -maps[0][self.query][key])
                parts = [(tokens[key], shown(maps[0][self.query][key])) for key in keys]
                told = self.phrase("mixed", query, *parts[0], *parts[1], ends[0])
            elif self.head == "all":
                told = self.phrase("split", query, *ends)
        heads = "1 head" if self.num_heads == 1 else f"{self.num_heads} heads"
        return f"The attention maps of {heads} over {len(tokens)} positions. {told}"

    def picture(self) -> Canvas:
        maps = torch.tensor(self.data["maps"][str(self.num_heads)], dtype=torch.float64)
        heads = self._shown_heads()
        many = min(len(heads), 3)  # more would be too small to read on paper
        canvas, (circle, *axes) = canvas_of(1, 1 + many, (2.9 * (1 + many), 2.9))
        names = self.data["tokens"]
        angles = 2 * torch.pi * torch.arange(len(names), dtype=torch.float64) / len(names)
        places = torch.stack([angles.sin(), angles.cos()], dim=-1).tolist()
        for head in heads:
            for key, weight in enumerate(maps[head][self.query].tolist()):
                if weight >= LEAST:
                    arrow = {
                        "arrowstyle": "-|>",
                        "linewidth": 6 * weight,
                        "color": STYLE["axes.prop_cycle"].by_key()["color"][head % 5],
                        "connectionstyle": f"arc3,rad={0.1 + 0.1 * head}",
                        "shrinkA": 9,
                        "shrinkB": 9,
                    }
                    circle.annotate("", places[key], places[self.query], arrowprops=arrow)
        for name, (x, y) in zip(names, places, strict=True):
            circle.text(x, y, name, ha="center", va="center")
        circle.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), aspect="equal")
        circle.set_title(say("what {0} reads", names[self.query]))
        circle.axis("off")
        for head, ax in zip(heads[:many], axes, strict=True):
            title = say("head {0} of {1}", head, self.num_heads)
            draw_weights(maps[head], ax=ax, queries=names, keys=names, title=title)
            ax.axhspan(self.query - 0.5, self.query + 0.5, fill=False, linewidth=1.5)
        return canvas
