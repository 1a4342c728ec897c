"""Run notebooks from top to bottom and store their outputs: `python tools/execute.py FILE …`.

What is stored depends on the cells alone: no times, no widget state, no numbers of this machine.
A second run leaves every file as it is. The one exception, cells that time something (tagged
`nbval-ignore-output`) or draw such times (tagged `keep-output`, and compared but for the picture),
keep the output stored with them until their source changes, or that of such a cell above them;
`--timings` measures them anew, one notebook at a time, so that none disturbs another. `--tidy` runs
nothing: it only takes out what does not belong, and fails if there was something, as a check before
a commit must.
"""

from __future__ import annotations

import copy
import hashlib
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from tqdm import tqdm

KEPT = {"nbval-ignore-output", "keep-output"}
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def tidy(notebook: nbformat.NotebookNode) -> None:
    """Leave in the notebook only what its cells say and show."""
    notebook.metadata = nbformat.from_dict(
        {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    )
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
            for output in cell.outputs:
                output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)
                if output.output_type == "error":  # message and notes, not the machine's paths
                    plain = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(output.traceback))
                    message = f"{output.ename}: {output.evalue}"
                    notes = plain.rpartition(message)[2] if message in plain else ""
                    output.traceback = [message + notes.rstrip()]


def keep_times(notebook: nbformat.NotebookNode, before: nbformat.NotebookNode | None) -> None:
    """Give each timing cell the output of its last measurement, unless what it shows has changed.

    What it shows rests on its own source and on that of the timing cells above it.
    """
    sources = hashlib.sha256()
    for index, cell in enumerate(notebook.cells):
        if KEPT & set(cell.metadata.get("tags", [])):
            sources.update(cell.source.encode())
            digest = sources.hexdigest()[:12]
            if before and cell.metadata.get("measured") == digest:
                cell.outputs = before.cells[index].outputs
            cell.metadata["measured"] = digest


def run(path: Path, *, timings: bool = False) -> str | None:
    """Execute one notebook in its own folder; the message of a failure, or None."""
    notebook = nbformat.read(path, as_version=4)
    before = None if timings else copy.deepcopy(notebook)
    client = NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        store_widget_state=False,
        resources={"metadata": {"path": str(path.parent)}},
    )
    try:
        # What a check says is stored in the language in which the book is written.
        client.execute(env={**os.environ, "ATTENTION_BOOK_LANGUAGE": "en"})
    except CellExecutionError as error:
        return f"{path}: {error}"
    keep_times(notebook, before)
    store(notebook, path)
    return None


def store(notebook: nbformat.NotebookNode, path: Path) -> bool:
    """Write the notebook without the machine's traces; whether its file changed."""
    tidy(notebook)
    nbformat.validate(notebook)
    text = nbformat.writes(notebook, version=nbformat.NO_CONVERT) + "\n"
    if text == path.read_text(encoding="utf-8"):
        return False
    path.write_text(text, encoding="utf-8")
    return True


def main(names: list[str]) -> int:
    options = {name for name in names if name.startswith("--")}
    paths = [Path(name) for name in names if name not in options]
    if missing := [path.name for path in paths if not path.exists()]:
        print(f"There is no notebook {', '.join(missing)}")
        return 2
    if "--tidy" in options:
        return int(any([store(nbformat.read(path, as_version=4), path) for path in paths]))
    timings = "--timings" in options
    with ThreadPoolExecutor(max_workers=1 if timings else 2) as workers:
        runs = workers.map(partial(run, timings=timings), paths)
        results = list(tqdm(runs, total=len(paths), unit="notebook"))
    failures = [result for result in results if result]
    print("\n\n".join(failures) or f"{len(paths)} notebooks ran and are stored.")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
