"""Run every check of the repository, show each part's output, and fail if one part fails.

All parts run even if one fails, so that a single run shows everything that is wrong. With `quick`
only those run that take less than a minute together: style, types and the tests of the package.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
# One worker for each file, since a notebook is one session. In the order of their names: the files
# with few tests, which pytest-xdist would start last, are those that take longest.
WORKERS = ["-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder"]
#: Each run ends with its ten slowest tests, or cells.
PYTEST = [str(BIN / "python"), "-m", "pytest", "--durations=10"]
#: Tests follow the package: a module's tests are in the file of its name.
PACKAGE_TESTS = [
    str(test.relative_to(ROOT))
    for module in sorted((ROOT / "src" / "attention_book").iterdir())
    for test in ROOT.glob(f"tests/*/test_{module.stem}.py")
]
#: Where programs keep what they found on this machine, or a user's settings: a new folder for each
#: run, so that neither an old list of fonts nor a home that cannot be written changes a result.
FOLDERS = [
    "MPLCONFIGDIR",
    "IPYTHONDIR",
    "JUPYTER_CONFIG_DIR",
    "JUPYTER_DATA_DIR",
    "JUPYTER_RUNTIME_DIR",
]
PARTS = {
    "style": [str(BIN / "ruff"), "check", "."],
    "format": [str(BIN / "ruff"), "format", "--check", "."],
    "scripts": [str(BIN / "biome"), "check", "--error-on-warnings"],
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
    "messages": [str(BIN / "python"), "tools/translations.py", "--check"],
    "notebooks": [*PYTEST, "--nbval", "notebooks", *WORKERS],
    "tests": [*PYTEST, *WORKERS],
}
QUICK_PARTS = {
    **{part: PARTS[part] for part in ("style", "format", "types")},
    "package": [*PYTEST, *WORKERS, *PACKAGE_TESTS],
}


def main(*only: str) -> int:
    device = os.environ.get("ATTENTION_BOOK_DEVICE", "cpu")
    if device.startswith("cuda") and not torch.cuda.is_available():
        print(f"ATTENTION_BOOK_DEVICE={device}, but PyTorch finds no GPU on this machine")
        return 1
    with tempfile.TemporaryDirectory() as own:
        return run(QUICK_PARTS if only else PARTS, {**os.environ, **dict.fromkeys(FOLDERS, own)})


def run(parts: dict[str, list[str]], environment: dict[str, str]) -> int:
    """Run all `parts`, print what they say and how they ended, and return the exit code.

    Those that need one core run beside each other; those with workers for all cores come last, and
    show each line as it comes.
    """
    results: dict[str, str] = {}
    failed = False
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        beside = {
            part: pool.submit(ended, command, environment)
            for part, command in parts.items()
            if not has_workers(command)
        }
        for part, command in parts.items():
            print(f"\n=== {part} ===", flush=True)
            if part in beside:
                code, said, seconds = beside[part].result()
                print(said, end="", flush=True)
            else:
                code, said, seconds = ended(command, environment, shown=True)
            failed |= code != 0
            last = said.strip().rpartition("\n")[2].strip()
            result = last if has_workers(command) else ("ok" if code == 0 else "failed")
            results[part] = f"{result}  [{seconds:.0f} s]"
    print("\n=== all parts ===")
    for part, result in results.items():
        print(f"{part:10} {result}")
    return int(failed)


def has_workers(command: list[str]) -> bool:
    return command[: len(PYTEST)] == PYTEST


def ended(
    command: list[str], environment: dict[str, str], shown: bool = False
) -> tuple[int, str, float]:
    """The exit code of a command, all that it said, and its seconds."""
    start = time.perf_counter()
    said = []
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if shown:
                print(line, end="", flush=True)
    return process.returncode, "".join(said), time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
