"""Whose code is alike: pairs of files to read side by side, never a verdict.

A file's code is reduced to its syntax: names that the student chose, comments, docstrings, layout
and the values of literals are gone. Every run of `LENGTH` neighbouring parts of that syntax is a
fingerprint. What the assignment itself gives, and what very many wrote, tells nothing and is left
out. The similarity of two files is the share of the smaller one's fingerprints that
the larger one has, too.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from . import layout, sheets
from .assignment import Assignment
from .gradebook import Gradebook
from .submissions import UnreadableError, code_cells
from .text import printable

FILES = "similarity.html", "similarity.csv"
#: Shorter runs are in everybody's code; longer ones are broken by a single inserted statement.
LENGTH = 12
#: With fewer fingerprints of their own, two files are alike by chance.
FEWEST = 20
#: What more files than this hold is the usual answer.
COMMON = 40
#: Of so many pairs the page shows the code; the table has all pairs.
SHOWN = 50
#: Of each file's code, so many characters are compared and shown.
LONGEST = 100_000
#: More fingerprints than any answer has. With at most COMMON holders of each, a file costs at most
#: MOST * COMMON / 2 steps, however alike the files are.
MOST = 5_000

PAGE = layout.ENVIRONMENT.from_string(
    """\
{% extends "frame" %}
{% block content %}
<p>{{ pairs | length }} {{ "pair" if pairs | length == 1 else "pairs" }} of files to read side by
side. <strong>A number on this page proves nothing.</strong> Read the code, ask both students to
explain it, and decide after that.</p>
<ul>
<li>Honest answers are alike where the task leaves little choice, and so are those of students who
worked together as you allowed, or used the same page of documentation or the same assistant.</li>
<li>The page cannot say who wrote first. It misses what was rewritten in other words, what came from
outside the course, and what more than {{ common }} files have in common.</li>
</ul>
<p class="quiet">Compared are runs of {{ length }} neighbouring parts of the syntax, without names,
comments, layout and literal values, and without what the assignment gives. The share is that of the
smaller file.</p>
{% if left_out %}
<p>Not compared, or not in full, because they have far more code than the answers need:
{{ left_out | map(attribute="name") | join(", ") }}.</p>
{% endif %}
{% for pair in pairs[:shown] %}
<h2>{{ pair.first.student }} and {{ pair.second.student }}</h2>
<p>{% if pair.identical %}The two files are the same to the byte.
{% else %}{{ pair.share | percent }} of {{ pair.fingerprints }} fingerprints.
{% endif %}</p>
<details><summary>Read the code</summary>
<div class="pair">
{% for file in (pair.first, pair.second) %}
<div><h3>{{ file.name }}</h3>
<pre tabindex="0">{{ file.code }}</pre></div>
{% endfor %}
</div></details>
{% endfor %}
{% if pairs | length > shown %}
<p>{{ pairs | length - shown }} more are in similarity.csv.</p>
{% endif %}
{% endblock %}
"""
)


@dataclass(frozen=True)
class File:
    """One file to compare."""

    student: str
    name: str
    digest: str  #: of its bytes
    cells: tuple[str, ...]

    @property
    def code(self) -> str:
        """Its code as the page shows it: the beginning, where it is long, and without a character
        that is invisible or turns the direction of writing."""
        code = "\n\n".join(self.cells)
        lines = code[: LONGEST + 1].split("\n")
        shown = "\n".join(printable(line.expandtabs(4)) for line in lines)
        return shown if len(shown) <= LONGEST else shown[:LONGEST] + "\n… and more in the file."


@dataclass(frozen=True)
class Pair:
    """Two files of different students."""

    first: File
    second: File
    share: float  #: from 0 to 1
    fingerprints: int  #: how many the smaller file has
    identical: bool  #: whether the files are the same to the byte


def fingerprints(cells: Iterable[str]) -> set[int]:
    """The fingerprints of a notebook's code; a cell that is not Python has none."""
    found: set[int] = set()
    room = LONGEST
    for cell in cells:
        room -= len(cell)
        if room < 0:
            break  # more is no answer, and to read it takes memory
        try:
            tree = ast.parse(cell)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        parts = list(_parts(tree))
        found.update(hash(tuple(parts[i : i + LENGTH])) for i in range(len(parts) - LENGTH + 1))
    return found


