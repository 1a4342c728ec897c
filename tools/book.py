"""Build the book from nothing into _build/html; a warning is an error.

From nothing, because a page that was built before does not repeat its warnings, and a page that is
gone from the contents would stay. The editions that were packed or printed stay: they are files.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def clear(built: Path) -> None:
    for folder in built.glob("*/"):
        shutil.rmtree(folder)


def main() -> int:
    clear(ROOT / "_build")
    command = [Path(sys.executable).parent / "jupyter-book", "build", ".", "-W", "--keep-going"]
    built = subprocess.run([*command, "--quiet"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if built.returncode:
        print(built.stdout, end="")
        print("The book was not built: each WARNING above names its page and line.")
        return 1
    print(f"The book is built. Open {(ROOT / '_build/html/index.html').as_uri()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
