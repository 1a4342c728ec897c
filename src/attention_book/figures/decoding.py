"""Chapter 9: the three attention maps of an encoder–decoder, step by step of the decoding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import traitlets
from matplotlib.figure import Figure as Canvas
from torch import Tensor

from attention_book.figures.base import Figure, canvas_of, labels, numbers, rounded
from attention_book.masking import causal_mask, masked_softmax
from attention_book.plots import draw_weights
from attention_book.positions import sinusoidal_positions
from attention_book.scoring import dot_product_scores

SOURCE = ["4", "2", "7", "1", "9"]
TARGET = ["<start>", "9", "1", "7", "2"]


def reversing_maps() -> tuple[Tensor, Tensor, Tensor]:
    """Maps (layers, heads, queries, keys) set by hand, of a model that reverses five tokens.

    Queries and keys are codes of positions. The encoder and the decoder compare a position with
    its own, and the decoder's step i compares the code of source position 4 − i; the second layer
    is sharper.
    """
    codes = sinusoidal_positions(5, 16).double()[None]
    mirrored = codes.flip(1)
    encoder, decoder, cross = [], [], []
    for sharpness in (1.0, 4.0):
        encoder.append(masked_softmax(sharpness * dot_product_scores(codes, codes)))
        decoder.append(
            masked_softmax(sharpness * dot_product_scores(codes, codes), mask=causal_mask(5))
        )
        cross.append(masked_softmax(sharpness * dot_product_scores(mirrored, codes)))
    return torch.stack(encoder), torch.stack(decoder), torch.stack(cross)


class DecodingFigure(Figure):
    """Step through a decoding and see where each step looks, in the encoder and in the decoder.

    The maps hold weights: `encoder` (layers, heads, source, source), `decoder` (layers, heads,
    target, target) and `cross` (layers, heads, target, source); `source` and `target` name the
    positions, `target` as the decoder reads it. `step`, `layer` and `head`, from 0, follow the
    sliders and may be set.

    Raises:
        TypeError, ValueError: for maps or tokens that cannot be drawn; traitlets.TraitError: for
            a step, layer or head there is not.
    """

    kind = "decoding"
    step = traitlets.Int(0).tag(sync=True)
    layer = traitlets.Int(0).tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)

    def __init__(
        self,
        encoder: Tensor | None = None,
        decoder: Tensor | None = None,
        cross: Tensor | None = None,
        *,
        source: Sequence[str] | None = None,
        target: Sequence[str] | None = None,
        step: int = 0,
        layer: int | None = None,
        head: int = 0,
    ) -> None:
        if encoder is None and decoder is None and cross is None:
            encoder, decoder, cross = reversing_maps()
            source = SOURCE if source is None else source
            target = TARGET if target is None else target
        sizes: dict[str, int] = {}
        axes = {
            "encoder": (encoder, "source", "source"),
            "decoder": (decoder, "target", "target"),
            "cross": (cross, "target", "source"),
        }
        data: dict[str, Any] = {}
        for name, (tensor, rows, columns) in axes.items():
            # Checked by axes; the last two of a map of one sequence over itself share a name.
            last = columns if columns != rows else f"{columns} again"
            limits = {"layers": 4, "heads": 4, rows: 12, last: 12}
            data[name] = rounded(numbers("DecodingFigure", name, tensor, limits, sizes), 4)
        for side in ("source", "target"):
            if sizes[side] != sizes[f"{side} again"]:
                raise ValueError(
                    f"DecodingFigure: a map of the {side} over itself must be square, but is "
                    f"{sizes[side]} by {sizes[f'{side} again']}"
                )
        data["source"] = labels("DecodingFigure", "source", source, sizes["source"], "s")
        data["target"] = labels("DecodingFigure", "target", target, sizes["target"], "t")
        super().__init__(
            data=data,
            step=step,
            layer=sizes["layers"] - 1 if layer is None else layer,
            head=head,
            caption="At each step the decoder reads one more token. Its outlined row over itself "
            "may use this token and those before; its outlined row over the source may use all. "
            "The encoder's map is finished before the first step.",
        )

    @traitlets.validate("step", "layer", "head")
    def _check_place(self, proposal: Any) -> int:
        cross = self.data["cross"]
        ends = {"layer": len(cross), "head": len(cross[0]), "step": len(cross[0][0])}
        name, value = proposal["trait"].name, proposal["value"]
        if not 0 <= value < ends[name]:
            raise traitlets.TraitError(
                f"DecodingFigure: {name} must be from 0 to {ends[name] - 1}, but is {value}"
            )
        return value

    def describe(self) -> str:
        row = self.data["cross"][self.layer][self.head][self.step]
        best = row.index(max(row))
        return (
            f"Encoder, decoder and cross attention maps. At step {self.step}, reading "
            f"{self.data['target'][self.step]}, the decoder gives source token "
            f"{self.data['source'][best]} the largest weight, {max(row):.2f}."
        )

    def picture(self) -> Canvas:
        names = {
            "encoder": ("source", "source"),
            "decoder": ("target", "target"),
            "cross": ("target", "source"),
        }
        canvas, axes = canvas_of(1, 3, (9.6, 3.3))
        for ax, (name, (rows, columns)) in zip(axes, names.items(), strict=True):
            weights = torch.tensor(self.data[name][self.layer][self.head])
            draw_weights(
                weights, ax=ax, queries=self.data[rows], keys=self.data[columns], title=name
            )
            if name != "encoder":
                ax.axhspan(self.step - 0.5, self.step + 0.5, fill=False, linewidth=2)
        return canvas
