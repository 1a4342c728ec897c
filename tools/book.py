"""Build the book from nothing into _build/html; a warning is an error.

From nothing, because a page that was built before does not repeat its warnings, and a page that is
gone from the contents would stay.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    shutil.rmtree(ROOT / "_build", ignore_errors=True)
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
