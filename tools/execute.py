"""Run notebooks from top to bottom and store their outputs: `python tools/execute.py FILE …`.

Each is run in English, and once more with its words in each other language of the book. What it
shows there, where it is not the same, goes beside the catalogues; numbers that were measured are
those of the English run. `--languages` leaves the English run out.

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
import json
import os
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from palette import with_palette
from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "book" / "_ext"))

from editions import EDITIONS  # noqa: E402
from spoken import NOTEBOOKS, digest, outputs_file, spoken, words_of  # noqa: E402

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
                data = output.get("data", {})
                data.pop("application/vnd.jupyter.widget-view+json", None)
                if "image/png" in data:
                    data["image/png"] = with_palette(data["image/png"])
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


def run(path: Path, *, timings: bool = False, english: bool = True) -> str | None:
    """Execute a notebook in its own folder, in each language; the message of a failure, or None."""
    notebook = nbformat.read(path, as_version=4)
    if english:
        before = None if timings else copy.deepcopy(notebook)
        # What a check says is stored in the language in which the book is written.
        if failure := execute(notebook, path, "en"):
            return failure
        keep_times(notebook, before)
        store(notebook, path)
    if path.resolve().parent != NOTEBOOKS:
        return None
    for language in [*EDITIONS][1:]:
        words = words_of(notebook, path.stem, language)  # as they are when the cells run
        said = spoken(notebook, path.stem, language, to_run=True)
        for cell in said.cells:  # what only measures for the text is not run: readers have none
            if "remove-cell" in cell.metadata.get("tags", []):
                cell.source = "pass"
        if failure := execute(said, path, language):
            return failure
        store_language(notebook, said, words, outputs_file(path.stem, language), timings=timings)
    return None


def execute(notebook: nbformat.NotebookNode, path: Path, language: str) -> str | None:
    client = NotebookClient(
        notebook,
        timeout=None,  # a busy machine is no mistake
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        store_widget_state=False,
        resources={"metadata": {"path": str(path.parent)}},
    )
    try:
        client.execute(env={**os.environ, "ATTENTION_BOOK_LANGUAGE": language})
    except CellExecutionError as error:
        return f"{path}, {language}: {error}"
    return None


def store_language(
    notebook: nbformat.NotebookNode,
    said: nbformat.NotebookNode,
    words: dict[str, str],
    file: Path,
    *,
    timings: bool,
) -> None:
    """Write what a notebook shows in another language, for the cells where it is not the same."""
    tidy(said)
    said = nbformat.reads(nbformat.writes(said), as_version=4)
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    stored = {}
    for cell, other in zip(notebook.cells, said.cells, strict=True):
        tags = {*cell.metadata.get("tags", [])}
        if cell.cell_type != "code" or "remove-cell" in tags:
            continue
        made = {"source": digest(cell.source, words), "outputs": other.outputs}
        drawn = before.get(cell.id, {})
        if "keep-output" in tags and not timings and drawn.get("source") == made["source"]:
            made = drawn
        if "nbval-ignore-output" in tags:
            for output, measured in zip(other.outputs, cell.outputs, strict=True):
                output.text = with_numbers_of(output.text, measured.text)
        if made["outputs"] != cell.outputs:
            stored[cell.id] = made
    text = json.dumps(stored, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    file.parent.mkdir(exist_ok=True)
    if stored:
        file.write_text(text, encoding="utf-8")
    else:
        file.unlink(missing_ok=True)


def with_numbers_of(said: str, measured: str) -> str:
    """A text with the numbers of another, each as wide as the one that stood there."""
    number = r" *\d+(?:[.,]\d+)*"
    numbers: Iterator[str] = iter(re.findall(number, measured))
    return re.sub(number, lambda old: next(numbers, old[0]).strip().rjust(len(old[0])), said)


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
    if any(path.resolve().parent == NOTEBOOKS for path in paths):
        from attention_book import plots

        if not plots.typeface():
            print(plots.NO_TYPEFACE)
            return 2
    timings, english = "--timings" in options, "--languages" not in options
    with ThreadPoolExecutor(max_workers=1 if timings else 2) as workers:
        runs = workers.map(partial(run, timings=timings, english=english), paths)
        results = list(tqdm(runs, total=len(paths), unit="notebook"))
    failures = [result for result in results if result]
    print("\n\n".join(failures) or f"{len(paths)} notebooks ran and are stored.")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
