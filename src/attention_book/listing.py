"""The package's own code, shown where a chapter is about it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from textwrap import dedent
from typing import Any


def show(*functions: Callable[..., Any]) -> None:
    """Print the code of each function as it runs, without its docstring.

    Raises:
        TypeError: for what has no Python code, such as a function that PyTorch compiles.
    """
    print("\n\n".join(map(_code, functions)))


def _code(function: Callable[..., Any]) -> str:
    code = dedent(inspect.getsource(function))
    lines = code.splitlines()
    (definition,) = ast.parse(code).body
    first = definition.body[0]  # type: ignore[attr-defined]
    if ast.get_docstring(definition) is not None:  # type: ignore[arg-type]
        del lines[first.lineno - 1 : first.end_lineno]
    return "\n".join(lines).rstrip()
