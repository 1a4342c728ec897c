"""What marking tells students, as it stands in the course and in the grader.

The messages of a catalogue are taken from here. The grader puts a translation in the place of a
sentence that a result holds, and a translated assignment in that of one that its checks print.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import nbformat

COURSEWORK = Path(__file__).resolve().parents[2] / "coursework"
GRADER = COURSEWORK / "grader" / "walled_grader"
#: What takes a sentence that students read of the grader, and its files that have such sentences.
TOLD = {"fail", "say", "told", "NoResultError", "StoppedError", "LoadingTooLongError"}
TOLD |= {"RuntimeError", "UnreadableError"}
TELLING = ("grader", "assignment", "replay", "jail", "shortcuts", "submissions")


def feedback_messages(assignment: str = "") -> Iterator[tuple[Path, int, str]]:
    """What marking tells students: titles, what the checks say, the known mistakes, and what the
    grader says of a notebook; values are {0}, {1} …

    Args:
        assignment: only what a notebook of this assignment can say where a student runs it.
    """
    yield from _told_in(COURSEWORK / "helpers.py")
    for path in sorted(COURSEWORK.glob(f"assignments/{assignment or '*'}.ipynb")):
        yield from _told_in_notebook(path)
    for path in sorted(COURSEWORK.glob(f"mistakes/{assignment or '*'}/*.diff")):
        yield from _mistakes_in(path)
    if assignment:
        return
    yield from _told_in_notebook(COURSEWORK / "pool" / "bugs.ipynb")
    for path in sorted(COURSEWORK.glob("pool/*.diff")):
        yield from _mistakes_in(path)
    for name in TELLING:
        yield from _told_in(GRADER / f"{name}.py")
    page = (GRADER / "report.py").read_text(encoding="utf-8")
    for said in re.finditer(r'say\(\s*"([^"]+)"', page):
        yield GRADER / "report.py", page[: said.start()].count("\n") + 1, said[1]


def _told_in_notebook(path: Path) -> Iterator[tuple[Path, int, str]]:
    for number, cell in enumerate(nbformat.read(path, as_version=4).cells, 1):
        if cell.cell_type == "markdown":
            for title in re.findall(r"^##? (.+)$", cell.source, re.MULTILINE):
                yield path, number, title
        elif cell.cell_type == "code":
            # A test begins with otter's settings, and where solutions are are marks of otter's.
            for _, _, text in _told_in(path, cell.source):
                yield path, number, text


def _mistakes_in(path: Path) -> Iterator[tuple[Path, int, str]]:
    shared = json.loads((COURSEWORK / "mistakes" / "sentences.json").read_text(encoding="utf-8"))
    for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if mistake := re.match(r"=== (?!right)(?:\w+: )?(.+)", text):
            yield path, line, shared.get(mistake[1], mistake[1])


def _told_in(path: Path, source: str = "") -> Iterator[tuple[Path, int, str]]:
    """The sentences that a program hands to what tells them, in its order."""
    tree = ast.parse(source or path.read_text(encoding="utf-8"))
    known: dict[str, ast.expr] = {}
    for one in ast.walk(tree):
        if isinstance(one, ast.Assign):
            target = one.targets[0]
            both = isinstance(target, ast.Tuple) and isinstance(one.value, ast.Tuple)
            pairs = zip(target.elts, one.value.elts, strict=True) if both else [(target, one.value)]
            known |= {name.id: value for name, value in pairs if isinstance(name, ast.Name)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", "")
            texts = node.args[:1] if name in TOLD else []
            texts += [word.value for word in node.keywords if word.arg == "failed"]
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            texts = [value for key, value in pairs if getattr(key, "value", None) == "error"]
        else:
            continue
        found += [(text.lineno, said) for text in texts if (said := _template(text, known))]
    yield from ((path, line, text) for line, text in sorted(found))


def _template(node: ast.expr, known: dict[str, ast.expr]) -> str:
    """A sentence with places for its values; nothing where it is not written out."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name) if name.isupper() and name in known:
            return _template(known[name], known)
        case ast.Call(func=ast.Attribute(value=ast.Name() as text, attr="format")):
            places = count()
            return re.sub(r"\{[^}]*\}", lambda _: f"{{{next(places)}}}", _template(text, known))
        case ast.IfExp(body=one):
            return _template(one, known)
        case ast.JoinedStr(values=parts):
            places, said = count(), ""
            for part in parts:
                value = part.value if isinstance(part, ast.FormattedValue) else part
                said += _template(value, known) or f"{{{next(places)}}}"
            return said if re.search("[a-z]", said) else ""
    return ""
