"""A course of one's own: a seed draws the bugs of the bug hunt, numbers and orders of arguments.

    python -m coursework.build --seed "autumn at our school"

It writes `coursework/own`, a course as `coursework` is one, with assignments, known mistakes and
student versions. The seed is kept there; every student version has a mark of it, so that the grader
notices notebooks of another seed.
"""

from __future__ import annotations

import hashlib
import random
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from walled_grader import course

HERE = Path(__file__).parent
OWN = HERE / "own"
POOL = HERE / "pool"
BUG_HUNT = "4_bug_hunt"
BUGS = 12  #: in the bug hunt and in the pool together
DRAWN = 5


class SeedError(Exception):
    """A course's seed is lost, or is another one; the message says what to do."""


@dataclass(frozen=True)
class Choice:
    """What may stand in a question: the first text as it is, or one of those that replace it."""

    assignment: str
    question: str
    texts: tuple[tuple[str, ...], ...]

    def changes(self, draw: random.Random) -> list[tuple[str, str]]:
        return list(zip(self.texts[0], draw.choice(self.texts), strict=True))


#: A text must say nothing but what is to be replaced; the longest first.
CHOICES = (
    Choice("5_language_model", "q1", (("10000",), ("500",), ("2000",), ("50000",))),
    Choice("5_language_model", "q2", (("logits, k, p",), ("logits, p, k",))),
    Choice("5_language_model", "q4", (("lengths, total",), ("total, lengths",))),
    Choice(
        BUG_HUNT,
        "q7",
        (
            ("`width = 3`", "number_7 = 7", "number_7 = 4", "number_7, 4", "number_7 = 3"),
            ("`width = 2`", "number_7 = 5", "number_7 = 3", "number_7, 3", "number_7 = 2"),
            ("`width = 4`", "number_7 = 9", "number_7 = 5", "number_7, 5", "number_7 = 4"),
        ),
    ),
    Choice(
        BUG_HUNT,
        "q8",
        (
            ("ln 9", "= 10", "= 5", "number_8, 5", "= 9", "= 3"),
            ("ln 25", "= 26", "= 13", "number_8, 13", "= 25", "= 5"),
            ("ln 49", "= 50", "= 25", "number_8, 25", "= 49", "= 7"),
        ),
    ),
    Choice(
        BUG_HUNT,
        "q10",
        (
            ("has 5 words, its target 2", "= 2", "number_10, 2", "= 5"),
            ("has 4 words, its target 3", "= 3", "number_10, 3", "= 4"),
            ("has 5 words, its target 1", "= 1", "number_10, 1", "= 5"),
        ),
    ),
)


def mark(seed: str) -> str:
    """What a student's notebook says of the seed, without giving it away."""
    return hashlib.sha256(f"variant {seed}".encode()).hexdigest()[:8]


def settle(seed: str | None, own: Path = OWN) -> str | None:
    """The seed of the course in `own`, once it is certain; None for a course without one.

    Raises:
        SeedError: where another seed is kept there, or the seed is lost.
    """
    kept = own / "seed.txt"
    before = kept.read_text(encoding="utf-8").strip() if kept.exists() else None
    given_out = _mark_in(own)
    if given_out and before is not None and mark(before) != given_out:
        raise SeedError(
            f"{kept} was changed: the assignments beside it were drawn with another seed; put that "
            f"seed back, or remove {own} to begin another course."
        )
    if given_out and before is None and (seed is None or mark(seed) != given_out):
        raise SeedError(
            f"{kept} is lost: give SEED=…, the one that the assignments beside it were drawn with, "
            f"or remove {own} to begin another course."
        )
    if seed is not None and before is not None and seed != before:
        raise SeedError(
            f"This course has the seed “{before}”, and its assignments may be given out already: "
            f"use that one, or remove {own} to begin another course."
        )
    return before if seed is None else seed


def _mark_in(own: Path) -> str:
    for path in sorted((own / "assignments").glob("*.ipynb")):
        return course.variant(cell.source for cell in nbformat.read(path, as_version=4).cells)
    return ""


