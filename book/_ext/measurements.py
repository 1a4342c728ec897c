"""The numbers that prose may name: what cells glued, and the ratios of the stored benchmark run."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

GLUED = "application/papermill.record/text/plain"


class Measured(NamedTuple):
    """One number as it is shown, the page that measured it, and its cell there, if it has one."""

    text: str
    page: str = ""
    cell: str = ""


def glued(notebook: Path, root: Path) -> Iterator[tuple[str, Measured]]:
    """Each number that a notebook stores, by its name.

    A cell that the page leaves out carries the numbers of the code before it, which measured them.
    """
    page = notebook.relative_to(root).with_suffix("").as_posix()
    seen = ""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        hidden = "remove-cell" in cell["metadata"].get("tags", [])
        if cell["cell_type"] == "code" and not hidden:
            seen = f"cell-{cell['id']}"
        for output in cell.get("outputs", []):
            record = output.get("data", {}).get(GLUED)
            if record is not None:
                text = str(ast.literal_eval("".join(record)))
                name = output["metadata"]["scrapbook"]["name"]
                yield name, Measured(text, page, seen)


def benchmarked(root: Path) -> Iterator[tuple[str, Measured]]:
    """The ratios that `make bench` stored, named bench-ours-peer-size-quantity-mode."""
    stored = root / "benchmarks" / "last.json"
    for row in json.loads(stored.read_text(encoding="utf-8"))["rows"] if stored.exists() else ():
        peer = row["peer"] + ("" if row["padded"] else " no lengths")
        parts = ("bench", row["ours"], peer, row["size"], row["quantity"], row["mode"])
        name = re.sub(r"[^a-z0-9]+", "-", " ".join(parts).lower())
        yield name, Measured(f"{row['ratio']:.2f}")
