"""Make the student versions of all assignments.

    python -m coursework.build
    python -m coursework.build --seed "…"   also those of a course of one's own: see variants

It writes what is made by machine into the source notebooks: the helpers of the checks, and the
stored examples, which come from the reference solutions and from the known mistakes. Then otter
takes out solutions and hidden tests, and the checks that are left go into a cell that works under
any file name. What otter leaves to chance (cell ids) is made definite: building twice gives the
same bytes.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import torch
from otter.assign import main as otter_assign
from tqdm import tqdm

from attention_book.mistakes import MISTAKES
from coursework import variants
from walled_grader import assignment as assignments
from walled_grader import course
from walled_grader.mistakes import known

HELPERS = Path(__file__).with_name("helpers.py")
STUDENT = Path(__file__).parent / "student"
course.use(Path(__file__).parent)

#: Ends the cell of the checks in a student version. Otter would look for its tests in the notebook
#: itself, by the name that the notebook had when it was handed out.
WRITTEN_TESTS = '''

def write_checks(checks):
    """Put the checks into a folder of their own, whatever this notebook is called."""
    folder = Path(tempfile.mkdtemp())
    for name, source in checks.items():
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
    return str(folder)


def kept(*names):
    """The helpers of these names, which go on using each other if you use their names."""
    own = {name: globals()[name] for name in names}
    for name, thing in own.items():
        if isinstance(thing, FunctionType):
            own[name] = FunctionType(thing.__code__, own, name, thing.__defaults__)
    return own


def checks_of(checks, helpers):
    """The checks of this notebook, to which a helper's name means the helper."""

    class Checks(otter.Notebook):
        def check(self, question, global_env=None):
            results = super().check(question, {**globals(), **helpers}).test_case_results
            helpers["tell"](question, [(one.passed, one.message) for one in results])

        def check_all(self):
            for question in checks:
                self.check(question)

    return Checks(tests_dir=write_checks(checks))


