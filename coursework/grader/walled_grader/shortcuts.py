"""A question may forbid functions of a library: what it asks for is to be written by the student.

The jail makes the calls of such a question where these functions refuse to run; what gave nothing
there is made once more where they do. What is told of both decides: an answer that called one has
no points, and waits for a person, who may find that it needed none. One that only works where it
may call them keeps its points and waits, too.

What cannot be refused is named: a person looks at code in which it stands, and no points are taken.
"""

from __future__ import annotations

import dataclasses
import io
import re
import tokenize
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from .text import sentence, told

if TYPE_CHECKING:
    from otter.test_files import GradingResults

#: Bounded, so that a search takes no longer than the code is long: it runs outside of the jail.
MODULES = r"(?:\.\w+){0,12}"
IMPORTED = r" import (?:(?! import ).)*\b"
#: Ways to run a forbidden function unseen: what a name in the code may do, and those names.
WAYS = {
    "writes into memory": (
        *("_?ctypes", "ctypeslib", "__array_interface__", "__array_struct__", "stride_tricks"),
    ),
    "runs code that does not stand in the notebook": (
        *("marshal", "importlib", "_imp", "runpy", "__import__", "__loader__", "c?pickle"),
        *("runsource", "runcode", "CompilationUnit", "PackageImporter"),
        rf"jit(?:\.|{IMPORTED})load",
        r"(?<!\.)(?:exec|eval|compile)(?= ?\(| [,)\]\n]| +\Z)",
    ),
    "finds what refuses, or comes into it": (
        *("_getframe", "_current_frames", "currentframe", "tb_frame", "f_(?:back|globals|locals)"),
        *("getprofile", "pthread_sigmask", "interrupt_main", rf"gc(?:\.|{IMPORTED})enable"),
    ),
    "is a private part of PyTorch": (
        *("_refs", "_decomp", "_prims", "_inductor", "_higher_order_ops", "_VF"),
        rf"(?:torch|F|nn){MODULES}\._(?!_|dynamo)\w+",
        rf"(?:torch|functional){MODULES}{IMPORTED}_(?!_|dynamo)\w+",
    ),
    "computes where nothing is seen": ("onnx", rf"jit(?:\.|{IMPORTED})_?fork", "run_backward"),
}


def ways(cells: Sequence[str], given: Iterable[str]) -> Iterator[str]:
    """The first of each of these ways in a notebook's code, as a person reads it.

    Args:
        given: cells that were handed out.
    """
    known = set(given)
    codes = {number: _code(cell) for number, cell in enumerate(cells, 1) if cell not in known}
    for what, names in WAYS.items():
        search = re.compile(rf"(?<!\w)(?:{'|'.join(names)})(?!\w)").search
        found = ((number, hit[0]) for number, code in codes.items() if (hit := search(code)))
        for number, name in islice(found, 1):
            yield f"`{sentence(name, most=60)}` in code cell {number} {what}"


def _code(cell: str) -> str:
    """A cell without comments, its names as Python reads them, and texts that it puts together."""
    dropped = tokenize.COMMENT, tokenize.NL
    with suppress(tokenize.TokenError, SyntaxError):  # a line for Jupyter: the whole text is read
        cell = " ".join(one.string for one in _tokens(cell) if one.type not in dropped)
    cell = re.sub(r"(['\"]) (?:\+ )?\1", "", unicodedata.normalize("NFKC", cell))
    return re.sub(r"(?<![\s\\])[\s\\]*\.[\s\\]*", ".", cell)


def _tokens(cell: str) -> Iterator[tokenize.TokenInfo]:
    for one in tokenize.generate_tokens(io.StringIO(cell).readline):
        if one.type == tokenize.ERRORTOKEN and one.string in ("'", '"'):
            # Before Python 3.12 the rest of the line is read anew from each quote without an end.
            raise tokenize.TokenError("a string without an end")
        yield one


def apply(
    results: GradingResults,
    answers: Mapping[str, tuple[str, ...]],
    made: Iterable[tuple[dict[str, Any], dict[str, Any] | None]],
) -> dict[str, dict[str, Any]]:
    """Take the points of questions whose answers called what they forbid.

    Args:
        answers: of each question.
        made: the calls, each with its reply.

    Returns for each question that a person should look at: the `names` of what was called (none: it
    cannot be told, and nothing was taken), the `score` that the tests gave, and whether all that
    can be told is that it was too `slow` where functions refuse.
    """
    used: dict[str, dict[str, None]] = {}
    refused = set()  # the answers that gave nothing there for another reason than time
    for call, reply in made:
        if reply is not None and "used" in reply:
            used.setdefault(call["name"], {}).update(dict.fromkeys(reply["used"]))
            if not reply.get("slow"):
                refused.add(call["name"])
    verdicts = {}
    for question, own in answers.items():
        if not used.keys() & set(own):
            continue
        names = list(dict.fromkeys(name for answer in own for name in used.get(answer, ())))
        tests = results.results[question]
        slow = not names and not refused & set(own)
        verdicts[question] = {"names": names, "score": round(tests.score, 5), "slow": slow}
        if names:
            sentence = told(f"The answer uses {names[0]}, but the task is to write it yourself.")
            tests.test_case_results = [
                dataclasses.replace(case, passed=False, message=f"❌ Test case failed\n{sentence}")
                for case in tests.test_case_results
            ]
    return verdicts