def _parts(tree: ast.AST) -> Iterator[str]:
    """The syntax of a program in its order, without chosen names and literal values."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring
        # Which method is called, or which attribute read, is no choice of spelling.
        yield f".{node.attr}" if isinstance(node, ast.Attribute) else type(node).__name__
        waiting += [
            child
            for child in reversed(list(ast.iter_child_nodes(node)))
            if not isinstance(child, ast.expr_context)
        ]


def pairs(
    files: Sequence[File], given: Iterable[str], least: float = 0.6
) -> tuple[list[Pair], list[File]]:
    """The pairs of files that are alike, those that are the same to the byte first, and the files
    that have too much code to be compared with others, or to be compared in full.

    Of files that are the same to the byte, the first is paired with each of the others, and is
    compared with the rest in their place.

    Args:
        given: the code cells of what was handed out.
        least: the smallest share that is listed.
    """
    known = fingerprints(given)
    same: defaultdict[str, list[File]] = defaultdict(list)
    for file in files:
        same[file.digest].append(file)
    firsts = [group[0] for group in same.values()]
    own = [fingerprints(file.cells) - known for file in firsts]
    found = [
        Pair(group[0], other, 1.0, len(marks), identical=True)
        for group, marks in zip(same.values(), own, strict=True)
        for other in group[1:]
        if other.student != group[0].student and marks
    ]
    left_out = [
        file
        for file, marks in zip(firsts, own, strict=True)
        if len(marks) > MOST or sum(map(len, file.cells)) > LONGEST
    ]
    holders: defaultdict[int, list[int]] = defaultdict(list)
    for number, marks in enumerate(own):
        for mark in marks if len(marks) <= MOST else ():
            holders[mark].append(number)
    shared: Counter[tuple[int, int]] = Counter()
    sizes: Counter[int] = Counter()
    for holding in holders.values():
        if len(holding) <= COMMON:
            sizes.update(holding)
            shared.update(combinations(holding, 2))
    for (one, other), number in shared.items():
        first, second = firsts[one], firsts[other]
        smaller = min(sizes[one], sizes[other])
        if first.student != second.student and smaller >= FEWEST and number / smaller >= least:
            found.append(Pair(first, second, number / smaller, smaller, identical=False))
    found.sort(key=lambda p: (not p.identical, -p.share, p.first.name, p.second.name))
    return found, left_out


def write(out: Path, book: Gradebook, assignment: Assignment) -> None:
    """Write the pairs as a page to read and as a table."""
    found, left_out = pairs(_readable(book), assignment.given)
    sheets.write(
        out / "similarity.csv",
        ["student", "file", "other student", "other file", "share", "fingerprints", "identical"],
        (
            [
                *(pair.first.student, pair.first.name, pair.second.student, pair.second.name),
                *(round(pair.share, 3), pair.fingerprints, "yes" if pair.identical else "no"),
            ]
            for pair in found
        ),
    )
    how = {"shown": SHOWN, "length": LENGTH, "common": COMMON}
    page = PAGE.render(title=f"{book.title}: similar code", pairs=found, left_out=left_out, **how)
    (out / "similarity.html").write_text(page, encoding="utf-8")


def _readable(book: Gradebook) -> list[File]:
    files: dict[str, File] = {}  # a group's file is the file of one of them
    for mark in book.marks:
        one, extra = mark.submission, mark.extra
        try:
            if extra["readable"]:
                cells = tuple(code_cells(one))
                files[one.key] = File(mark.person.name, one.shown, extra["digest"], cells)
        except (UnreadableError, OSError):
            continue  # gone or changed since it was marked
    return list(files.values())
