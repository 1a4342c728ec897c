"""Chapter 8: a query and a key, turned by their positions, and the score that only depends on how
far apart they are."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Circle, Wedge
from torch import Tensor

from attention_book.figures.base import Figure, canvas_of, control, rounded, shown
from attention_book.language import N_, say
from attention_book.positions import Llama3Scaling, rotary_embedding

#: With four features and this base the pairs turn by 1 and by 0.1 radians per word.
BASE, FREQUENCIES = 100.0, torch.tensor([1.0, 0.1], dtype=torch.float64)
#: Positions, and the largest distance in training.
LENGTH, TRAINED = 12, 8
STRETCHES = {1: N_("no"), 2: N_("2 times"), 4: N_("4 times")}
#: A pair that goes round more often than `low` to `high` times within the trained distance keeps
#: its speed: none of the two, or the fast one.
KEPT = {"all": (2.0, 3.0), "slow": (0.5, 1.0)}


def scaling(stretch: int, pairs: str) -> Llama3Scaling:
    """What slows the pairs down."""
    return Llama3Scaling(stretch, *KEPT[pairs], original_length=TRAINED)


def turned(stretch: int, pairs: str) -> Tensor:
    """The same vector at each position, as complex numbers of size 1, (LENGTH, pair)."""
    x = torch.tensor([1.0, 1, 0, 0], dtype=torch.float64).expand(1, LENGTH, 4)
    found = rotary_embedding(x, base=BASE, scaling=scaling(stretch, pairs))[0]
    return torch.complex(*found.chunk(2, dim=-1))


class RotationFigure(Figure):
    """Move a query and a key along the positions of a text, while rotary embedding turns them in a
    fast and a slow pair of features; and slow the turns down, for texts longer than in training.

    `query` and `key` are the positions, from 0. `stretch` is how many times more slowly `pairs`
    turn: "all" pairs, or the "slow" one alone. All follow the controls and may be set.

    Raises:
        traitlets.TraitError: for what a control cannot show.
    """

    kind = "rotation"
    look = "rotation.css"
    query = control(4, range(LENGTH), N_("query at"))
    key = control(1, range(LENGTH), N_("key at"))
    stretch = control(1, STRETCHES, N_("Slower turns:"))
    pairs = control(
        "all", {"all": N_("all pairs"), "slow": N_("slow pair only")}, N_("Applies to:")
    )
    phrases: ClassVar = {
        "apart": N_("Query at {0}, key at {1}: fast {2}° apart, slow {3}°; score {4}."),
        "same": N_("Query and key at {0}: 0° apart; score {1}."),
        "new": N_("In training, the slow arrows were never this far apart."),
        "near": N_("On the fast dial, neighbours are {0}° apart; in training it was {1}°."),
    }

    def __init__(
        self, *, query: int = 4, key: int = 1, stretch: int = 1, pairs: str = "all"
    ) -> None:
        speeds = {
            name: [rounded(scaling(by, name)(FREQUENCIES)) for by in STRETCHES] for name in KEPT
        }
        super().__init__(
            data={"length": LENGTH, "trained": TRAINED, "speeds": speeds},
            query=query,
            key=key,
            stretch=stretch,
            pairs=pairs,
            caption="Drag q, k or the bracket. Dashed: both arrows before they turn. Shaded: met "
            "in training.",
        )

    def speeds(self) -> list[float]:
        """Radians per word, of the fast and the slow pair."""
        found: list[float] = scaling(self.stretch, self.pairs)(FREQUENCIES).tolist()
        return found

    def between(self) -> Tensor:
        """By what angle the key is ahead of the query, as complex numbers of size 1, (pair)."""
        places = turned(self.stretch, self.pairs)
        return places[self.key] * places[self.query].conj()

    def is_new(self) -> bool:
        """Whether the slow pair is further apart than at any distance in training."""
        turn = abs(self.query - self.key) * self.speeds()[1]
        return turn > TRAINED * FREQUENCIES[1].item() + 1e-9

    def describe(self) -> str:
        score = shown(self.between().real.sum().item())
        fast, slow = (shown(x, 0) for x in self.between().angle().abs().rad2deg().tolist())
        told = [self.phrase("apart", self.query, self.key, fast, slow, score)]
        if self.query == self.key:
            told = [self.phrase("same", self.query, score)]
        if self.is_new():
            told.append(self.phrase("new"))
        now, before = (math.degrees(speed) for speed in (self.speeds()[0], FREQUENCIES[0]))
        if now < before:
            told.append(self.phrase("near", shown(now, 0), shown(before, 0)))
        return (
            "A query and a key, turned by their positions in a fast and a slow pair of features, "
            f"and their score over the distance. {' '.join(told)}"
        )

    def picture(self) -> Canvas:
        canvas, (fast, slow, plot) = canvas_of(1, 3, (7.6, 2.6))
        places = turned(self.stretch, self.pairs)
        for pair, (ax, name) in enumerate([(fast, say("fast")), (slow, say("slow"))]):
            self._draw_dial(ax, name, pair, places[:, pair])
        distances = torch.linspace(0, LENGTH - 1, 111, dtype=torch.float64)
        parts = torch.outer(distances, torch.tensor(self.speeds(), dtype=torch.float64)).cos()
        reach = TRAINED * FREQUENCIES[1].item() / self.speeds()[1]
        plot.axvspan(0, min(reach, LENGTH - 1), color="#6cb8e6", alpha=0.25, linewidth=0)
        plot.plot(distances, parts[:, 0], color="#0868a8", linewidth=1, label=say("fast"))
        plot.plot(distances, parts[:, 1], color="#0868a8", linewidth=1, ls="--", label=say("slow"))
        plot.plot(distances, parts.sum(dim=1), color="#333333", linewidth=2.5, label=say("sum"))
        score = self.between().real.sum().item()
        plot.plot([abs(self.query - self.key)], [score], "o", color="#b34700", markersize=8)
        plot.set(xlabel=say("distance"), ylabel=say("score"), ylim=(-2.2, 2.2))
        plot.legend(frameon=False, ncols=3, fontsize=8, loc="lower right", columnspacing=0.8)
        return canvas

    def _draw_dial(self, ax: Axes, name: str, pair: int, places: Tensor) -> None:
        angles = places.angle().rad2deg()
        start, apart = angles[self.query].item(), self.between()[pair].angle().rad2deg().item()
        seen = math.degrees(TRAINED * FREQUENCIES[pair].item())
        ends = (0, 360) if seen >= 180 else (start - seen, start + seen)
        ax.add_patch(Wedge((0, 0), 1, *ends, color="#6cb8e6", alpha=0.25, linewidth=0))
        ax.add_patch(Circle((0, 0), 1, fill=False, color="#999999"))
        ends = (start, start + apart) if apart > 0 else (start + apart, start)
        colour = "#b34700" if pair and self.is_new() else "#0868a8"
        ax.add_patch(Wedge((0, 0), 0.6, *ends, color=colour, alpha=0.5, linewidth=0))
        ax.plot([0, 1], [0, 0], "--", color="#999999", linewidth=1)
        for place, colour in ((self.query, "#0077BB"), (self.key, "#D55E00")):
            tip = places[place].real.item(), places[place].imag.item()
            ax.annotate("", tip, (0, 0), arrowprops={"arrowstyle": "-|>", "color": colour})
        word = math.degrees(self.speeds()[pair])
        speed = say("{0}, {1}° a word", name, shown(word, 1 if word < 5 else 0))
        ax.set_title(speed + "\n" + say("{0}° apart", shown(abs(apart), 0)), fontsize=10)
        ax.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), aspect="equal")
        ax.axis("off")