def draw(seed: str, own: Path = OWN) -> Path:
    """Write the course of this seed into `own`: sources, known mistakes, other languages."""
    for folder in ("assignments", "mistakes", "languages"):
        shutil.rmtree(own / folder, ignore_errors=True)
        shutil.copytree(HERE / folder, own / folder)
    (own / "seed.txt").write_text(f"{seed}\n", encoding="utf-8")
    numbers = random.Random(f"bugs {seed}").sample(range(1, BUGS + 1), DRAWN)
    bug_hunt(numbers, own, random.Random(f"numbers {seed}"))
    for choice in CHOICES:
        if choice.assignment != BUG_HUNT:
            path = own / "assignments" / f"{choice.assignment}.ipynb"
            notebook = nbformat.read(path, as_version=4)
            changes = choice.changes(random.Random(f"{choice.question} {seed}"))
            for cell in questions(notebook)[choice.question]:
                cell.source = replaced(cell.source, changes)
            nbformat.write(notebook, path)
            known = own / "mistakes" / choice.assignment / f"{choice.question}.diff"
            known.write_text(replaced(known.read_text("utf-8"), changes), encoding="utf-8")
    for path in (own / "assignments").glob("*.ipynb"):
        notebook = nbformat.read(path, as_version=4)
        place = next(n for n, cell in enumerate(notebook.cells) if cell.id == "helpers")
        stamp = nbformat.v4.new_code_cell(
            f'variant = "{mark(seed)}"  # leave this line', id="variant"
        )
        notebook.cells.insert(place + 1, stamp)
        nbformat.write(notebook, path)
    return own


def bug_hunt(numbers: list[int], own: Path, random_numbers: random.Random) -> None:
    """Write a bug hunt of these bugs, in this order; 1 to 5 are those of the plain course."""
    path = own / "assignments" / f"{BUG_HUNT}.ipynb"
    notebook, pool = (nbformat.read(one, as_version=4) for one in (path, POOL / "bugs.ipynb"))
    bugs = {**questions(notebook), **questions(pool)}
    first = next(n for n, cell in enumerate(notebook.cells) if cell.id == "q1-begin")
    mistakes = own / "mistakes" / BUG_HUNT
    texts = {
        path.stem: path.read_text(encoding="utf-8")
        for folder in (HERE / "mistakes" / BUG_HUNT, POOL)
        for path in sorted(folder.glob("q*.diff"))
    }
    changes = {c.question: c.changes(random_numbers) for c in CHOICES if c.assignment == BUG_HUNT}
    shutil.rmtree(mistakes)
    mistakes.mkdir()
    cells, minutes = [], 0
    for new, old in enumerate(numbers, 1):
        name = f"q{old}"
        for cell in bugs[name]:
            source = replaced(cell.source, changes.get(name, []))
            minutes += sum(map(int, re.findall(r"points · (\d+) minutes", source)))
            cells.append(
                NotebookNode(
                    cell, id=renumbered(cell.id, old, new), source=renumbered(source, old, new)
                )
            )
        text = renumbered(replaced(texts[name], changes.get(name, [])), old, new)
        (mistakes / f"q{new}.diff").write_text(text, encoding="utf-8")
    notebook.cells[first:] = cells
    intro = notebook.cells[1]
    intro.source = intro.source.replace("**80 minutes", f"**{minutes} minutes")
    nbformat.write(notebook, path)


def questions(notebook: NotebookNode) -> dict[str, list[NotebookNode]]:
    """The cells of each question."""
    found: dict[str, list[NotebookNode]] = {}
    name = ""
    for cell in notebook.cells:
        if cell.id.endswith("-begin") and cell.source.startswith("# BEGIN QUESTION"):
            name = cell.id.removesuffix("-begin")
        if name:
            found.setdefault(name, []).append(cell)
        if cell.source.startswith("# END QUESTION"):
            name = ""
    return found


def replaced(text: str, changes: list[tuple[str, str]]) -> str:
    """The text after all changes at once, so that none changes what another has put there."""
    new = dict(changes)
    if not new:
        return text
    pattern = "|".join(rf"{re.escape(old)}(?![0-9])" for old in new)
    return re.sub(pattern, lambda found: new[found[0]], text)


def renumbered(text: str, old: int, new: int) -> str:
    """A question's text with another number: of the question and of the names that it asks for."""
    text = re.sub(rf"(?<![A-Za-z0-9])q{old}(?![0-9])", f"q{new}", text)
    text = re.sub(rf"\b(cause|number|broken|repaired)_{old}\b", rf"\g<1>_{new}", text)
    return text.replace(f"## Question {old} ·", f"## Question {new} ·")
