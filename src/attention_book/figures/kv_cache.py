"""Chapter 9: what a key–value cache keeps from one step to the next, and why it may."""

from __future__ import annotations

from functools import cache as once
from typing import Any, ClassVar

import torch
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle
from torch import Tensor

from attention_book.cache import KeyValueCache
from attention_book.figures.base import (
    Count,
    Figure,
    canvas_of,
    control,
    example,
    rounded,
    shown,
)
from attention_book.language import N_, say
from attention_book.multihead import MultiHeadAttention
from attention_book.training import in_float64

WORDS = ["an", "old", "cat", "sat", "by", "the", "fire"]
LAYERS, HEADS, D_K, BYTES = 2, 8, 4, 4
D_MODEL = HEADS * D_K
WINDOW = 4
SHARPER = 2  # what random queries are multiplied by, so that their weights differ visibly
KV_HEADS = {8: "8", 4: "4", 2: "2", 1: "1"}


@once
def layers(kv_heads: int) -> list[MultiHeadAttention]:
    """Two layers of attention with fixed random parameters, in float64."""
    with torch.random.fork_rng(devices=[]), in_float64():
        torch.manual_seed(0)
        made = [
            MultiHeadAttention(D_MODEL, HEADS, num_kv_heads=kv_heads, d_k=D_K)
            for _ in range(LAYERS)
        ]
    with torch.no_grad():
        for layer in made:
            layer.W_q.weight.mul_(SHARPER)
    return made


@once
@torch.no_grad()
def read(kv_heads: int, length: int, *, window: bool, causal: bool) -> tuple[list[Tensor], Tensor]:
    """Read the first words in one pass: in each layer the keys (length, d_k) of the first head, and
    the last word's weights (length) in the first head of the last layer."""
    places = torch.arange(length)
    near = (places - places[:, None]).abs() < (WINDOW if window else length)
    x, keys = example(len(WORDS), D_MODEL, seed=4)[None, :length], []
    for layer in layers(kv_heads):
        projected = KeyValueCache()
        attended = layer(x, x, x, mask=near, causal=causal, cache=projected)
        assert projected.keys is not None
        keys.append(projected.keys[0, 0])
        x = x + attended
    weights = layer.attention_weights
    assert weights is not None
    return keys, weights[0, 0, -1]


def costs(kv_heads: int, *, window: bool, cached: bool) -> list[list[int]]:
    """For each step the bytes that are kept after it, and the multiply-adds that it takes."""
    found = []
    for step in range(1, len(WORDS) + 1):
        rows = 1 if cached else step  # positions that are computed
        seen = min(step, WINDOW) if cached and window else step
        kept = 2 * LAYERS * seen * kv_heads * D_K * BYTES if cached else 0
        projections = 2 * D_MODEL * D_MODEL + 2 * D_MODEL * kv_heads * D_K
        scores_and_sums = 2 * HEADS * D_K * seen
        found.append([kept, LAYERS * rows * (projections + scores_and_sums)])
    return found


def setting(*parts: int) -> str:
    """The name of a state of the controls in the data, such as "8 0 1"."""
    return " ".join(str(int(part)) for part in parts)


def numbers() -> dict[str, Any]:
    """What the page looks up. Keys of layer 0 depend on the number of heads alone, and with the
    causal mask no key depends on the step; so these are stored once."""
    data: dict[str, Any] = {"first": {}, "second": {}, "weights": {}, "costs": {}}
    steps = range(1, len(WORDS) + 1)
    for kv in KV_HEADS:
        data["first"][str(kv)] = rounded(read(kv, len(WORDS), window=False, causal=True)[0][0])
        for window in (False, True):
            for is_on in (False, True):
                name = setting(kv, window, is_on)
                runs = [read(kv, step, window=window, causal=is_on) for step in steps]
                data["second"][name] = [
                    rounded(keys[1]) for keys, _ in (runs[-1:] if is_on else runs)
                ]
                data["weights"][name] = [rounded(weights) for _, weights in runs]
                data["costs"][name] = costs(kv, window=window, cached=is_on)
    return data


