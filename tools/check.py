"""Run every check of the repository, show each part's output, and fail if one part fails.

All parts run even if one fails, so that a single run shows everything that is wrong.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
WORKERS = ["-n", "auto", "--dist", "loadfile"]  # one worker a file: a notebook is one session
PYTEST = [str(BIN / "python"), "-m", "pytest"]
PARTS = {
    "style": [str(BIN / "ruff"), "check", "."],
    "format": [str(BIN / "ruff"), "format", "--check", "."],
    "types": [str(BIN / "mypy")],
    "workflows": [
        str(BIN / "check-jsonschema"),
        "--builtin-schema",
        "vendor.github-workflows",
        *map(str, sorted((ROOT / ".github/workflows").glob("*.yml"))),
    ],
    "packages": [str(BIN / "python"), "-m", "pip", "check"],
    "licences": [str(BIN / "python"), "tools/licences.py"],
    "book": [str(BIN / "python"), "tools/book.py"],
    "notebooks": [*PYTEST, "--nbval", "notebooks", *WORKERS],
    "tests": [*PYTEST, *WORKERS],
}


def main() -> int:
    device = os.environ.get("ATTENTION_BOOK_DEVICE", "cpu")
    if device.startswith("cuda") and not torch.cuda.is_available():
        print(f"ATTENTION_BOOK_DEVICE={device}, but PyTorch finds no GPU on this machine")
        return 1
    results: dict[str, str] = {}
    failed = False
    for part, command in PARTS.items():
        print(f"\n=== {part} ===", flush=True)
        start = time.perf_counter()
        last = ""
        with subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                print(line, end="", flush=True)
                last = line.strip() or last
        code = process.returncode
        failed |= code != 0
        said = last if command[: len(PYTEST)] == PYTEST else ("ok" if code == 0 else "failed")
        results[part] = f"{said}  [{time.perf_counter() - start:.0f} s]"
    print("\n=== all parts ===")
    for part, result in results.items():
        print(f"{part:10} {result}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
