"""Write the chapters as readers get them into lab/, where they can be changed at will.

ATTENTION_BOOK_LANGUAGE=zh_CN writes the Chinese ones, into lab/zh/.

git ignores that folder. A chapter that its reader has run or changed stays as it is; the others
follow the book.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "book" / "_ext"))

from editions import EDITIONS  # noqa: E402
from readers_ext import LAB, read_book, write_editions  # noqa: E402

WRITTEN = ".written.json"
#: What this JupyterLab is told: it asks nobody for news, so that no question covers a page.
SETTINGS = Path(sys.prefix) / "share" / "jupyter" / "lab" / "settings" / "overrides.json"
QUIET = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}
}


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def refresh(folder: Path, new: Path) -> list[str]:
    """Put new editions into the readers' folder; return the names of those that it kept.

    Kept is a file that is not as it was last written, because a reader has changed it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    record = folder / WRITTEN
    written = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    kept = []
    for file in sorted(new.glob("*.ipynb")):
        mine = folder / file.name
        if mine.exists() and digest(mine) != written.get(file.name):
            kept.append(file.name)
            continue
        written[file.name] = digest(file)
        if not mine.exists() or digest(mine) != digest(file):
            mine.write_bytes(file.read_bytes())
    record.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    return kept


def be_quiet(settings: Path) -> None:
    """Switch the news off, for readers who have set nothing themselves."""
    settings.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(settings.read_text(encoding="utf-8")) if settings.exists() else {}
    settings.write_text(json.dumps({**known, **QUIET}, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    be_quiet(SETTINGS)
    language = os.environ.get("ATTENTION_BOOK_LANGUAGE") or "en"
    if language not in EDITIONS:
        print(f"There is no edition {language}: ATTENTION_BOOK_LANGUAGE is one of {[*EDITIONS]}.")
        return 2
    book = read_book(address=os.environ.get("ATTENTION_BOOK_ADDRESS", ""), language=language)
    with tempfile.TemporaryDirectory() as new:
        write_editions(Path(new), book, LAB)
        kept = refresh(ROOT / "lab" / book.folder, Path(new))
    if kept:
        print(
            f"Kept as you left them in lab/{book.folder}: {', '.join(kept)}. "
            "Delete one to have it anew."
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
