"""Show a stored run of the benchmarks: its machine, its pictures, its table, its numbers in prose.

Everything is drawn from the JSON that `make bench` stores, while the book is built, so that the
page cannot say anything else than the run. Pictures are drawn twice, for wide and narrow screens.
"""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes
from docutils.parsers.rst import Directive
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from sphinx.application import Sphinx

from attention_book import plots

ROOT = Path(__file__).parents[2]
PAGE = "book/benchmarks"
#: Widths in pixels: of the column of text, and of the column on a small phone.
WIDE, NARROW = 680, 328
DPI = 96
MODES = ("inference", "training")
PANELS = {("usual", "time"): "time", ("usual", "memory"): "memory", ("lesson", "time"): "time"}
#: The system counts a process's pages in steps; memory below this says nothing.
RESOLVED = 2**18
Run = dict[str, Any]
Row = dict[str, Any]


class Line(NamedTuple):
    """All ratios of one comparison, by size, quantity and mode."""

    ours: str
    peer: str
    rows: dict[tuple[str, str, str], Row]


def stored_runs() -> dict[str, Run]:
    """The runs by the names of their files: last, and last-cuda where there is one."""
    files = sorted((ROOT / "benchmarks").glob("last*.json"))
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}


def lines_of(run: Run) -> list[Line]:
    """The comparisons, those of one of ours together."""
    lines: dict[tuple[str, str], Line] = {}
    for row in run["rows"]:
        peer = row["peer"] + ("" if row["padded"] else ", no lengths")
        line = lines.setdefault((row["ours"], peer), Line(row["ours"], peer, {}))
        line.rows[row["size"], row["quantity"], row["mode"]] = row
    order = list(dict.fromkeys(line.ours for line in lines.values()))
    return sorted(lines.values(), key=lambda line: order.index(line.ours))


