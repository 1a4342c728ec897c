"""Tables as CSV: an instructor's, whose faults are told by their row, and those made here."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Where a cell begins, and what makes a formula of it there. In countries with a decimal comma,
#: spreadsheets take a semicolon for the end of a cell, whatever the quotes around say.
FORMULA = re.compile(r"(^|[;\t])([\s\"']*)(?=[=+\-@＝＋－＠])")


class SheetError(Exception):
    """A table cannot be used; the message says which, where and why."""


@dataclass(frozen=True)
class Row:
    """One line of a table: its cells by column, without the spaces around them."""

    file: str
    number: int  #: as a spreadsheet counts: the header is row 1
    cells: Mapping[str, str]

    def __getitem__(self, column: str) -> str:
        return self.cells.get(column, "")

    def error(self, why: str) -> SheetError:
        return SheetError(f"{self.file}, row {self.number}: {why}.")


def read(
    path: Path, needed: tuple[str, ...], other_names: Mapping[str, str] | None = None
) -> list[Row]:
    """Read a CSV file as a spreadsheet saves it: with commas, semicolons or tabs.

    Columns keep their names, except those in `other_names`, which become the name given there.
    Rows without any text are left out, and a table that is not there has no rows.

    Raises:
        SheetError: where the file is not text, or lacks a column of `needed`.
    """
    if not path.exists():
        return []
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise SheetError(
            f"{path.name} is not UTF-8 text: save it as “CSV UTF-8 (comma delimited)”."
        ) from None
    first = text.partition("\n")[0]
    separator = max(",;\t", key=first.count)
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    except csv.Error as error:
        raise SheetError(f"{path.name} cannot be read as CSV: {error}.") from None
    header = [name.strip() for name in lines[0]] if lines else []
    header = [(other_names or {}).get(name, name) for name in header]
    twice = [name for name in needed if header.count(name) > 1]
    if twice:
        raise SheetError(f"{path.name} has the column {twice[0]} twice: remove one of them.")
    missing = [name for name in needed if name not in header]
    if missing:
        raise SheetError(
            f"{path.name} has no column {' and no column '.join(missing)}: its first row is "
            f"{', '.join(header)[:200] or 'empty'}."
        )
    return [
        Row(path.name, number, dict(zip(header, (cell.strip() for cell in line), strict=False)))
        for number, line in enumerate(lines[1:], 2)
        if any(cell.strip() for cell in line)
    ]


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
