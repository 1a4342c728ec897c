"""Write constraints.txt: the version of every package that the requirements bring, newest first.

`make lock` resolves the requirements without the old constraints on each supported Python that this
machine has, and installs nothing. A version that only some of them need says so. Versions, not
hashes: the same version of PyTorch is another file on each index, so its local label (+cpu) is left
out, too.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
HEAD = """\
# The version of every package that the requirements bring. Written by `make lock`.
"""
OWN = ("attention-book", "walled-grader")


def resolve(python: str) -> dict[str, str]:
    """Each package's version as pip would install it now, by its canonical name."""
    with tempfile.TemporaryDirectory() as folder:
        environment, report = Path(folder) / "venv", Path(folder) / "report.json"
        subprocess.run([python, "-m", "venv", environment], check=True)
        pip = [environment / "bin" / "python", "-m", "pip", "install", "--quiet"]
        asked = ["--dry-run", "--ignore-installed", "--report", report]
        requirements = ["-r", "requirements/test.txt", "-r", "requirements/build.txt"]
        subprocess.run([*pip, *asked, *requirements], cwd=ROOT, check=True)
        installs = json.loads(report.read_text(encoding="utf-8"))["install"]
    found = {}
    for package in installs:
        name = canonicalize_name(package["metadata"]["name"])
        found[name] = Version(package["metadata"]["version"]).public
    for name in OWN:
        found.pop(name, None)
    return found


def _marker(pythons: list[str], known: list[str]) -> str:
    """For which Pythons a version is meant; that of the newest also for those to come."""
    if pythons == known[known.index(pythons[0]) :]:
        return f'python_version >= "{pythons[0]}"'
    return " or ".join(f'python_version == "{python}"' for python in pythons)


def lines(resolved: dict[str, dict[str, str]]) -> list[str]:
    """The lines of the lock for the versions that each Python resolved."""
    by_package: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for python, versions in resolved.items():
        for name, version in versions.items():
            by_package[name][version].append(python)
    return [
        f"{name}=={version}"
        + (f" ; {_marker(pythons, list(resolved))}" if len(versions) > 1 else "")
        for name, versions in sorted(by_package.items())
        for version, pythons in versions.items()
    ]


def main() -> int:
    pythons = {version: found for version in PYTHONS if (found := which(version))}
    file = ROOT / "constraints.txt"
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    file.write_text("", encoding="utf-8")
    try:
        resolved = {version: resolve(python) for version, python in pythons.items()}
    except subprocess.CalledProcessError as error:
        file.write_text(before, encoding="utf-8")
        print(f"The requirements could not be resolved: {error}")
        return 1
    head = f"{HEAD}# Resolved on Python {', '.join(resolved)}.\n"
    file.write_text(head + "\n".join(lines(resolved)) + "\n", encoding="utf-8")
    print(f"{file.name} holds {len(lines(resolved))} versions, for Python {', '.join(resolved)}.")
    return 0


def which(version: str) -> str | None:
    """A Python of this version that runs: some names on a path lead to none."""
    found = shutil.which(f"python{version}")
    runs = found and subprocess.run([found, "--version"], capture_output=True).returncode == 0
    return found if runs else None


if __name__ == "__main__":
    sys.exit(main())
