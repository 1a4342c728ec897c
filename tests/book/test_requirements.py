"""Students install the versions that their work is graded with."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def pins(path: Path) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==(\S+)", path.read_text(encoding="utf-8"), re.MULTILINE))


def test_students_install_what_their_work_is_graded_with() -> None:
    student = pins(ROOT / "requirements-student.txt")
    assert set(student) == {"torch", "otter-grader"}
    for name, pinned in student.items():
        assert version(name).partition("+")[0] == pinned


def test_no_two_files_pin_different_versions() -> None:
    seen: dict[str, str] = {}
    for path in (*ROOT.glob("requirements*.txt"), *ROOT.glob("requirements/*.txt")):
        for name, pinned in pins(path).items():
            assert seen.setdefault(name, pinned) == pinned, f"{name} in {path.name}"


def test_the_environment_for_grading_takes_both_files() -> None:
    lines = (ROOT / "requirements/test.txt").read_text(encoding="utf-8").splitlines()
    assert {"-r ../requirements-student.txt", "-r cluster.txt"} <= set(lines)
