"""Set up .venv for a purpose: `python tools/install.py book`, or `run`, or `test`.

Versions come from constraints.txt. Whatever goes wrong is said in one line, and the next run fixes
what this one left: an environment that is broken, half made or from another folder is made anew.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from alone import alone

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOG = VENV / "pip.log"
#: There while packages are written. An environment that still has it was left half made.
HALF_MADE = VENV / ".half-made"
#: The folder for which the environment was made: its scripts hold that path.
MADE_FOR = VENV / ".made-for"
#: On Linux the plain build of PyTorch brings gigabytes of GPU code. These builds do not.
CPU_BUILDS = "https://download.pytorch.org/whl/cpu"


class Purpose(NamedTuple):
    """What an environment is for: its requirements, the purposes it serves, what is downloaded."""

    requirements: str
    includes: tuple[str, ...]
    size: str


PURPOSES = {
    "book": Purpose("requirements/book.txt", ("book",), "about 0.15 GB"),
    "run": Purpose("requirements.txt", ("run",), "about 0.4 GB, with a GPU 3 GB"),
    "test": Purpose(
        "requirements/test.txt", ("book", "run", "test"), "about 0.7 GB, with a GPU 3.5 GB"
    ),
}


class InstallError(Exception):
    """What went wrong, in one sentence."""


def is_sound() -> bool:
    """Whether the environment works, is whole, and was made for this folder."""
    if HALF_MADE.exists() or (MADE_FOR.exists() and MADE_FOR.read_text() != str(ROOT)):
        return False
    try:
        tried = subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True)
    except OSError:
        return False
    return tried.returncode == 0


def make() -> None:
    if VENV.is_symlink() or VENV.is_file():
        VENV.unlink()
    elif VENV.exists():
        print("The environment in .venv does not work: making it anew …", flush=True)
        shutil.rmtree(VENV)
    made = subprocess.run([sys.executable, "-m", "venv", VENV], capture_output=True, text=True)
    if made.returncode:
        HALF_MADE.parent.mkdir(exist_ok=True)
        HALF_MADE.touch()
        raise InstallError(reason(made.stdout + made.stderr))
    MADE_FOR.write_text(str(ROOT))


def pip(*arguments: str | Path) -> tuple[int, str]:
    """Run pip in the environment; its exit status and all that it said."""
    command = [PYTHON, "-m", "pip", "install", "--disable-pip-version-check", *arguments]
    said = []
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            said.append(line)
            if line.startswith("Installing collected packages"):
                HALF_MADE.touch()
    if running.returncode == 0:
        HALF_MADE.unlink(missing_ok=True)
    return running.returncode, "".join(said)


def reason(said: str) -> str:
    """The one line of pip's words that says why it failed."""
    if "No space left on device" in said or "Disk quota exceeded" in said:
        return "The disk is full."
    if re.search(r"NewConnectionError|NameResolutionError|ConnectTimeout|Network is unreach", said):
        return "The package index cannot be reached: is the network up?"
    if "Permission denied" in said:
        return "Something in .venv belongs to another user: remove it, or run as that user."
    errors: Iterator[str] = (
        line.strip() for line in said.splitlines() if re.match(r"\s*(ERROR|error|Error):", line)
    )
    return next(errors, (said.strip().splitlines() or ["pip said nothing."])[-1])


def has_gpu() -> bool:
    return Path("/proc/driver/nvidia").exists() or shutil.which("nvidia-smi") is not None


def has_torch() -> bool:
    return any(VENV.glob("lib/python*/site-packages/torch/__init__.py"))


def install_cpu_torch() -> None:
    """Where there is no GPU, take the build of PyTorch without GPU code, if its index is there."""
    index = os.environ.get("TORCH_INDEX", CPU_BUILDS)
    if index and sys.platform == "linux" and not has_gpu() and not has_torch():
        once = ("--retries", "0", "--timeout", "10")
        pip("--index-url", index, "--no-deps", *once, "-c", "constraints.txt", "torch")


def install(purpose: Purpose) -> None:
    """Make sure of the environment and of what the purpose needs in it.

    Raises:
        InstallError: with the reason in one sentence.
    """
    if not is_sound():
        make()
    print(f"Installing {purpose.requirements} into .venv ({purpose.size}) …", flush=True)
    if "run" in purpose.includes:
        install_cpu_torch()
    status, said = pip("-r", purpose.requirements)
    if status:
        LOG.write_text(said, encoding="utf-8")
        raise InstallError(f"{reason(said)} All that pip said: {LOG.relative_to(ROOT)}")
    for name in purpose.includes:
        (VENV / f".{name}").touch()


def main(name: str) -> int:
    try:
        with alone(ROOT / ".venv.lock", "setting up .venv"):
            install(PURPOSES[name])
    except InstallError as failure:
        print(f"Not installed. {failure}")
    except OSError as error:
        why = {errno.ENOSPC: "The disk is full.", errno.EDQUOT: "The disk is full."}
        print(f"Not installed. {why.get(error.errno or 0, error)}")
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
