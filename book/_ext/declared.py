"""What `attention_book.exercises` declares of an exercise, also where PyTorch is not installed."""

from __future__ import annotations

import re
import sys
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from sphinx.ext.autodoc.mock import mock

if TYPE_CHECKING:
    from attention_book.exercises.checker import Exercise

CHECK = re.compile(r'^check\("(\d+\.\d+)", \w+\)$', re.MULTILINE)


def named(source: str) -> str:
    """The exercise that a cell checks, or nothing."""
    found = CHECK.search(source)
    return found[1] if found else ""


def declared(name: str) -> Exercise | None:
    """An exercise by its name; None for one that has no declaration."""
    if find_spec("attention_book") is None:
        sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))
    with nullcontext() if "torch" in sys.modules or find_spec("torch") else mock(["torch"]):
        from attention_book.exercises.checker import exercises
    return exercises(int(name.partition(".")[0])).get(name)
