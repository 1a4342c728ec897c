"""Write the chapters as Colab opens them: plain, and with a first cell that fetches the package.

Colab opens a notebook without the repository around it. The publishing workflow puts what this
writes on the branch that the Colab buttons open.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "book" / "_ext"))

from readers_ext import ALONE, read_book, write_editions  # noqa: E402


def main() -> int:
    repository = os.environ.get("ATTENTION_BOOK_REPOSITORY", "")
    if not repository:
        print("Say where the package is fetched from: ATTENTION_BOOK_REPOSITORY=https://…")
        return 2
    book = read_book(address=os.environ.get("ATTENTION_BOOK_ADDRESS", ""), repository=repository)
    written = write_editions(ROOT / "_build" / "colab" / "notebooks", book, ALONE)
    print(f"{len(written)} chapters for Colab are in {ROOT / '_build' / 'colab'}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
