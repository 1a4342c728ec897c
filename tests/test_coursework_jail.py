"""Honest, wrong and hostile submissions, graded together: each gets its mark and does no harm."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import time
from pathlib import Path

import pytest
import torch
from coursework import assignment as assignments
from coursework import grade, jail, wire
from nbformat import v4

ASSIGNMENT = "0_first_hand_in"
Q1_RIGHT = """
import torch
def masked_softmax(scores, valid_lens):
    allowed = torch.arange(scores.shape[-1]) < valid_lens[:, None, None]
    return torch.softmax(scores.masked_fill(~allowed, -torch.inf), -1).masked_fill(~allowed, 0.0)
"""
WRONG_AXIS = """
import torch
def masked_softmax(scores, valid_lens):
    allowed = torch.arange(scores.shape[-1]) < valid_lens[:, None, None]
    return torch.softmax(scores.masked_fill(~allowed, -1e6), 1)
"""
Q2_RIGHT = """
import torch
def scaled_dot_product_scores(queries, keys):
    return queries @ keys.mT / queries.shape[-1] ** 0.5
"""
Q1_NOTHING = "def masked_softmax(scores, valid_lens):\n    ..."
Q2_NOTHING = "def scaled_dot_product_scores(queries, keys):\n    ..."


def q2(body: str) -> list[str]:
    """A right answer to question 1 and this body in question 2."""
    indented = "\n".join("    " + line for line in body.strip().splitlines())
    return [Q1_RIGHT, f"import torch\ndef scaled_dot_product_scores(queries, keys):\n{indented}"]


def secret(*lines: str) -> list[str]:
    """A right question 1; question 2 returns, as text, what these lines could get hold of."""
    return q2("\n".join(lines))


#: name: (code cells, wanted mark of 8)
SUBMISSIONS: dict[str, tuple[list[str], float]] = {
    "right": ([Q1_RIGHT, Q2_RIGHT], 8),
    "no_scale": (q2("return queries @ keys.mT"), 6),
    "wrong_axis": ([WRONG_AXIS, Q2_RIGHT], 4),
    "nan_rows": ([Q1_RIGHT.replace(".masked_fill(~allowed, 0.0)", ""), Q2_RIGHT], 7),
    "endless_loop": (q2("while True:\n    pass"), 5),
    "exit": (q2("import os\nos._exit(0)"), 5),
    "replaces_the_checker": (
        [
            Q1_NOTHING,
            Q2_NOTHING,
            """
import otter, torch, sys, builtins
from otter.test_files import abstract_test, exception_test
abstract_test.TestFile.score = property(lambda self: self.possible)
exception_test.ExceptionTestFile.run = lambda self, env: None
""",
            "torch.allclose = lambda *a, **k: True\nexpect = expect_shape = lambda *a, **k: None",
            "import sys\nfor m in list(sys.modules.values()):\n    m.__dict__['expect'] = print",
        ],
        0,
    ),
    "reads_the_tests": (
        secret(
            "import os",
            "found = []",
            "for place, folders, files in os.walk('/'):",
            "    if place.startswith('/proc'): continue",
            "    ours = 'coursework' in place or place.endswith('/attention_book')",
            "    found += [f for f in files if ours or f[0] in '01234' and f.endswith('.ipynb')]",
            "return str(found)",
        ),
        5,
    ),
    "leaks_the_tests": (
        secret(
            "import gc, inspect, sys",
            "names = [f.__name__ for f in gc.get_objects() if inspect.isfunction(f)]",
            "frame = sys._getframe()",
            "while frame: names += list(frame.f_locals); frame = frame.f_back",
            "return str([n for n in names if n in ('expect', 'same') or n[:2] == 'q1'])",
        ),
        5,
    ),
    "writes_to_others": (
        secret(
            "import os, pathlib",
            "done = []",
            "home = os.path.expanduser('~')",
            "for place in ('/', '/opt', '/home', '/root', '/usr', '/jail', home, '/etc',",
            "              '/var/tmp', '/dev/shm', '/proc/1/root', '/sys'):",
            "    for name in ('right.ipynb', 'marks.csv', 'x'):",
            "        try:",
            "            pathlib.Path(place, name).write_text('mine'); done.append(place)",
            "        except OSError: pass",
            "return str(done)",
        ),
        5,
    ),
    # The next ones are attacks of our own.
    "fork_bomb": (q2("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"), 5),
    "memory": (
        q2("held = []\nwhile True:\n    held.append(torch.ones(2**24))"),
        5,
    ),
    "signals": (
        q2("import os, signal\nfor pid in (1, os.getppid(), 2):\n    os.kill(pid, signal.SIGKILL)"),
        5,
    ),
    "monkey_patches": (
        [
            Q1_RIGHT,
            """
