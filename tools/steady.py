"""Would another processor print the same? `python tools/steady.py NOTEBOOK …`, or `make steady`.

Each notebook is run on processors that are simulated (`other_processor.py`), one for each seed,
and what its cells print is compared with what is stored. Nothing is written. A cell whose output
rests on a chaotic training, on a digit at a boundary of rounding, on a sum that is 1 by luck or on
an order of equal values is found, and shown with both outputs.

A cell that counts operators or measures memory or time would see the simulation itself. It has a
tag that says so, `steady-except-operators`, `steady-except-memory` or `nbval-ignore-output`: the
simulation pauses while it runs, and its output is not compared.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

HERE = Path(__file__).parent
EXCEPT = {"steady-except-operators", "steady-except-memory", "nbval-ignore-output", "keep-output"}
PAUSE, GO_ON = "other_processor.__exit__(None, None, None)", "other_processor.__enter__()"
#: What is compared of an output: pictures and what a widget's viewer makes of it are not.
COMPARED = ("text/plain", "text/html", "application/papermill.record/text/plain")


class WrongSettingError(Exception):
    """SEEDS or SIZE cannot be meant so."""


class Unsteady(NamedTuple):
    """A cell that prints something else on another processor."""

    notebook: str
    cell: int  #: among the code cells, from 0 on, as nbval counts
    seed: int
    stored: str
    other: str

    def __str__(self) -> str:
        return (
            f"{self.notebook}, code cell {self.cell}, seed {self.seed}\n"
            f"--- stored\n{self.stored}\n--- on the other processor\n{self.other}\n"
        )


def run(path: Path, seed: int, size: float) -> list[Unsteady]:
    """The cells of a notebook that print something else than what is stored.

    A cell that raises where none is stored is one of them, and the last.
    """
    stored = nbformat.read(path, as_version=4)
    notebook = nbformat.from_dict(stored)
    notebook.cells = [copy for cell in stored.cells for copy in _to_run(cell)]
    failure = ""
    with tempfile.TemporaryDirectory() as folder:
        # By its place it is a library, so that a trace leaves its frames out.
        home = Path(folder, "site-packages")
        start = home / "profile_default" / "startup"
        start.mkdir(parents=True)
        shutil.copy(HERE / "other_processor.py", start)
        environment = {
            **os.environ,
            "IPYTHONDIR": str(home),
            "OTHER_PROCESSOR": str(seed),
            "OTHER_PROCESSOR_SIZE": str(size),
            "ATTENTION_BOOK_LANGUAGE": "en",
        }
        client = NotebookClient(
            notebook,
            timeout=600,
            kernel_name="python3",
            coalesce_streams=True,
            store_widget_state=False,
            resources={"metadata": {"path": str(path.parent)}},
        )
        try:
            client.execute(env=environment)
        except CellExecutionError as error:
            failure = f"{error.ename}: {error.evalue}"
    return list(_compared(path.name, stored, notebook, seed, failure))


def _to_run(cell: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """A cell without its outputs, between two that pause the simulation where it must not run."""
    if cell.cell_type != "code":
        return []
    copy = nbformat.v4.new_code_cell(cell.source, metadata=cell.metadata, id=cell.id)
    if EXCEPT.isdisjoint(cell.metadata.get("tags", [])):
        return [copy]
    return [nbformat.v4.new_code_cell(PAUSE), copy, nbformat.v4.new_code_cell(GO_ON)]


def _compared(
    name: str,
    stored: nbformat.NotebookNode,
    notebook: nbformat.NotebookNode,
    seed: int,
    failure: str,
) -> Iterator[Unsteady]:
    ran = {cell.id: cell for cell in notebook.cells}
    cells = [cell for cell in stored.cells if cell.cell_type == "code"]
    for number, before in enumerate(cells):
        after = ran[before.id]
        raised = any(output.output_type == "error" for output in after.outputs)
        expected = "raises-exception" in before.metadata.get("tags", [])
        if failure and raised and not expected:
            yield Unsteady(name, number, seed, shown(before), failure)
            return
        if EXCEPT.isdisjoint(before.metadata.get("tags", [])):
            was, now = shown(before), shown(after)
            if was != now:
                yield Unsteady(name, number, seed, was, now)


def shown(cell: nbformat.NotebookNode) -> str:
    """What a cell prints, returns or raises, as text."""
    parts = []
    for output in cell.outputs:
        if output.output_type == "stream" and output.name == "stdout":
            parts.append(output.text)
        elif output.output_type == "error":
            parts.append(f"{output.ename}: {output.evalue}")
        elif "data" in output:
            parts += [str(output.data[kind]) for kind in COMPARED if kind in output.data]
    return "\n".join(parts)


def settings(seeds: str, size: str) -> tuple[list[int], float]:
    """The seeds and the size of a step that somebody asked for.

    Raises:
        WrongSettingError: for what is no list of whole numbers from 1 on, or no number above 0.
    """
    numbers = seeds.replace(",", " ").split()
    if not numbers or not all(number.isdecimal() and int(number) > 0 for number in numbers):
        raise WrongSettingError(
            f"SEEDS is {seeds!r}: give whole numbers from 1 on, as in SEEDS=1,2"
        )
    try:
        step = float(size)
    except ValueError:
        step = 0.0
    if not 0 < step < 1000:
        raise WrongSettingError(
            f"SIZE is {size!r}: give a number of rounding steps, such as 1 or 8"
        )
    return [int(number) for number in numbers], step


def main(names: list[str]) -> int:
    try:
        seeds, size = settings(os.environ.get("SEEDS") or "1", os.environ.get("SIZE") or "1")
    except WrongSettingError as why:
        print(why)
        return 2
    paths = [Path(name) for name in names]
    if missing := [path.name for path in paths if not path.exists()]:
        print(f"There is no notebook {', '.join(missing)}")
        return 2
    tries = list(product(paths, seeds))
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as workers:
        found = []
        for unsteady in workers.map(lambda one: run(one[0], one[1], size), tries):
            found += unsteady
            print(*unsteady, sep="\n", end="", flush=True)
    print(f"{len(tries)} runs of {len(paths)} notebooks, {len(found)} unsteady cells")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
