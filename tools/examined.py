"""Examine public implementations of attention, and store what is found: `make examined`.

They are installed from the package index, outside .venv, in two environments of their own, because
some pins clash (requirements/examined*.txt). What is found is stored with the date, in
notebooks/examined.json; the book makes a table of it.
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
SECONDS = 300


def install() -> None:
    """Make both environments; what is in the list `bare` comes without its dependencies."""
    for environment, lists in {
        "main": ("examined", "examined-bare"),
        "d2l": ("examined-d2l",),
    }.items():
        folder = ENVIRONMENTS / environment
        if not folder.exists():
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet"]
        for name in lists:
            bare = ["--no-deps"] if name.endswith("bare") else []
            requirements = ROOT / "requirements" / f"{name}.txt"
            subprocess.run([*pip, *bare, "-r", requirements], check=True)


def examined(one: Any) -> dict[str, Any]:
    """What is found in one implementation, in a process of its environment."""
    from attention_book.examine import CannotExamine, examine

    told = {
        "distribution": one.distribution,
        "version": version(one.distribution).partition("+")[0],
        "name": one.called,
        "kind": one.kind,
        "options": one.options,
    }
    try:
        report = examine(one.make(), one.kind, seconds=SECONDS, **one.options)
    except CannotExamine as error:
        none: dict[str, list[str]] = {"findings": [], "notes": [], "unexamined": []}
        return {**told, **none, "reason": error.reason, "tried": error.tried}
    print(one.called, report, file=sys.stderr, flush=True)
    return {
        **told,
        "reading": report.reading,
        "findings": [finding.name for finding in report.findings],
        "notes": list(dict.fromkeys(note.name for note in report.notes)),
        "unexamined": report.unexamined,
        "reason": "",
    }


def inside(environment: str, only: str) -> None:
    """Examine what is installed in an environment, and print a line of JSON for each."""
    from implementations import IMPLEMENTATIONS, import_torchvision

    import_torchvision()
    for one in IMPLEMENTATIONS:
        if one.environment == environment and only in f"{one.distribution} {one.called}":
            print(json.dumps(examined(one), ensure_ascii=False), flush=True)


def main(only: str = "") -> int:
    """Install, examine what `only` occurs in, or everything, and then store what was found."""
    install()
    found, failed = [], False
    for folder in sorted(ENVIRONMENTS.iterdir()):
        source = os.environ.get("PYTHONPATH", str(ROOT / "src"))
        with subprocess.Popen(
            [folder / "bin" / "python", __file__, "--inside", folder.name, only],
            env={**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            text=True,
        ) as child:
            assert child.stdout is not None
            for line in child.stdout:
                if line.startswith('{"distribution"'):
                    told = json.loads(line)
                    found.append(told)
                    said = told["reason"] or ", ".join(told["findings"]) or "right"
                    print(f"{told['distribution']} {told['name']}: {said}", flush=True)
        failed |= child.returncode != 0
    if not only and not failed:
        found.sort(key=lambda one: (one["distribution"].lower(), one["name"]))
        date = datetime.date.today().isoformat()
        stored = json.dumps({"date": date, "subjects": found}, indent=1, ensure_ascii=False)
        STORED.write_text(stored + "\n", encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(*sys.argv[2:])
    else:
        sys.exit(main(*sys.argv[1:]))