class CacheFigure(Figure):
    """Read a sentence word by word, and compare the keys and values of one step with the next.

    The model has two layers of eight heads with fixed random parameters, in float32. `step` is the
    number of words that have come, from 2 to 7. `cache` says whether old keys and values are kept,
    `window` whether only the last four positions are seen, `causal` whether the causal mask is on.
    `kv_heads` is the number of key and value heads, 8, 4, 2 or 1, and `word` the one, counted from
    1, whose keys are read out. All follow the controls and may be set.

    Raises:
        traitlets.TraitError: for a step, a word or a number of heads that there is not.
    """

    kind = "kv_cache"
    look = "kv_cache.css"
    step = control(6, range(2, len(WORDS) + 1), N_("step"))
    cache = control(True, [False, True], N_("cache"))
    window = control(False, [False, True], N_("window of 4"))
    causal = control(True, [False, True], N_("causal mask"))
    kv_heads = control(8, KV_HEADS, N_("key–value heads"))
    word = control(3, Count(("words",), first=1), N_("word"))
    phrases: ClassVar = {
        "cached": N_(
            "Step {0}: 1 new key per head, {1} read back. Kept: {2} bytes, {3} more than before. "
            "Without the cache: {0} keys per head."
        ),
        "forgotten": N_(
            "Step {0}: 1 new key per head, {1} read back, and the oldest left. The window caps the "
            "cache at {2} bytes."
        ),
        "again": N_(
            "Step {0}: nothing was kept, so each head computes {0} keys, {1} of them again."
        ),
        "again near": N_(
            "Step {0}: nothing was kept, so each head computes {0} keys, although the query sees "
            "{1}."
        ),
        "changed": N_(
            "Step {0}: word {0} changed {1} of {2} old keys in layer 1. They may not be kept, so "
            "each head of layer 1 computes {0} keys."
        ),
    }

    def __init__(
        self,
        *,
        step: int = 6,
        cache: bool = True,
        window: bool = False,
        causal: bool = True,
        kv_heads: int = 8,
        word: int = 3,
    ) -> None:
        super().__init__(
            data={"words": WORDS, "heads": HEADS, "span": WINDOW, **numbers()},
            step=step,
            cache=cache,
            window=window,
            causal=causal,
            kv_heads=kv_heads,
            word=word,
            caption="Keys (K) and values (V) of two layers, before and after a word comes. A "
            "block's width is its number of heads. The query q of the newest word reads the keys "
            "of layer 1; threads are the weights of the first head. Below the blocks are the keys "
            "K₀ and K₁ of a word in the first head: choose the word. The columns show every step.",
        )

    def _costs(self, step: int) -> list[int]:
        cached = self.cache and self.causal
        return self.data["costs"][setting(self.kv_heads, self.window, cached)][step - 1]

    def _key(self, step: int) -> list[float] | None:
        """The chosen word's key in layer 1 at a step, unless it has not come or is gone."""
        is_gone = self.cache and self.causal and self.window and self.word <= step - WINDOW
        if self.word > step or is_gone:
            return None
        second = self.data["second"][setting(self.kv_heads, self.window, self.causal)]
        return second[0 if self.causal else step - 1][self.word - 1]

    def _told(self) -> str:
        step, old = self.step, self.step - 1
        near = min(old, WINDOW - 1) if self.window else old
        (before, _), (kept, _) = self._costs(old), self._costs(step)
        if not self.causal:
            return self.phrase("changed", step, near, old)
        if not self.cache:
            name, number = ("again near", near + 1) if near < old else ("again", old)
            return self.phrase(name, step, number)
        if kept == before:
            return self.phrase("forgotten", step, near, f"{kept:,}")
        return self.phrase("cached", step, near, f"{kept:,}", f"{kept - before:,}")

    def describe(self) -> str:
        keys = [self._key(step) for step in (self.step - 1, self.step)]
        first = ["absent" if key is None else shown(key[0]) for key in keys]
        return (
            f"Keys and values of two layers, step {self.step - 1} beside step {self.step}. The key "
            f"of “{WORDS[self.word - 1]}” in layer 1 begins with {first[0]}, then {first[1]}. "
            f"{self._told()}"
        )

    def picture(self) -> Canvas:
        canvas, axes = canvas_of(1, 2, (6.4, 2.7))
        cached = self.cache and self.causal
        for ax, step in zip(axes, (self.step - 1, self.step), strict=True):
            kept, computed = self._costs(step)
            for row, word in enumerate(WORDS[:step]):
                is_far = self.window and row < step - WINDOW
                is_gone = cached and is_far
                colour = "#e58a45" if row == step - 1 else "#bcdcf0" if cached else "none"
                ax.text(-0.2, row, word, ha="right", va="center")
                for column, left in enumerate([0, 1, 2.5, 3.5]):
                    is_old = column > 1 and row < step - 1 and not (self.causal or is_far)
                    about: dict[str, Any] = {
                        "facecolor": "none" if is_gone else colour,
                        "edgecolor": "#b34700" if is_old else "#555555",
                        "linestyle": ":" if is_gone else "-",
                        "hatch": "" if cached or row == step - 1 else "////",
                    }
                    size = 0.85 * self.kv_heads / HEADS
                    ax.add_patch(Rectangle((left, row - 0.4), size, 0.8, **about))
            if (key := self._key(step)) is not None:
                read_out = "  ".join(shown(number) for number in key)
                ax.text(2.2, len(WORDS), f"{WORDS[self.word - 1]}, K₁: {read_out}", ha="center")
            for name, left in zip(["K₀", "V₀", "K₁", "V₁"], [0, 1, 2.5, 3.5], strict=True):
                ax.text(left + 0.4, -0.6, name, ha="center")
            ax.set(xlim=(-1, 5), ylim=(len(WORDS) + 0.3, -1.1))
            numbers = step, f"{kept:,}", f"{computed:,}"
            ax.set_title(say("step {0}: {1} bytes, {2} multiply-adds", *numbers), fontsize=8)
            ax.axis("off")
        return canvas