def readable(value: float, quantity: str) -> str:
    """Two digits or three, and a unit."""
    units = (
        {"µs": 1e-6, "ms": 1e-3, "s": 1.0}
        if quantity == "time"
        else {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
    )
    unit, size = next(
        ((unit, size) for unit, size in reversed(units.items()) if value >= size),
        next(iter(units.items())),
    )
    number = value / size
    digits = f"{number:.0f}" if number >= 100 else f"{number:.2g}"
    return f"{digits}\N{NO-BREAK SPACE}{unit}"


def size_of(run: Run, size: str) -> str:
    return " × ".join(map(str, run["sizes"][size]))


# --- Pictures ---------------------------------------------------------------------------------


def _panel_ticks(low: float, high: float) -> list[float]:
    step = (1, 3) if high / low < 100 else (1,)
    ticks = [digit * 10.0**power for power in range(-4, 5) for digit in step]
    return [tick for tick in ticks if low <= tick <= high]


def draw_ratios(run: Run, width: int) -> Figure:
    """A dot for each ratio, on logarithmic axes with a line at 1: a line for each peer."""
    narrow = width < WIDE
    places: dict[int, float] = {}  # of the lines
    heads: dict[str, float] = {}  # of the names of ours
    lines = lines_of(run)
    height, step = 0.0, 32 if narrow else 21
    for number, line in enumerate(lines):
        if line.ours not in heads:
            heads[line.ours] = height + 15
            height += 28
        places[number] = height + (22 if narrow else 10)
        height += step
    top, bottom, label, reach = 62, 46, 4 if narrow else 232, 8 if narrow else 10
    total = top + height + bottom
    figure = Figure(figsize=(width / DPI, total / DPI), dpi=DPI, layout="none")
    small = {"fontsize": 7.5 if narrow else 9}

    def text(x: float, y: float, words: str, **options: Any) -> None:
        figure.text(x / width, 1 - (top + y) / total, words, va="center", **small, **options)

    for ours, y in heads.items():
        text(0, y, ours, weight="bold")
    for number, line in enumerate(lines):
        text(8, places[number] - (15 if narrow else 0), line.peer)
    span = (width - label) / len(PANELS)
    for index, ((size, quantity), title) in enumerate(PANELS.items()):
        shown = {n: line for n, line in enumerate(lines)
                 if any((size, quantity, mode) in line.rows for mode in MODES)}  # fmt: skip
        left = (label + span * index + 8) / width
        axes = figure.add_axes((left, bottom / total, (span - 16) / width, height / total))
        ends = [end for line in shown.values() for key, row in line.rows.items()
                if key[:2] == (size, quantity)
                for end in (row["ratio"], row["least"], row["bound"] or 1.0)]  # fmt: skip
        low, high = min(ends) / 1.3, max(ends) * 1.3
        axes.set(xscale="log", xlim=(low, high), ylim=(height, 0), yticks=[])
        axes.xaxis.set_major_locator(FixedLocator(_panel_ticks(low, high)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda tick, _: f"{tick:g}"))
        axes.tick_params(labelsize=small["fontsize"])
        axes.spines["left"].set_visible(False)
        around = [(place - reach, place + reach) for n, place in places.items() if n in shown]
        axes.vlines([1] * len(around), *zip(*around, strict=True), color="#333333", linewidth=1)
        axes.set_title(f"{title}\n{size_of(run, size)}", fontsize=small["fontsize"], loc="center")
        for number, line in shown.items():
            axes.axhline(places[number], color="#999999", linewidth=0.4)
            for mode, colour, shift in zip(MODES, ("C0", "C1"), (-3.5, 3.5), strict=True):
                row = line.rows.get((size, quantity, mode))
                if row is None:
                    continue
                y = places[number] + shift
                axes.plot([row["ratio"], row["least"]], [y, y], color=colour, linewidth=1.2)
                face = colour if mode == MODES[0] else "none"
                axes.plot(row["ratio"], y, "o", color=colour, markerfacecolor=face, markersize=5)
                if row["bound"]:
                    axes.plot(row["bound"], y, "|", color="#333333", markersize=8)
    handles = [
        axes.plot([], [], "o", color="C0", label="inference")[0],
        axes.plot([], [], "o", color="C1", markerfacecolor="none", label="training")[0],
        axes.plot([], [], "|", color="#333333", markersize=8, label="promised")[0],
    ]
    figure.legend(handles=handles, loc="upper center", ncols=3, **small)
    figure.text(0.5 + label / width / 2, 6 / total, "ours over the peer’s", ha="center", **small)
    return figure


def draw_growth(run: Run, width: int) -> Figure:
    """Seconds and bytes against the length, on logarithmic axes; the slopes in the legend."""
    narrow = width < WIDE
    shape = (2, 1) if narrow else (1, 2)
    legend = 17 * len(run["growth"]) + 8
    height = (2 * 220 if narrow else 270) + legend
    figure = Figure(figsize=(width / DPI, height / DPI), dpi=DPI, layout="constrained")
    small = 7 if narrow else 9
    ways = list(dict.fromkeys(series["way"] for series in run["growth"]))
    panels = figure.subplots(*shape)
    drawn = {"time": ("seconds", "seconds", 0), "memory": ("bytes", "MiB", RESOLVED)}
    for axes, (title, (key, unit, least)) in zip(panels, drawn.items(), strict=True):
        for series in run["growth"]:
            ours = series is next(s for s in run["growth"] if s["way"] == series["way"])
            points = [(n, y) for n, y in zip(series["lengths"], series[key], strict=True)
                      if y > least]  # fmt: skip
            slopes = series["exponents"]
            axes.plot(
                [n for n, _ in points],
                [y / (2**20 if unit == "MiB" else 1) for _, y in points],
                color=f"C{ways.index(series['way'])}",
                linestyle="-" if ours else "--",
                marker="o" if ours else "x",
                markersize=3.5,
                linewidth=1.4,
                label=f"{series['name']}: time $n^{{{slopes['time']:.2f}}}$, "
                f"memory $n^{{{slopes['memory']:.2f}}}$",
            )
        axes.set(xscale="log", yscale="log")
        axes.set_title(title, fontsize=small + 1)
        axes.set_xlabel("length n", fontsize=small)
        axes.set_ylabel(unit, fontsize=small)
        axes.tick_params(labelsize=small)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", fontsize=small)
    return figure


def svg(figure: Figure) -> str:
    """The same bytes for the same picture."""
    drawn = io.StringIO()
    with rc_context({"svg.hashsalt": "attention-book"}):
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    return drawn.getvalue()


def alt_of_ratios(run: Run) -> str:
    """What the dots show, in words, with its extremes."""
    rows = run["rows"]
    low, high = (choose(rows, key=lambda row: row["ratio"]) for choose in (min, max))

    def words(row: Row) -> str:
        return (
            f"{row['ratio']:.2f}, {row['ours']} against {row['peer']} ({row['quantity']}, "
            f"{row['mode']}, {size_of(run, row['size'])})"
        )

    below = sum(row["ratio"] <= 1 for row in rows)
    return (
        f"{len(rows)} ratios as dots on logarithmic axes with a line at 1, {below} of them at 1 or "
        f"below. The smallest is {words(low)}; the largest is {words(high)}. "
        "The table below holds them all."
    )


def alt_of_growth(run: Run) -> str:
    """What the lines show, in words."""
    slopes = "; ".join(
        f"{series['name']} up to {series['lengths'][-1]}: time {series['exponents']['time']:.2f}, "
        f"memory {series['exponents']['memory']:.2f}"
        for series in run["growth"]
    )
    return f"Time and memory against the length, as lines on logarithmic axes. Slopes: {slopes}."


PICTURES = {
    "ratios": (
        draw_ratios,
        alt_of_ratios,
        "Ours over the peer’s, for each peer. Left of the line at 1 ours is faster or smaller. A "
        "dot is the median over the pairs, the bar from it reaches to the ratio of the least "
        "times. The sizes are examples × positions.",
    ),
    "growth": (
        draw_growth,
        alt_of_growth,
        "How time and memory grow with the length n of one example. Lines are ours, dashes are "
        "peers; the exponents are the slopes at the four longest lengths.",
    ),
}


def _write_pictures(app: Sphinx) -> None:
    folder = Path(app.outdir) / "_images"
    folder.mkdir(parents=True, exist_ok=True)
    app.pictures = {}  # type: ignore[attr-defined]
    with rc_context(plots.STYLE):
        for name, run in stored_runs().items():
            for kind, (draw, _, _) in PICTURES.items():
                for form, width in (("wide", WIDE), ("narrow", NARROW)):
                    figure = draw(run, width)
                    file = f"benchmarks-{name}-{kind}-{form}.svg"
                    (folder / file).write_text(svg(figure), encoding="utf-8")
                    height = round(figure.get_figheight() * DPI)
                    app.pictures[file] = (width, height)  # type: ignore[attr-defined]


# --- Words and numbers ------------------------------------------------------------------------


def missed(row: Row) -> bool:
    """Whether more is promised than was measured."""
    return row["bound"] is not None and row["ratio"] > row["bound"]


def described(run: Run) -> str:
    """Where and when the run was made, and whether it keeps what is promised."""
    machine = run["machine"]
    cores = f", {machine['cores']} cores" if "cores" in machine else ""
    versions = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
    threads = "one thread" if run["threads"] == 1 else f"{run['threads']} threads"
    many = sum(map(missed, run["rows"]))
    promises = sum(row["bound"] is not None for row in run["rows"])
    kept = f" Of {promises} promises it keeps {promises - many}." if promises else ""
    return (
        f"Measured on {run['date']} on {machine['processor']}{cores}, {machine['memory']} of "
        f"memory, with {versions}, {threads}; the run took {run['seconds'] / 60:.0f} minutes."
        f"{kept}"
    )


def table(run: Run) -> str:
    """Every ratio, with what is promised, and below it the two amounts, ours and the peer's."""
    columns = [(*panel, mode) for panel in PANELS for mode in MODES]

    def cell(row: Row | None) -> str:
        if row is None:
            return "<td></td>"
        mine, theirs = (readable(value, row["quantity"]) for value in row["values"])
        promise = ""
        if row["bound"]:
            sign = "not&nbsp;≤" if missed(row) else "≤"
            promise = f"{sign}&nbsp;{row['bound']:.3g}<br>"
        least = f" ({row['least']:.2f})" if row["quantity"] == "time" else ""
        return f"<td>{row['ratio']:.2f}{least}<br><small>{promise}{mine}<br>{theirs}</small></td>"

    groups = "".join(
        f'<th scope="colgroup" colspan="{len(MODES)}">{title}, {size_of(run, size)}</th>'
        for (size, _), title in PANELS.items()
    )
    modes = "".join(f'<th scope="col"><small>{mode}</small></th>' for _, _, mode in columns)
    body, before = [], ""
    for line in lines_of(run):
        if line.ours != before:
            span = len(columns) + 1
            body.append(f'<tr><th scope="rowgroup" colspan="{span}">{html.escape(line.ours)}</th>')
            before = line.ours
        cells = "".join(cell(line.rows.get(column)) for column in columns)
        body.append(f'<tr><th scope="row"><small>{html.escape(line.peer)}</small></th>{cells}</tr>')
    return (
        '<div class="pst-scrollable-table-container"><table class="table benchmarks">'
        f'<thead><tr><td></td>{groups}</tr><tr><th scope="col">peer</th>{modes}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def numbers(run: Run, name: str) -> Iterator[tuple[str, str]]:
    """Keys and texts for the role `measured`."""

    def key(*parts: str) -> str:
        return re.sub(r"[^a-z0-9]+", "-", " ".join(("bench", *parts)).lower()).strip("-")

    prefix = () if name == "last" else (name.removeprefix("last-"),)
    for line in lines_of(run):
        for (size, quantity, mode), row in line.rows.items():
            parts = (*prefix, line.ours, line.peer, size, quantity, mode)
            yield key(*parts), f"{row['ratio']:.2f}"
            yield key(*parts, "least"), f"{row['least']:.2f}"
            for side, value in zip(("ours", "theirs"), row["values"], strict=True):
                yield key(*parts, side), readable(value, quantity)
    for series in run["growth"]:
        for quantity, slope in series["exponents"].items():
            yield key(*prefix, "growth", series["name"], quantity), f"{slope:.2f}"
        yield key(*prefix, "growth", series["name"], "longest"), str(series["lengths"][-1])


def _offer_numbers(app: Sphinx) -> None:
    from attention_ext import Measured

    for name, run in stored_runs().items():
        for key, text in numbers(run, name):
            app.measured[key] = Measured(text, PAGE, f"benchmarks-{name}")  # type: ignore[attr-defined]


class BenchmarkRun(Directive):
    """``{benchmark-run} last``: the machine, the two pictures and the table of a stored run."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        env = self.state.document.settings.env
        env.note_dependency(str(ROOT / "benchmarks" / f"{name}.json"))
        run = stored_runs().get(name)
        if run is None:
            return [nodes.paragraph(text="No run on such a machine is stored yet.")]
        shown: list[nodes.Node] = [nodes.paragraph("", described(run), ids=[f"benchmarks-{name}"])]
        shown += [self._figure(env, name, kind, run) for kind in PICTURES]
        shown.append(nodes.raw("", table(run), format="html"))
        return shown

    def _figure(self, env: Any, name: str, kind: str, run: Run) -> nodes.figure:
        _, alt, caption = PICTURES[kind]
        images = "../" * env.docname.count("/") + "_images/"
        files = [f"benchmarks-{name}-{kind}-{form}.svg" for form in ("wide", "narrow")]
        sizes = ['width="{}" height="{}"'.format(*env.app.pictures[file]) for file in files]
        words = html.escape(alt(run))
        picture = (
            f'<picture><source media="(max-width: 600px)" {sizes[1]} srcset="{images}{files[1]}">'
            f'<img alt="{words}" loading="lazy" {sizes[0]} src="{images}{files[0]}">'
            "</picture>"
        )
        figure = nodes.figure("", nodes.raw("", picture, format="html"), classes=["drawn"])
        figure += nodes.caption(caption, caption)
        figure["ids"].append(f"benchmarks-{name}-{kind}")
        return figure


def setup(app: Sphinx) -> dict[str, Any]:
    app.setup_extension("attention_ext")  # whose numbers it adds to
    app.add_directive("benchmark-run", BenchmarkRun)
    app.connect("builder-inited", _write_pictures)
    app.connect("builder-inited", _offer_numbers, priority=600)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
