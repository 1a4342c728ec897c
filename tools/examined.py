"""Examine public implementations of attention, and store what is found: `make examined`.

They are installed from the package index, outside .venv, in environments of their own: one for each
requirements/examined*.txt, because some pins clash. Each implementation runs in a process of its own.
The file that is stored, notebooks/examined.json, has the date; the book makes a table of it.
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENTS = ROOT / ".examined"
STORED = ROOT / "notebooks" / "examined.json"
SECONDS = 120


def install() -> None:
    """An environment for each list of requirements, with PyTorch's build for the CPU."""
    for path in sorted((ROOT / "requirements").glob("examined*.txt")):
        folder = ENVIRONMENTS / (path.stem.partition("-")[2] or "main")
        if not folder.exists():
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "-r", path]
        subprocess.run(pip, check=True)


def examined(number: int) -> dict[str, Any]:
    """What is found in one implementation, in the process and the environment of its own."""
    from implementations import IMPLEMENTATIONS

    from attention_book.examine import CannotExamine, examine

    one = IMPLEMENTATIONS[number]
    told = {
        "distribution": one.distribution,
        "version": version(one.distribution),
        "name": one.called,
        "kind": one.kind,
        "options": one.options,
    }
    try:
        report = examine(one.make(), one.kind, seconds=SECONDS - 20, **one.options)
    except CannotExamine as error:
        return {**told, "findings": [], "notes": [], "reason": error.reason, "tried": error.tried}
    print(report, file=sys.stderr)
    return {
        **told,
        "reading": report.reading,
        "findings": [finding.name for finding in report.findings],
        "notes": [note.name for note in report.notes],
        "unexamined": report.unexamined,
        "reason": "",
    }


def main(only: str = "") -> int:
    from implementations import IMPLEMENTATIONS

    found = []
    for number, one in enumerate(IMPLEMENTATIONS):
        if only not in f"{one.distribution} {one.called}":
            continue
        python = ENVIRONMENTS / one.environment / "bin" / "python"
        source = os.environ.get("PYTHONPATH", str(ROOT / "src"))
        child = subprocess.run(
            [python, __file__, "--one", str(number)],
            env={**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=SECONDS * 2,
        )
        if child.returncode:
            print(f"{one.distribution} {one.called}\n{child.stderr}", file=sys.stderr)
            return 1
        told = json.loads(child.stdout.splitlines()[-1])
        found.append(told)
        said = told["reason"] or ", ".join(told["findings"]) or "right"
        print(f"{told['distribution']} {told['version']} {told['name']}: {said}", flush=True)
    if not only:
        date = datetime.date.today().isoformat()
        stored = json.dumps({"date": date, "subjects": found}, indent=1, ensure_ascii=False)
        STORED.write_text(stored + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(examined(int(sys.argv[2])), ensure_ascii=False))
    else:
        install()
        sys.exit(main(*sys.argv[1:]))