import torch, builtins, json, os
torch.Tensor.numpy = lambda self: (_ for _ in ()).throw(SystemExit)
builtins.open = lambda *a, **k: None
json.dumps = lambda *a, **k: '{"reply": {"value": true}}'
os.fork = lambda: 0
""",
            Q2_RIGHT,
        ],
        0,
    ),
    "pickles": (
        q2(
            "class Bomb:\n    def __reduce__(self):\n        import os\n"
            "        return os.system, ('touch /tmp/pickled',)\n"
            "import pickle\nreturn [Bomb(), pickle.dumps(Bomb())]"
        ),
        5,
    ),
    "forges_the_pipe": (
        [
            Q1_NOTHING,
            'forged = b\'{"reply": {"value": {"tensor": ["float32", [9999999], ""]}}}\\n\'',
            "import os",
            "for fd in range(3, 20):\n    try: os.write(fd, forged)\n    except OSError: pass",
            "def scaled_dot_product_scores(queries, keys):\n"
            "    for fd in range(20):\n        try: os.write(fd, b'[' * 100000 + b'\\n')\n"
            "        except OSError: pass",
        ],
        0,
    ),
    "symlinks": (
        secret(
            "import os",
            "os.symlink('/etc/passwd', '/tmp/answer')",
            "try: return open('/tmp/answer').read()",
            "except OSError as e: return str(e)",
        ),
        5,
    ),
    "network": (
        secret(
            "import socket",
            "reached = []",
            "for address in (('127.0.0.1', 22), ('1.1.1.1', 53), ('10.0.0.1', 80)):",
            "    try: socket.create_connection(address, timeout=0.3); reached.append(address)",
            "    except OSError: pass",
            "return str(reached + [n for _, n in socket.if_nameindex() if n != 'lo'])",
        ),
        5,
    ),
    "environment": (
        secret(
            "import glob, os",
            "seen = str(dict(os.environ))",
            "for path in glob.glob('/proc/*/environ'):",
            "    try: seen += open(path).read()",
            "    except OSError: pass",
            "return seen",
        ),
        5,
    ),
    "settrace": (
        secret(
            "import sys, threading",
            "seen = []",
            "def spy(frame, event, argument):",
            "    seen.append(frame.f_code.co_name)",
            "    return spy",
            "sys.settrace(spy)",
            "masked_softmax(queries, torch.zeros(2))",
            "sys.settrace(None)",
            "return str([name for name in seen if 'test' in name or 'grade' in name])",
        ),
        5,
    ),
    "writes_results": (
        [
            Q1_NOTHING,
            "import os, json\nfor name in ('results.json', '/results/results.json', '/tmp/r.json',"
            " '/autograder/results/results.json'):\n"
            "    try: json.dump({'score': 8}, open(name, 'w'))\n    except OSError: pass",
            'for fd in (0, 1, 2):\n    os.write(fd, b\'{"call": 0, "reply": {"value": 1}}\\n\')',
            Q2_NOTHING,
        ],
        0,
    ),
    "timing": (
        [
            Q1_RIGHT,
            "import time\ntime.monotonic = lambda: 0.0\ntime.sleep(60)",
            "import signal, time\nfor n in (1, 2, 14, 15): signal.signal(n, signal.SIG_IGN)",
            "def scaled_dot_product_scores(queries, keys):\n    time.sleep(60)",
        ],
        5,
    ),
    "flood": (
        q2("import sys\nwhile True:\n    print('x' * 2**20)\n    sys.stderr.write('y' * 2**20)"),
        5,
    ),
    "gigabytes": (q2("return torch.ones(2**26)"), 5),
    "fills_the_disk": (
        q2(
            "import os\nfor place in ('/tmp', '/dev/shm', '/'):\n    n = 0\n"
            "    while n < 200:\n        n += 1\n"
            "        try: open(f'{place}/{n}', 'wb').write(bytes(2**20))\n"
            "        except OSError: break\nreturn str(os.statvfs('/tmp').f_blocks)"
        ),
        5,
    ),
    "new_namespaces": (
        secret(
            "import ctypes, os",
            "libc = ctypes.CDLL(None)",
            "flags = (0x10000000, 0x20000, 0x40000000)",
            "opened = [flag for flag in flags if libc.unshare(flag) == 0]",
            "opened += ['memfd'] if libc.memfd_create(b'x', 0) >= 0 else []",
            "opened += ['mount'] if libc.mount(b'none', b'/tmp', b'tmpfs', 0, None) == 0 else []",
            "opened += ['ptrace'] if libc.ptrace(16, os.getppid(), 0, 0) == 0 else []",
            "return str(opened)",
        ),
        5,
    ),
    "leaves_a_daemon": (
        q2(
            "import os, time\nif os.fork() == 0:\n    os.setsid()\n"
            "    if os.fork() == 0:\n        while True: pass\n    os._exit(0)\n"
            "return queries @ keys.mT / queries.shape[-1] ** 0.5"
        ),
        8,
    ),
}

#: Attacks that report what they got hold of: the text that came out, in full.
NOTHING_FOUND = {
    "reads_the_tests": "[]",
    "leaks_the_tests": "[]",
    "writes_to_others": "[]",
    "network": "[]",
    "settrace": "[]",
    "new_namespaces": "[]",
}


def notebook(cells: list[str]) -> str:
    content = v4.new_notebook(cells=[v4.new_code_cell(source) for source in cells])
    content.metadata["kernelspec"] = {"name": "python3", "language": "python"}
    return json.dumps(content)


def checksums(*roots: Path) -> dict[str, str]:
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for root in roots
        for path in sorted(root.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    """Every submission above, graded in one run; what the run may not touch is compared."""
    home = tmp_path_factory.mktemp("course")
    folder = home / "submissions"
    folder.mkdir()
    for name, (cells, _) in SUBMISSIONS.items():
        (folder / f"{name}.ipynb").write_text(notebook(cells))
    (home / "gradebook.csv").write_text("ada,100\n")
    os.environ["GRADER_SECRET"] = "not for students"
    watched = (folder, Path(grade.__file__).parent)
    before = checksums(*watched) | {"gradebook": (home / "gradebook.csv").read_text()}
    limits = jail.Limits(seconds=3, total_seconds=60)
    out = grade.grade_folder(ASSIGNMENT, folder, jobs=2, limits=limits)
    del os.environ["GRADER_SECRET"]
    assert checksums(*watched) | {"gradebook": (home / "gradebook.csv").read_text()} == before
    assert {path.name for path in home.iterdir()} == {
        *("submissions", "submissions-marks", "gradebook.csv")
    }
    with (out / "marks.csv").open(encoding="utf-8-sig") as file:
        marks = {row["student"]: row for row in csv.DictReader(file)}
    for path in (out / "results").iterdir():
        result = json.loads(path.read_text())
        marks[result["extra_data"]["student"]]["text"] = path.read_text()
        page = out / "feedback" / f"{path.stem}.html"
        marks[result["extra_data"]["student"]]["page"] = page.read_text()
    return marks


@pytest.mark.parametrize("name", SUBMISSIONS)
def test_a_submission_gets_the_mark_it_earned(graded: dict[str, dict], name: str) -> None:
    row = graded[name]
    assert float(row["score"]) == SUBMISSIONS[name][1], row["text"]


def test_no_feedback_page_shows_a_hidden_test_or_the_graders_surroundings(graded) -> None:
    for row in graded.values():
        for text in (row["text"], row["page"]):
            assert "test_other_numbers" not in text
            assert "GRADER_SECRET" not in text
            assert "torch.stack" not in text


@pytest.mark.parametrize("name", NOTHING_FOUND)
def test_a_spy_finds_nothing(name: str) -> None:
    # Time enough for a spy to walk a disk that nobody has read yet.
    replies = answers(SUBMISSIONS[name][0], seconds=60)
    assert replies == [NOTHING_FOUND[name]]


def test_a_spy_sees_an_environment_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADER_SECRET", "not for students")
    (seen,) = answers(SUBMISSIONS["environment"][0])
    assert "LC_CTYPE" in seen or "PWD" in seen
    assert "GRADER_SECRET" not in seen


def test_jails_at_the_same_time_have_users_of_their_own(monkeypatch) -> None:
    users = []
    for process in range(1000, 1064):  # gradings that were started one after the other
        monkeypatch.setattr(os, "getpid", lambda process=process: process)
        users += [jail.user(slot) for slot in range(32)]
    assert len(set(users)) == len(users)
    assert all(60_000 <= user < 65_534 for user in users)


def test_a_link_leads_nowhere() -> None:
    (seen,) = answers(SUBMISSIONS["symlinks"][0])
    assert "No such file" in seen


def test_the_private_folder_is_small() -> None:
    (blocks,) = answers(SUBMISSIONS["fills_the_disk"][0])
    assert int(blocks) * 4096 <= 16 * 2**20


def test_the_books_package_is_not_there_to_be_handed_in() -> None:
    body = "import attention_book\nreturn attention_book.scaled_dot_product_scores(queries, keys)"
    lines = run(q2(body))
    assert "No module named 'attention_book'" in lines[0]["reply"]["error"]


def test_without_bubblewrap_nothing_is_graded(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert grade.main([ASSIGNMENT, str(tmp_path)]) == 2
    assert "apt-get install bubblewrap" in capsys.readouterr().err


def test_where_bubblewrap_may_not_work_nothing_is_graded(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho no namespaces for you >&2; exit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert grade.main([ASSIGNMENT, str(tmp_path)]) == 2
    assert "no namespaces for you" in capsys.readouterr().err


def test_a_jail_that_does_not_start_is_nobodys_mark(tmp_path, monkeypatch) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(jail.NoJailError, match="did not start"):
        jail.run({"cells": [], "calls": []}, jail.Limits())


def test_many_statements_that_hang_leave_time_for_the_answers() -> None:
    hang = "import time\ntime.sleep(1000)"
    limits = jail.Limits(seconds=2, later_seconds=0.5)
    lines = run([Q1_RIGHT, *[hang] * 6, Q2_RIGHT], limits=limits)
    notes = [(at, why) for line in lines for at, why in line.get("skipped", {}).items()]
    assert notes == [
        (f"code cell {cell}, line 2", f"it ran longer than {2 if cell < 4 else 0.5:g} s")
        for cell in range(2, 8)
    ]
    assert "value" in lines[-1]["reply"]


def test_a_statement_that_ran_through_keeps_its_time() -> None:
    hang = "import time\ntime.sleep(1000)"
    slow = "import time\ntime.sleep(1)\nthere = True"
    limits = jail.Limits(seconds=2, later_seconds=0.5)
    lines = run([slow, hang, hang, hang, *q2("return str(there)")], limits=limits)
    assert lines[-1]["reply"]["value"] == "True"
    assert sum("skipped" in line for line in lines) == 3


def test_what_was_left_out_is_told_whatever_ends_the_run() -> None:
    """Here, the notebook kills the program that runs it."""
    cells = ["1 / 0", "while True:\n    pass", "import os\nos.kill(os.getppid(), 9)"]
    lines = run([*cells, Q2_RIGHT], limits=jail.Limits(seconds=1))
    assert lines == [
        {"skipped": {"code cell 1, line 1": "ZeroDivisionError: division by zero"}},
        {"skipped": {"code cell 2, line 1": "it ran longer than 1 s"}},
    ]


@pytest.mark.parametrize("shape", [[2**33, 0], [0, 2**39], [2**20, 2**20, 0]])
def test_a_shape_that_is_larger_than_its_bytes_does_not_come_in(shape: list[int]) -> None:
    """To sum over it would take gigabytes, outside the jail."""
    with pytest.raises(wire.MalformedError, match="more than 8 MiB"):
        wire.decode({"tensor": ["float32", shape, ""]})
    assert set(wire.encode(torch.empty(shape))) == {"opaque"}


def test_a_shape_of_too_many_sizes_is_not_multiplied_out() -> None:
    begun = time.monotonic()
    with pytest.raises(wire.MalformedError):
        wire.decode({"tensor": ["float32", [2**39] * 10**5, ""]})
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (2, 3), (2**20, 0)])
def test_what_is_small_crosses_the_wall_whole(shape: tuple[int, ...]) -> None:
    tensor = torch.ones(shape)
    assert torch.equal(wire.decode(wire.encode(tensor)), tensor)


def run(cells: list[str], seconds: float = 3, limits: jail.Limits | None = None) -> list[dict]:
    """One call to the answer of question 2, with the lines that come out of the jail."""
    calls = [
        call
        for call in assignments.load(ASSIGNMENT).record(0)
        if call["name"] == "scaled_dot_product_scores"
    ]
    job = {"cells": cells, "calls": calls[:1]}
    return jail.run(job, limits or jail.Limits(seconds=seconds))


def answers(cells: list[str], seconds: float = 3) -> list[str]:
    return [line["reply"].get("value") for line in run(cells, seconds) if "reply" in line]
