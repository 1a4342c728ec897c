"""Write the stored run into README.md: `python -m benchmarks.report`, after a run or without one.

It needs no PyTorch, and the table cannot say anything else than the run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
README = HERE / "README.md"
#: What stands between these lines of the README is written here.
BEGIN, END = "<!-- written by make bench -->\n", "<!-- to here -->\n"
#: The columns: size, quantity, mode.
COLUMNS = (
    ("usual", "time", "inference"),
    ("usual", "time", "training"),
    ("usual", "memory", "inference"),
    ("usual", "memory", "training"),
    ("lesson", "time", "inference"),
    ("lesson", "time", "training"),
)
Row = dict[str, Any]
Run = dict[str, Any]


def missed(row: Row) -> bool:
    """Whether more is promised than was measured."""
    return row["bound"] is not None and row["ratio"] > row["bound"]


def peer_of(row: Row) -> str:
    return row["peer"] + ("" if row["padded"] else ", no lengths")


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    promised = ""
    if row["bound"] is not None:
        promised = f" ({'**not** ' if missed(row) else ''}≤ {row['bound']:.3g})"
    return f"{row['ratio']:.2f}{promised}"


def _table(heads: list[str], lines: list[list[str]]) -> str:
    rows = [heads, ["---"] * len(heads), *lines]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def ratios(run: Run) -> str:
    """Every ratio, a line for each pair of ours and a peer, with what is promised."""
    found: dict[tuple[str, str], dict[tuple[str, ...], Row]] = {}
    for row in run["rows"]:
        line = found.setdefault((row["ours"], peer_of(row)), {})
        line[row["size"], row["quantity"], row["mode"]] = row
    heads = [
        f"{quantity}, {mode}, {' × '.join(map(str, run['sizes'][size]))}"
        for size, quantity, mode in COLUMNS
    ]
    lines = [
        [ours, peer, *(_cell(line.get(column)) for column in COLUMNS)]
        for (ours, peer), line in found.items()
    ]
    return _table(["ours", "peer", *heads], lines)


def growth(run: Run) -> str:
    """The exponents of time and memory over the length of one example."""
    lines = [
        [
            series["name"],
            *(f"{series['exponents'][quantity]:.2f}" for quantity in ("time", "memory")),
            f"{series['lengths'][-1]:,}",
        ]
        for series in run["growth"]
    ]
    return _table(["", "time", "memory", "longest"], lines)


def machine(run: Run) -> str:
    """Where and when the run was made, and whether it keeps what is promised."""
    cores = f", {run['machine']['cores']} cores" if "cores" in run["machine"] else ""
    versions = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
    threads = "one thread" if run["threads"] == 1 else f"{run['threads']} threads"
    promised = [row for row in run["rows"] if row["bound"] is not None]
    kept = f" It keeps {len(promised) - sum(map(missed, promised))} of {len(promised)} promises."
    return (
        f"Measured on {run['date']} on {run['machine']['processor']}{cores}, "
        f"{run['machine']['memory']} of memory, {versions}, {threads}, in "
        f"{run['seconds'] / 60:.0f} minutes.{kept if promised else ''}\n"
    )


def report(run: Run, title: str) -> str:
    parts = (f"### {title}\n", machine(run), ratios(run), "Exponents of the growth:\n", growth(run))
    return "\n".join(parts)


def stored_runs() -> dict[str, Run]:
    """The runs by what they ran on, the CPU first."""
    files = {"On a CPU": HERE / "last.json", "On a GPU": HERE / "last-cuda.json"}
    return {
        title: json.loads(file.read_text(encoding="utf-8"))
        for title, file in files.items()
        if file.exists()
    }


def with_runs(text: str, runs: dict[str, Run]) -> str:
    """The README with these runs in place of those that it held."""
    before, _, rest = text.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"benchmarks/README.md has lost the line {BEGIN!r} or {END!r}")
    shown = "\n".join(report(run, title) for title, run in runs.items())
    return f"{before}{BEGIN}\n{shown}\n{END}{after}"


def write() -> None:
    README.write_text(with_runs(README.read_text(encoding="utf-8"), stored_runs()), "utf-8")


if __name__ == "__main__":
    write()
