"""The scripts behind `make notebooks` and `make test`."""

from __future__ import annotations

import copy
import importlib.util
import re
import subprocess
import sys
from email.message import Message
from pathlib import Path
from types import ModuleType, SimpleNamespace

import nbformat
import pytest
from browser import ROOT
from IPython.core.inputtransformer2 import TransformerManager
from nbformat.v4 import new_code_cell, new_notebook

NOTEBOOKS = sorted(ROOT.glob("notebooks/*.ipynb"))


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def execute(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "tools" / "execute.py", path, *options]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_stored_notebook_holds_nothing_of_the_machine_that_ran_it(path):
    stored = nbformat.read(path, as_version=4)
    tidied = copy.deepcopy(stored)
    tool("execute").tidy(tidied)
    pairs = zip(stored.cells, tidied.cells, strict=True)
    changed = [before.id for before, after in pairs if before != after]
    assert not changed, f"{path.name} was not stored by make notebooks: cells {changed}"
    assert tidied.metadata == stored.metadata, f"{path.name} was not stored by make notebooks"
    assert str(ROOT) not in path.read_text(encoding="utf-8")


@pytest.fixture
def written(tmp_path):
    """A notebook that prints twice and fails on purpose, written with a cell that may vary."""

    def write(*sources: str):
        cells = [new_code_cell(source, id=f"c{i}") for i, source in enumerate(sources)]
        cells[-1].metadata["tags"] = ["raises-exception"]
        path = tmp_path / "11_made_up.ipynb"
        nbformat.write(new_notebook(cells=cells), path)
        return path

    return write


def test_running_a_notebook_twice_stores_the_same_bytes(written):
    path = written(
        "import sys, time\nprint('first', flush=True); print('second', flush=True)",
        "print(time.time(), file=sys.stderr)",
        "raise ValueError('meant')",
    )
    assert execute(path).returncode == 0
    once = path.read_bytes()
    assert execute(path).returncode == 0
    assert path.read_bytes() == once
    cells = nbformat.read(path, as_version=4).cells
    assert [output.text for output in cells[0].outputs] == ["first\nsecond\n"]
    assert cells[1].outputs == []
    assert cells[2].outputs[0].traceback == ["ValueError: meant"]


@pytest.mark.parametrize("tag", ["nbval-ignore-output", "keep-output"])
def test_a_measured_time_stays_until_its_cell_changes_or_timings_are_asked_for(written, tag):
    path = written("import time; print(time.perf_counter_ns())")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].metadata["tags"] = [tag]
    nbformat.write(notebook, path)

    def measured(*options: str) -> str:
        assert execute(path, *options).returncode == 0
        return nbformat.read(path, as_version=4).cells[0].outputs[0].text

    first = measured()
    assert measured() == first
    second = measured("--timings")
    assert second != first
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].source += "  # changed"
    nbformat.write(notebook, path)
    assert measured() != second


@pytest.mark.parametrize(("changed", "kept"), [(0, [False, False]), (1, [True, False])])
def test_what_draws_a_time_is_drawn_anew_when_the_time_is(written, changed, kept):
    path = written("import time; print(time.perf_counter_ns())", "print(time.perf_counter_ns())")
    notebook = nbformat.read(path, as_version=4)
    for cell, tag in zip(notebook.cells, ["nbval-ignore-output", "keep-output"], strict=True):
        cell.metadata["tags"] = [tag]
    nbformat.write(notebook, path)

    def outputs() -> list[str]:
        assert execute(path).returncode == 0
        return [cell.outputs[0].text for cell in nbformat.read(path, as_version=4).cells]

    before = outputs()
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[changed].source += "  # changed"
    nbformat.write(notebook, path)
    assert [now == then for now, then in zip(outputs(), before, strict=True)] == kept


def test_a_cell_that_fails_unmeant_is_named_and_nothing_is_stored(written):
    path = written("1 / 0", "2")
    before = path.read_bytes()
    ran = execute(path)
    assert ran.returncode == 1
    assert "11_made_up.ipynb" in ran.stdout
    assert "ZeroDivisionError" in ran.stdout
    assert path.read_bytes() == before


def test_one_failing_part_fails_the_whole_and_the_others_still_run(monkeypatch, capsys):
    check = tool("check")
    parts = {
        "first": [sys.executable, "-c", "print('one'); raise SystemExit(3)"],
        "second": [sys.executable, "-c", "print('two')"],
    }
    monkeypatch.setattr(check, "PARTS", parts)
    assert check.main() == 1
    said = capsys.readouterr().out
    assert "two" in said
    assert "first      failed" in said
    assert "second     ok" in said


@pytest.fixture
def for_colab(tmp_path):
    """The chapters as Colab opens them, and what the first cell is as Python."""
    written = tool("colab").write(tmp_path, "https://github.com/owner/repo", "a" * 40)
    assert [path.name for path in written] == [path.name for path in NOTEBOOKS]
    first = nbformat.read(written[0], as_version=4).cells[0].source
    return written, TransformerManager().transform_cell(first)


def test_a_chapter_for_colab_is_the_chapter_behind_one_cell(for_colab):
    for path, chapter in zip(for_colab[0], NOTEBOOKS, strict=True):
        behind = nbformat.read(path, as_version=4).cells[1:]
        assert behind == nbformat.read(chapter, as_version=4).cells


def test_on_colab_the_package_is_fetched_at_its_commit_only_where_it_is_missing(
    for_colab, monkeypatch
):
    ran = []
    shell = SimpleNamespace(run_line_magic=lambda *magic: ran.append(magic))
    exec(for_colab[1], {"get_ipython": lambda: shell})
    assert ran == []
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    exec(for_colab[1], {"get_ipython": lambda: shell})
    [(magic, line)] = ran
    assert magic == "pip"
    assert f"attention-book @ git+https://github.com/owner/repo@{'a' * 40}" in line
    assert re.search(r"anywidget==[\d.]+ myst-nb==[\d.]+$", line)


def test_building_again_starts_from_nothing_and_keeps_the_packed_editions(tmp_path):
    built = tmp_path / "_build"
    for folder in ("html", ".doctrees"):
        (built / folder).mkdir(parents=True)
        (built / folder / "gone").touch()
    (built / "book.zip").touch()
    tool("book").clear(built)
    assert [path.name for path in built.iterdir()] == ["book.zip"]
    tool("book").clear(tmp_path / "nothing built yet")


def test_a_package_that_states_no_licence_is_named(monkeypatch, capsys):
    licences = tool("licences")
    stating, silent = Message(), Message()
    stating["Name"], stating["License-Expression"] = "open", "MIT"
    silent["Name"] = "silent"
    found = [SimpleNamespace(metadata=said, version="1") for said in (stating, silent)]
    monkeypatch.setattr(licences, "distributions", lambda: found)
    assert licences.main() == 1
    assert "without a stated licence: silent" in capsys.readouterr().out
    silent["License-File"] = "LICENSE"
    found[1].read_text = {"licenses/LICENSE": "Copyright\n\nThe Fair License\n"}.get
    assert licences.main() == 0
    assert "The Fair License" in capsys.readouterr().out
    monkeypatch.setattr(licences, "distributions", lambda: found[:1])
    assert licences.main() == 0
