"""Notebooks as students hand them in, and tables as instructors read them."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def notebook(cells: Iterable[str], **metadata: Any) -> str:
    """A notebook of these code cells, of Python where no metadata says otherwise."""
    code = {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": []}
    return json.dumps(
        {
            "cells": [{**code, "source": source} for source in cells],
            "metadata": metadata or {"kernelspec": {"name": "python3", "language": "python"}},
            "nbformat": 4,
            "nbformat_minor": 4,
        }
    )


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a table, as a spreadsheet reads it."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))
