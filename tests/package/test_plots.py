"""Drawings: what stands in them is what was given, for every small shape."""

import io
import math
from pathlib import Path

import hypothesis
import matplotlib.pyplot as plt
import pytest
import torch
from cases import DTYPES, LAYOUTS, laid_out, refuses, untouched
from hypothesis import strategies as st
from matplotlib.colors import to_hex
from matplotlib.font_manager import findfont

from attention_book import DotProductAttention, ShapeError, data, figures, plots, trace

SIZES = st.integers(1, 12)
# A drawing takes a hundred times as long as a call.
FEWER = hypothesis.settings(max_examples=max(hypothesis.settings().max_examples // 10, 5))


@FEWER
@hypothesis.given(
    queries=SIZES,
    keys=SIZES,
    dtype=st.sampled_from(DTYPES),
    layout=st.sampled_from(LAYOUTS),
    named=st.booleans(),
)
def test_weights_are_drawn_as_they_are(
    queries: int, keys: int, dtype: torch.dtype, layout: str, named: bool
) -> None:
    generator = torch.Generator().manual_seed(0)
    weights = laid_out(torch.rand(queries, keys, generator=generator).to(dtype), layout)
    weights = weights.to(data.device).requires_grad_()
    names = {"queries": [f"q{i}" for i in range(queries)], "keys": [f"k{i}" for i in range(keys)]}
    with untouched(weights):
        ax = plots.draw_weights(weights, title="weights", **(names if named else {}))
    drawn = ax.images[0].get_array().tolist()
    written = [text.get_text() for text in ax.texts]
    labels = [label.get_text() for label in (*ax.get_yticklabels(), *ax.get_xticklabels())]
    title = ax.get_title(loc=plt.rcParams["axes.titlelocation"])
    plt.close(ax.figure)
    numbers = weights.double().tolist()
    assert drawn == numbers
    fits = max(queries, keys) <= 10
    assert written == [f"{number:.2f}" for row in numbers for number in row if fits]
    assert title == "weights"
    assert labels == (
        names["queries"] + names["keys"]
        if named
        else [str(i) for i in range(queries)] + [str(i) for i in range(keys)]
    )


@FEWER
@hypothesis.given(
    batch=SIZES,
    heads=st.integers(0, 3),
    queries=SIZES,
    keys=SIZES,
    size=SIZES,
    columns=st.integers(1, 6),
)
def test_every_step_of_a_trace_is_drawn_with_its_sizes(
    batch: int, heads: int, queries: int, keys: int, size: int, columns: int
) -> None:
    axes = (batch, heads) if heads else (batch,)
    x, memory = torch.zeros(*axes, queries, size), torch.zeros(*axes, keys, size)
    with trace() as shapes:
        DotProductAttention()(x, memory, memory)
    figure = plots.draw_shapes(shapes, columns=columns)
    written = {text.get_text() for ax in figure.axes for text in ax.texts}
    legend = {text.get_text() for text in figure.legends[0].get_texts()}
    places = len(figure.axes)
    plt.close(figure)
    steps = [step for step in shapes if "." not in step.number]
    assert [step.name for step in steps] == [
        "queries",
        "keys",
        "values",
        "scores",
        "weights",
        "output",
    ]
    assert written >= {f"{step.number}  {step.name}" for step in steps}
    assert written >= {str(n) for n in (queries, keys, size)}
    assert legend == {dim for step in steps for dim in step.dims}
    assert places == -(-len(steps) // columns) * columns


@pytest.mark.parametrize("queries", [8, 64, 512, 4096])
def test_blocks_are_drawn_on_one_scale(queries: int) -> None:
    x = torch.empty(1, queries, 16, device="meta")
    with trace() as shapes:
        DotProductAttention()(x, x.clone(), x.clone())
    figure = plots.draw_shapes(shapes)
    sides = {}
    for ax, step in zip(figure.axes, [s for s in shapes if "." not in s.number], strict=False):
        (x0, y0), (x1, _), (_, y2), *_ = ax.patches[0].get_xy()
        sides[step.name] = x1 - x0, y2 - y0
    title = figure.legends[0].get_title().get_text()
    plt.close(figure)
    assert ("square roots" in title) == (queries > 64)
    length = math.sqrt if queries > 64 else float
    unit = sides["queries"][0] / length(16)
    assert sides["queries"] == pytest.approx((unit * length(16), unit * length(queries)))
    assert sides["scores"] == pytest.approx((unit * length(queries), unit * length(queries)))


def test_what_is_no_matrix_and_names_of_another_number_are_refused() -> None:
    with refuses(ShapeError, "draw_weights", "(queries, keys)", "(2, 3, 4)"):
        plots.draw_weights(torch.zeros(2, 3, 4))
    with refuses(ShapeError, "draw_weights", "keys", 2, 4):
        plots.draw_weights(torch.zeros(3, 4), keys=["a", "b"])
    with trace() as shapes:
        pass
    with pytest.raises(ValueError, match="no step"):
        plots.draw_shapes(shapes)


def test_pictures_have_the_typeface_of_the_pages_and_the_shades_of_the_figures() -> None:
    with plt.rc_context():
        plots.use_style()
        found = findfont(plt.rcParams["font.family"][0], fallback_to_default=False)
        assert found.startswith(str(Path(plots.__file__).parent))
        _, ax = plt.subplots()
        image = ax.imshow([[0.0, 0.5, 1.0]], vmin=0, vmax=1)
        nothing, half, all_of_it = image.cmap(image.norm(image.get_array()))[0]
        assert nothing[3] == 0.0
        assert half[3] == pytest.approx(0.5, abs=0.01)
        assert to_hex(all_of_it) == plots.WEIGHT
        assert f"--af-weight: {plots.WEIGHT};" in (figures.base.HERE / "figure.css").read_text()
    plt.close("all")


def test_a_picture_says_where_its_panels_can_be_cut() -> None:
    with plt.rc_context():
        plots.use_style()
        single, _ = plt.subplots()
        assert plots.panel_cuts(single) == []
        double, axes = plt.subplots(1, 2, figsize=(6.4, 2.4))
        for ax in axes:
            ax.plot([0, 1], [0, 1])
            ax.set(xlabel="key", ylabel="weight")
        [cut] = plots.panel_cuts(double)
        assert 0.4 < cut < 0.6
        file = io.BytesIO()
        double.savefig(file, bbox_inches="tight", transparent=True)
        file.seek(0)
        pixels = plt.imread(file)[..., 3]
        assert pixels[:, round(cut * pixels.shape[1])].max() == 0  # nothing is cut through
        assert pixels.max() == 1
        stacked, _ = plt.subplots(2, 1)
        assert plots.panel_cuts(stacked) == []
        double.suptitle("of both")
        assert plots.panel_cuts(double) == []
    plt.close("all")
