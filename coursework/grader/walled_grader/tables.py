"""Tables that spreadsheets open, in which what a student wrote stays text."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

#: Where a cell begins, and what makes a formula of it there. In countries with a decimal comma,
#: spreadsheets take a semicolon for the end of a cell, whatever the quotes around say.
FORMULA = re.compile(r"(^|[;\t])([\s\"']*)(?=[=+\-@＝＋－＠])")


def write(path: Path, header: list[str], rows: Iterable[list[Any]]) -> None:
    """Write a CSV file whole or not at all."""
    unfinished = path.with_suffix(".part")
    # Excel reads UTF-8 only where the file begins with a byte order mark.
    with unfinished.open("w", newline="", encoding="utf-8-sig") as file:
        table = csv.writer(file)
        table.writerow(header)
        table.writerows([_harmless(value) for value in row] for row in rows)
    unfinished.replace(path)


def _harmless(value: Any) -> Any:
    """A spreadsheet must not take a student's text for a formula."""
    return FORMULA.sub(r"\1\2'", value) if isinstance(value, str) else value