grader = checks_of(visible_checks, kept(HELPER_NAMES))
'''


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="coursework.build")
    parser.add_argument("--seed", help="draws the variants of a course of one's own")
    try:
        seed = variants.settle(parser.parse_args(arguments).seed)
    except variants.SeedError as why:
        print(why, file=sys.stderr)
        return 2
    build(course.folder())
    if seed is not None:
        build(variants.draw(seed))
    return 0


def build(folder: Path) -> None:
    """Write the student versions of the course in `folder`, beside its sources."""
    before = course.folder()
    course.use(folder)
    try:
        write_sentences()
        for name in tqdm(assignments.names(), unit="assignment"):
            refresh(course.sources() / f"{name}.ipynb")
            write(name, folder / STUDENT.name)
    finally:
        course.use(before)


def write_sentences() -> None:
    """Give the grader, which knows nothing of the book, the sentences that the mistakes name."""
    path = course.mistakes() / "sentences.json"
    path.write_text(json.dumps(sentences(), ensure_ascii=False, indent=2) + "\n", "utf-8")


def sentences() -> dict[str, str]:
    """The catalogue's sentence for each name that a wrong solution gives."""
    heads = {
        head[1]
        for path in course.mistakes().glob("*/*.diff")
        for head in re.finditer(r"^=== (?:\w+: )?(.+)$", path.read_text("utf-8"), re.MULTILINE)
    }
    return {name: one.sentence for name, one in MISTAKES.items() if name in heads}


def refresh(path: Path) -> None:
    """Write helpers and stored examples into a source notebook, where they have changed."""
    notebook = nbformat.read(path, as_version=4)
    (cell,) = (cell for cell in notebook.cells if cell.id == "helpers")
    before = cell.source
    cell.source = _helpers({})
    nbformat.write(notebook, path)
    stored, made = _stored_in(before), examples(assignments.read(path))
    cell.source = _helpers(stored if _agree(stored, made) else made)
    nbformat.write(notebook, path)
    if cell.source != before:
        logging.getLogger(__name__).info("%s has new helpers or examples", path.name)


def examples(assignment: assignments.Assignment) -> dict[str, Any]:
    """What the visible checks compare with: for each, the right result and those of the mistakes.

    Raises:
        WrongTestsError: where a check cannot be run.
    """
    found: dict[str, Any] = {}
    same = assignment.names["same"]

    def record(name: str, function: Callable, *inputs: Any) -> None:
        place = f"{assignment.name}/{name.partition('_')[0]}"
        right = function(*inputs)
        mistakes: list[tuple[str, torch.Tensor]] = []
        for sentence, wrong in known(place, function.__name__, *inputs):
            if not isinstance(wrong, torch.Tensor) or same(wrong, right):
                continue
            if not any(same(wrong, result) for _, result in mistakes):
                mistakes.append((sentence, wrong))
        stored = [[sentence, _stored(wrong)] for sentence, wrong in mistakes]
        found[name] = [_stored(right), stored]

    for tests in assignment.run(0, {"expect_case": record}).results.values():
        for case in tests.test_case_results:
            if not case.passed and not case.test_case.hidden:
                raise assignments.WrongTestsError(f"{assignment.name}: {case.message}")
    return found


def _stored(tensor: torch.Tensor) -> list[Any]:
    entries = tensor.flatten().tolist()
    if tensor.is_floating_point():
        entries = [float(f"{entry:.6g}") for entry in entries]
    elif tensor.dtype == torch.bool:
        entries = [int(entry) for entry in entries]
    return [str(tensor.dtype).removeprefix("torch."), list(tensor.shape), entries]


def _stored_in(helpers: str) -> Any:
    found = re.search(r'json\.loads\(r"""(.*?)"""\)', helpers, re.DOTALL)
    return json.loads(found[1]) if found else None


def _agree(stored: Any, made: Any) -> bool:
    """Whether two sets of examples differ by rounding at most, which no two processors share."""
    if isinstance(made, dict):
        same_keys = isinstance(stored, dict) and stored.keys() == made.keys()
        return same_keys and all(_agree(stored[key], made[key]) for key in made)
    if isinstance(made, list):
        same_length = isinstance(stored, list) and len(stored) == len(made)
        return same_length and all(map(_agree, stored, made))
    if isinstance(made, float) and isinstance(stored, float):
        both_nan = math.isnan(stored) and math.isnan(made)
        return both_nan or math.isclose(stored, made, rel_tol=1e-4, abs_tol=1e-6)
    return stored == made


def _helpers(stored: dict[str, Any]) -> str:
    text = json.dumps(stored, ensure_ascii=False, separators=(",", ":"))
    # One line per mistake, so that a change shows where it is.
    text = text.replace('[["', '[\n["').replace('],["', '],\n["')
    helpers = HELPERS.read_text(encoding="utf-8").rstrip()
    return helpers.replace('json.loads("{}")', f'json.loads(r"""{text}""")')


def write(name: str, folder: Path) -> Path:
    """Write one student notebook into `folder`.

    Raises:
        WrongTestsError: where the solutions do not pass.
    """
    assignments.load(name).record(seed=0)
    source = course.sources() / f"{name}.ipynb"
    with tempfile.TemporaryDirectory() as scratch:
        # Otter says on the log what it does at each step, and in exceptions what fails.
        logging.getLogger("otter").setLevel(logging.ERROR)
        here = os.getcwd()
        try:
            otter_assign(str(source), scratch, no_pdfs=True, no_run_tests=True)
        finally:
            os.chdir(here)
        notebook = nbformat.read(Path(scratch, "student", source.name), as_version=4)
    _move_checks(notebook)
    _say_what_runs_again(notebook)
    for number, cell in enumerate(notebook.cells, 1):
        cell.id = f"cell-{number}"
    nbformat.validate(notebook)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / source.name
    nbformat.write(notebook, target)
    return target


def _move_checks(notebook: nbformat.NotebookNode) -> None:
    """From the notebook's metadata, where otter keeps them, into the cell of the helpers."""
    checks = notebook.metadata.pop("otter")["tests"]
    (cell,) = (cell for cell in notebook.cells if cell.source.startswith("# The helpers"))
    imports = (
        "import json\nimport math\nimport tempfile\nfrom pathlib import Path\n"
        "from types import FunctionType\n\nimport otter\n"
    )
    helpers = cell.source.replace("import json\nimport math\n\n", imports, 1)
    shown = "".join(f"    {name!r}: r'''\n{text.strip()}\n''',\n" for name, text in checks.items())
    defined: dict[str, Any] = {}
    exec(HELPERS.read_text(encoding="utf-8"), defined)
    names = "".join(f"\n        {name!r}," for name in defined if not name.startswith("_"))
    written = WRITTEN_TESTS.replace("HELPER_NAMES", f"{names}\n    ")
    cell.source = f"{helpers}\n\nvisible_checks = {{\n{shown}}}\n{written}".rstrip()
    cell.metadata["jupyter"] = {"source_hidden": True}


def _say_what_runs_again(notebook: nbformat.NotebookNode) -> None:
    """In place of otter's sentence about all its tests: the hidden ones do not run here."""
    (cell,) = (cell for cell in notebook.cells if "autograder tests" in cell.source)
    cell.source = "---\n\nThe next cell runs all the visible checks again."


if __name__ == "__main__":
    sys.exit(main())
