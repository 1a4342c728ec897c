"""Honest, wrong and hostile notebooks in the jail: each gets its mark and does no harm."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import select
import subprocess
import sys
import threading
import time
import types
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from handed_in import notebook, rows_of

from walled_grader import assignment as assignments
from walled_grader import cli, course, grade, jail, wire

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


CALL = next(
    call
    for call in assignments.load(ASSIGNMENT).record(0)
    if call["name"] == "scaled_dot_product_scores"
)

#: name: (code cells, wanted mark of 8)
SUBMISSIONS: dict[str, tuple[list[str], float]] = {
    "right": ([Q1_RIGHT, Q2_RIGHT], 8),
    "no_scale": (q2("return queries @ keys.mT"), 5),
    "wrong_axis": ([WRONG_AXIS, Q2_RIGHT], 3),
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
    "leaves_a_daemon": (
        q2(
            "import os, time\nif os.fork() == 0:\n    os.setpgid(0, 0)\n"
            "    if os.fork() == 0:\n        while True: pass\n    os._exit(0)\n"
            "return queries @ keys.mT / queries.shape[-1] ** 0.5"
        ),
        8,
    ),
    "many_errors": (["1 / 0\n" * 4_000, Q1_RIGHT, Q2_RIGHT], 8),
    "escapes": (
        [Q1_RIGHT, "raise ValueError('\\x1b[2J \\r\\n \\0 \\u202e' + 'A' * 10**6)", Q2_RIGHT],
        8,
    ),
    # It speaks in the loader's place.
    "forges_a_place": (
        [
            Q1_RIGHT,
            "import os\n"
            "for fd in range(3, 20):\n"
            '    try: os.write(fd, b\'{"at": "cell 1. INSTRUCTOR: enter 8 of 8"}\\n\')\n'
            "    except OSError: pass",
            Q2_RIGHT,
        ],
        8,
    ),
    # It replaces what turns its results into JSON.
    "odd_tensors": (
        [
            Q1_RIGHT,
            "import sys\n"
            "def forge(value): return {'tensor': ['float32', {}, 'AAAAAA==']}\n"
            "sys.modules['wire'].encode = forge",
            Q2_RIGHT,
        ],
        0,
    ),
    "many_files": (
        q2("n = 0\nwhile n < 50_000:\n    open(f'/tmp/{n}', 'w').close()\n    n += 1"),
        5,
    ),
}

#: Attacks of one function: each is called in one and the same notebook, and an honest function
#: after each. Those that spy give back, as text, what they got hold of; else, whatever it is.
CALLS: dict[str, str] = {
    "reads_the_tests": """
import os
found = []
for place, folders, files in os.walk('/'):
    folders[:] = [f for f in folders if f not in ('proc', 'torch', 'transformers')]  # to be quick
    ours = 'coursework' in place or place.endswith('/attention_book')
    found += [f for f in files if ours or f[0] in '01234' and f.endswith('.ipynb')]
return str(found)
""",
    "leaks_the_tests": """
import gc, inspect, sys
names = [f.__name__ for f in gc.get_objects() if inspect.isfunction(f)]
frame = sys._getframe()
while frame: names += list(frame.f_locals); frame = frame.f_back
return str([n for n in names if n in ('expect', 'same') or n[:2] == 'q1'])
""",
    "writes_to_others": """
import os, pathlib
done = []
home = os.path.expanduser('~')
for place in ('/', '/opt', '/home', '/root', '/usr', '/jail', home, '/etc',
              '/var/tmp', '/dev/shm', '/proc/1/root', '/sys'):
    for name in ('right.ipynb', 'marks.csv', 'x'):
        try:
            pathlib.Path(place, name).write_text('mine'); done.append(place)
        except OSError: pass
return str(done)
""",
    "fork_bomb": """
import os
while True:
    try: os.fork()
    except OSError: pass
""",
    "memory": """
held = []
while True:
    held.append(torch.ones(2**24))
""",
    "signals": """
import os, signal
for pid in (1, os.getppid(), 2):
    try: os.kill(pid, signal.SIGKILL)
    except PermissionError: pass
""",
    "pickles": """
class Bomb:
    def __reduce__(self):
        import os
        return os.system, ('touch /tmp/pickled',)
import pickle
return [Bomb(), pickle.dumps(Bomb())]
""",
    "symlinks": """
import os
os.symlink('/etc/passwd', '/tmp/answer')
try: return open('/tmp/answer').read()
except OSError as e: return str(e)
""",
    "network": """
import socket
reached = []
for address in (('127.0.0.1', 22), ('1.1.1.1', 53), ('10.0.0.1', 80)):
    try: socket.create_connection(address, timeout=0.3); reached.append(address)
    except OSError: pass
seen = [line.split(':')[0].strip() for line in open('/proc/net/dev')][2:]
return str(reached + [name for name in seen if name != 'lo'])
""",
    "environment": """
import glob, os
seen = str(dict(os.environ))
for path in glob.glob('/proc/*/environ'):
    try: seen += open(path).read()
    except OSError: pass
return seen
""",
    "settrace": """
import sys, threading
seen = []
def spy(frame, event, argument):
    seen.append(frame.f_code.co_name)
    return spy
sys.settrace(spy)
honest(queries, keys)
sys.settrace(None)
return str([name for name in seen if 'test' in name or 'grade' in name])
""",
    "flood": """
import sys
for _ in range(500):
    print('x' * 2**20)
    sys.stderr.write('y' * 2**20)
""",
    "gigabytes": """
return torch.ones(2**26)
""",
    "fills_the_disk": """
import os
for place in ('/tmp', '/dev/shm', '/'):
    n = 0
    while n < 200:
        n += 1
        try: open(f'{place}/{n}', 'wb').write(bytes(2**20))
        except OSError: break
return str(os.statvfs('/tmp').f_blocks)
""",
    "new_namespaces": """
import ctypes, os
libc = ctypes.CDLL(None)
flags = (0x10000000, 0x20000, 0x40000000)
opened = [flag for flag in flags if libc.unshare(flag) == 0]
opened += ['memfd'] if libc.memfd_create(b'x', 0) >= 0 else []
opened += ['mount'] if libc.mount(b'none', b'/tmp', b'tmpfs', 0, None) == 0 else []
opened += ['ptrace'] if libc.ptrace(16, os.getppid(), 0, 0) == 0 else []
return str(opened)
""",
    "kernel_objects": """
import ctypes, os, socket
libc = ctypes.CDLL(None)
made = [name for name, number in (
    ('semget', libc.semget(0, 100, 0o1600)), ('msgget', libc.msgget(0, 0o1600)),
    ('shmget', libc.shmget(0, 4096, 0o1600)),
    ('mq_open', libc.syscall(MQ_OPEN, b'x', 0o102, 0o600, 0)),
    ('inotify', libc.inotify_init()), ('inotify', libc.inotify_init1(0)),
    ('flock', libc.flock(os.open('/usr/bin/env', os.O_RDONLY), 6)),
    ('landlock', libc.syscall(LANDLOCK_CREATE_RULESET, b'\1' * 8, 8, 0)),
    ('sync', libc.syscall(SYNC)), ('syncfs', libc.syncfs(os.open('/usr', os.O_RDONLY))),
) if number >= 0]
for make in (socket.socket, socket.socketpair, os.setsid):
    try: make(); made.append(make.__name__)
    except PermissionError: pass
import fcntl, struct
shown, own, place = os.open('/usr/bin/env', 0), os.open('/tmp/own', 0o102), os.open('/usr', 0)
lock = struct.pack('hhqqi4x', fcntl.F_RDLCK, 0, 0, 1, 0)
for command, file, argument in (
    (6, shown, lock), (7, shown, lock), (37, shown, lock), (38, shown, lock), (6, own, lock),
    (fcntl.F_SETLEASE, own, fcntl.F_WRLCK), (fcntl.F_NOTIFY, place, fcntl.DN_ACCESS),
):
    try: fcntl.fcntl(file, command, argument); made.append(command)
    except PermissionError: pass
assert fcntl.fcntl(own, fcntl.F_GETFD) == fcntl.FD_CLOEXEC
import mmap
for shared in (-1, '/dev/zero'):
    try:
        mmap.mmap(os.open(shared, 2) if shared != -1 else -1, 4096); made.append(shared)
    except PermissionError: pass
assert len(mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)) == 4096
return str(made)
""",
    "looks_into_the_program": """
import os
seen = []
for path in ('mem', 'fd/0', 'fd/1', 'maps', 'environ', 'root/tmp', 'cwd/x'):
    try: open(f'/proc/1/{path}', 'rb'); seen.append(path)
    except PermissionError: pass
return str(seen)
""",
    "reads_ahead": """
import os, select
seen = []
for fd in range(3, 40):
    try:
        if select.select([fd], [], [], 0)[0] and os.read(fd, 10**6): seen.append(fd)
    except OSError: pass
return str(seen)
""",
    "collisions": """
class Colliding(dict):
    def items(self):
        return [(k * (2**61 - 1), 0) for k in range(1, 3000)]
return Colliding(x=1)
""",
    "many_objects": "return [[] for _ in range(200_000)]",
    "endless": "while True:\n    pass",
}

#: Attacks that report what they got hold of: the text that came out, in full.
NOTHING_FOUND = (
    *("reads_the_tests", "leaks_the_tests", "writes_to_others", "network", "settrace"),
    *("new_namespaces", "kernel_objects", "looks_into_the_program", "reads_ahead"),
)


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
    watched = (folder, course.folder())
    before = checksums(*watched) | {"gradebook": (home / "gradebook.csv").read_text()}
    limits = jail.Limits(seconds=2, total_seconds=100)
    out = grade.grade_folder(ASSIGNMENT, folder, jobs=2, limits=limits)
    assert checksums(*watched) | {"gradebook": (home / "gradebook.csv").read_text()} == before
    assert {path.name for path in home.iterdir()} == {
        *("submissions", "submissions-marks", "gradebook.csv")
    }
    marks = {row["student"]: row for row in rows_of(out / "marks.csv")}
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
    tests = [q.source for q in assignments.load(ASSIGNMENT).questions]
    hidden = [part.split("(")[0] for source in tests for part in source.split("def ")[1:]]
    assert {"q1_other_numbers", "q2_other_numbers"} <= set(hidden)
    for row in graded.values():
        for text in (row["text"], row["page"]):
            assert not [name for name in hidden if f"{name}(" in text]
            assert "torch.stack" not in text


def test_notes_are_few_short_and_hold_nothing_that_a_screen_obeys(graded) -> None:
    assert "More statements than these were left out" in graded["many_errors"]["text"]
    for row in graded.values():
        assert len(row["notes"]) <= 1_000
        assert row["notes"].isprintable()
        assert all(character.isprintable() or character == "\n" for character in row["page"])
    assert "(`raise ValueError(" in graded["escapes"]["notes"]
    assert "\\x1b[2J" in graded["escapes"]["notes"]


def test_a_place_is_one_of_the_notebooks_own(graded) -> None:
    assert "INSTRUCTOR: enter" not in graded["forges_a_place"]["notes"].replace("cell 1. I", "")
    assert "In code cell 2, line 2 (`for fd in range(3, 20):`)" in graded["forges_a_place"]["notes"]


def test_a_result_that_is_none_does_not_keep_the_mark_open(graded) -> None:
    assert '"failed": false' in graded["odd_tensors"]["text"]


def test_files_without_number_end_the_run(graded) -> None:
    assert "it made more than 2000 files" in graded["many_files"]["notes"]


@pytest.fixture(scope="module")
def called() -> tuple[dict[str, dict], dict[str, dict]]:
    """What came out of each function of CALLS, and of the honest one that was called after it."""
    column = jail.MACHINES[platform.machine()][0]
    cells = [Q2_RIGHT.replace("scaled_dot_product_scores", "honest")]
    for name, body in CALLS.items():
        indented = "\n".join("    " + line for line in body.strip().splitlines())
        for call in ("mq_open", "landlock_create_ruleset", "sync"):
            indented = indented.replace(call.upper(), str(jail.REFUSED[call][column]))
        cells.append(f"def {name}(queries, keys):\n{indented}")
    calls = []
    for name in CALLS:
        calls += [{**CALL, "name": name}, {**CALL, "name": "honest"}]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADER_SECRET", "not for students")
        limits = jail.Limits(seconds=4, later_seconds=4)
        lines = jail.run({"cells": cells, "calls": calls}, limits)
    replies = [line["reply"] for line in lines if "call" in line]
    return (
        dict(zip(CALLS, replies[::2], strict=True)),
        dict(zip(CALLS, replies[1::2], strict=True)),
    )


@pytest.mark.parametrize("name", CALLS)
def test_what_one_call_does_is_no_harm_to_the_next(called, name: str) -> None:
    queries, keys = wire.decode(CALL["args"])
    after = wire.decode(called[1][name]["value"])
    torch.testing.assert_close(after, queries @ keys.mT / queries.shape[-1] ** 0.5)


@pytest.mark.parametrize("name", NOTHING_FOUND)
def test_a_spy_finds_nothing(called, name: str) -> None:
    assert called[0][name].get("value") == "[]", called[0][name]


def test_a_spy_sees_an_environment_without_secrets(called) -> None:
    seen = called[0]["environment"]["value"]
    assert "LC_CTYPE" in seen or "PWD" in seen
    assert "GRADER_SECRET" not in seen


def test_a_link_leads_nowhere(called) -> None:
    assert "No such file" in called[0]["symlinks"]["value"]


def test_the_private_folder_is_small(called) -> None:
    assert int(called[0]["fills_the_disk"]["value"]) * 4096 <= 16 * 2**20


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("endless", "it ran longer than 4 s"),
        ("fork_bomb", "it ran longer than 4 s"),
        ("signals", "it ended the process of the notebook"),
        ("many_objects", "it returned too much"),
        ("memory", "memory"),
    ],
)
def test_what_overruns_a_limit_is_told_which(called, name: str, why: str) -> None:
    assert why in called[0][name]["error"]


@pytest.mark.parametrize("name", ["gigabytes", "pickles"])
def test_a_result_that_is_not_carried_is_not_read(called, name: str) -> None:
    value = wire.decode(called[0][name]["value"])
    value = value[0] if isinstance(value, list) else value
    assert isinstance(value, wire.Opaque)
    assert type(value).__name__ in ("Tensor_of_more_than_512_KiB", "Bomb")


def test_a_dict_comes_out_with_keys_of_text_that_do_not_collide(called) -> None:
    """Of numbers, all can fall into one place: 300 000 of them took the grader hours."""
    assert all(isinstance(k, str) for k in wire.decode(called[0]["collisions"]["value"]))
    assert isinstance(wire.decode(wire.encode({1: 2})), wire.Opaque)


def test_jails_at_the_same_time_have_users_of_their_own(monkeypatch) -> None:
    users = []
    for process in range(1000, 1064):  # gradings that were started one after the other
        monkeypatch.setattr(os, "getpid", lambda process=process: process)
        users += [jail.user(slot) for slot in range(32)]
    assert len(set(users)) == len(users)
    assert all(60_000 <= user < 65_534 for user in users)


def test_a_package_that_holds_answers_is_not_there_to_be_handed_in() -> None:
    body = "import attention_book\nreturn attention_book.scaled_dot_product_scores(queries, keys)"
    lines = run(q2(body))
    assert "No module named 'attention_book'" in lines[0]["reply"]["error"]
    # This one is installed in full, where the book's may be in editable form.
    import yaml  # noqa: F401  (it is there to be hidden)

    (hidden,) = answers(q2("import yaml\nreturn str(hasattr(yaml, 'load'))"), hidden=("yaml",))
    assert hidden == "False"
    assert "attention_book" in course.hidden_packages()


def test_without_bubblewrap_nothing_is_graded(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cli.main([ASSIGNMENT, str(tmp_path)]) == 2
    assert "apt-get install bubblewrap" in capsys.readouterr().err


def test_where_bubblewrap_may_not_work_nothing_is_graded(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho no namespaces for you >&2; exit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert cli.main([ASSIGNMENT, str(tmp_path)]) == 2
    assert "no namespaces for you" in capsys.readouterr().err


def test_a_jail_that_does_not_start_is_nobodys_mark(tmp_path, monkeypatch) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(jail.NoJailError, match="did not start"):
        jail.run({"cells": [], "calls": []}, jail.Limits())


def test_a_slow_start_is_not_the_students_time(monkeypatch) -> None:
    """Torch is imported first, which on a busy machine can take minutes."""
    now, looks = 0.0, iter([500.0, 600.0, 700.0])
    end, other = os.pipe()

    def look(pid: int) -> int:
        nonlocal now
        if now == 0.0:
            os.write(other, b"started")
        now = next(looks)
        return 0

    monkeypatch.setattr(jail, "_memory", look)
    monkeypatch.setattr(jail.time, "monotonic", lambda: now)
    with os.fdopen(end, "rb") as stdout, os.fdopen(other, "wb"):
        process: Any = types.SimpleNamespace(stdout=stdout, pid=0)
        ended = jail._receive(process, bytearray(), jail.Limits(), threading.Event())
    assert (now, ended) == (700.0, "it ran longer than 120 seconds in all")


def test_a_jail_that_never_starts_ends() -> None:
    with pytest.raises(jail.NoJailError, match=r"did not start: it ran longer than 0\.1 seconds"):
        run(q2("return queries"), limits=jail.Limits(start_seconds=0.1))


def test_many_statements_that_hang_leave_time_for_the_answers() -> None:
    hang = "import time\ntime.sleep(1000)"
    limits = jail.Limits(seconds=2, later_seconds=0.5)
    lines = run([Q1_RIGHT, *[hang] * 8, Q2_RIGHT], limits=limits)
    assert [line["skipped"] for line in lines if "skipped" in line] == [
        [cell, 2, f"it ran longer than {2 if cell == 2 else 0.5:g} s"] for cell in range(2, 7)
    ]  # then only definitions are loaded
    assert "value" in lines[-1]["reply"]


def test_a_statement_that_ran_through_keeps_its_time() -> None:
    hang = "import time\ntime.sleep(1000)"
    slow = "import time\ntime.sleep(1)\nthere = True"
    limits = jail.Limits(seconds=2, later_seconds=0.5)
    lines = run([slow, hang, hang, hang, *q2("return str(there)")], limits=limits)
    assert lines[-1]["reply"]["value"] == "True"
    assert sum("skipped" in line for line in lines) == 3


def test_the_program_that_runs_a_notebook_cannot_be_sent_a_signal() -> None:
    cells = ["1 / 0", "while True:\n    pass"]
    # A jail that root builds refuses the signal, and any other one drops it.
    kill = "import os\ntry:\n    os.kill(1, {})\nexcept PermissionError:\n    pass"
    cells += [kill.format(number) for number in (2, 9, 15, 19)]
    *told, last = run([*cells, Q2_RIGHT], limits=jail.Limits(seconds=1))
    assert told == [
        {"skipped": [1, 1, "ZeroDivisionError: division by zero"]},
        {"skipped": [2, 1, "it ran longer than 1 s"], "late": False},  # it had the time to itself
    ]
    assert "value" in last["reply"]


@pytest.mark.parametrize("shape", [[2**33, 0], [0, 2**39], [2**20, 2**20, 0]])
def test_a_shape_that_is_larger_than_its_bytes_does_not_come_in(shape: list[int]) -> None:
    """To sum over it would take gigabytes, outside the jail."""
    with pytest.raises(wire.MalformedError, match="more than 512 KiB"):
        wire.decode({"tensor": ["float32", shape, ""]})
    assert set(wire.encode(torch.empty(shape))) == {"opaque"}


def test_a_shape_of_too_many_sizes_is_not_multiplied_out() -> None:
    begun = time.monotonic()
    with pytest.raises(wire.MalformedError):
        wire.decode({"tensor": ["float32", [2**39] * 10**5, ""]})
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (2, 3), (2**16, 0)])
def test_what_is_small_crosses_the_wall_whole(shape: tuple[int, ...]) -> None:
    tensor = torch.ones(shape)
    assert torch.equal(wire.decode(wire.encode(tensor)), tensor)


#: Twelve lines that know nothing of the questions: they take away from every reply what the
#: program that calls the functions has to say about their inputs.
HIDES_WRITING = """
import sys
def hide(reply):
    return {**reply, "changed": []} if isinstance(reply, dict) else reply
frame = sys._getframe()
while frame:
    for name, thing in list(frame.f_globals.items()):
        if name in ("_perform", "changed"):
            def quiet(*args, thing=thing, **kwargs):
                return hide(thing(*args, **kwargs))
            frame.f_globals[name] = quiet
    frame = frame.f_back
"""
HIDES_NAN = """
import torch
plain = torch.autograd.grad
torch.autograd.grad = lambda *args, **kwargs: tuple(
    g.nan_to_num() for g in plain(*args, **kwargs))
"""
WRITES = """
import torch
def writes(scores, padding):
    scores[padding] = -1e6
    return torch.softmax(scores, dim=-1)
def nan_gradient(scores, padding):
    penalty = torch.zeros_like(scores).masked_fill(padding, -torch.inf)
    return torch.softmax(scores + penalty, dim=-1).nan_to_num()
"""


def test_writing_and_nan_gradients_cannot_be_hidden() -> None:
    scores = torch.tensor([[1.0, 2.0, 3.0], [0.5, -1.0, 2.0]])
    padding = torch.tensor([[False, False, True], [True, True, True]])
    sent = {"args": wire.encode([scores, padding]), "kwargs": wire.encode({})}
    calls = [
        {**sent, "mode": mode, "name": name}
        for mode, name in (
            ("call", "writes"),
            ("gradient", "nan_gradient"),
            ("slope", "nan_gradient"),
        )
    ]
    lines = jail.run({"cells": [WRITES, HIDES_NAN, HIDES_WRITING], "calls": calls}, jail.Limits())
    writing, gradient, slope = (line["reply"] for line in lines if "call" in line)
    ((number, raw),) = writing["changed"]
    assert number == 0
    written = wire.decode({"tensor": ["float32", [2, 3], raw]})
    assert torch.equal(written, scores.masked_fill(padding, -1e6))
    hidden = wire.decode(gradient["value"])
    assert hidden.isfinite().all()
    assert not assignments._agree(scores, hidden, wire.decode(slope["value"]))


def test_an_ordinary_user_cannot_look_into_the_program_either(monkeypatch) -> None:
    """To the superuser, the change of user within the jail would hide that nothing else does."""
    monkeypatch.setattr(jail.os, "getuid", lambda: 1_000)
    body = "\n    ".join(CALLS["looks_into_the_program"].strip().splitlines())
    cells = [f"def scaled_dot_product_scores(queries, keys):\n    {body}"]
    assert answers(cells) == ["[]"]


def test_a_grader_that_is_killed_leaves_no_jail_behind(tmp_path: Path) -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from walled_grader import jail\n"
        "cells = ['import time; time.sleep(100)  # ' + sys.argv[2]]\n"
        "jail.run({'cells': cells, 'calls': [{'name': 'x'}]}, jail.Limits(seconds=60))"
    )
    arguments = [sys.executable, "-c", program, str(course.folder() / "grader"), tmp_path]
    with subprocess.Popen(arguments) as grader:
        family: list[psutil.Process] = []
        deadline = time.monotonic() + 120
        while len(family) < 3 and time.monotonic() < deadline:  # bwrap, the program, its loader
            family = psutil.Process(grader.pid).children(recursive=True)
            select.select([], [], [], 0.05)
        assert len(family) >= 3
        grader.kill()
    _gone, alive = psutil.wait_procs(family, timeout=30)
    assert not alive


def run(
    cells: list[str],
    seconds: float = 3,
    limits: jail.Limits | None = None,
    hidden: tuple[str, ...] = course.hidden_packages(),
) -> list[dict]:
    """One call to the answer of question 2, with the lines that come out of the jail."""
    job = {"cells": cells, "calls": [CALL], "hidden": hidden}
    return jail.run(job, limits or jail.Limits(seconds=seconds))


def answers(cells: list[str], seconds: float = 3, **settings: Any) -> list[str]:
    lines = run(cells, seconds, **settings)
    return [line["reply"].get("value") for line in lines if "reply" in line]


def test_a_copy_that_the_notebook_forks_says_nothing() -> None:
    """What copies meet, and which is first, is chance: two runs would tell different things."""
    lines = run(["import os\nif os.fork() == 0:\n    1 / 0\nelse:\n    os.wait()", Q2_RIGHT])
    assert [line for line in lines if "skipped" in line] == []
    assert len([line for line in lines if "reply" in line]) == 1


def test_who_ends_the_notebook_is_told_so_though_a_copy_lives_on() -> None:
    stays = "import os, signal, time\ndef stays():\n    if os.fork() == 0:\n        time.sleep(60)"
    ends = "def ends():\n    os.kill(os.getppid(), signal.SIGKILL)\n    time.sleep(60)"
    call = {"mode": "call", "args": wire.encode([]), "kwargs": wire.encode({})}
    calls = [{**call, "name": name} for name in ("stays", "ends")]
    lines = jail.run({"cells": [stays, ends], "calls": calls}, jail.Limits(seconds=30))
    *_, last = [line["reply"] for line in lines if "reply" in line]
    assert "it ended the process of the notebook" in last["error"]


def test_a_notebook_that_lies_of_where_it_is_is_not_loaded_for_ever() -> None:
    lies = (
        "import os\ni = 0\nwhile True:\n    i += 1\n    for file in range(3, 12):\n"
        "        try: os.write(file, b'{\"at\": [1, %d]}\\n' % (1 + i % 2))\n"
        "        except OSError: pass"
    )
    limits = jail.Limits(loading_seconds=0.3)
    *_, last = jail.run({"cells": [lies], "calls": [CALL]}, limits)
    assert last["broken"].endswith("the definitions cannot be loaded: they take too long")


def test_a_notebook_of_long_experiments_has_time_left_for_its_answers() -> None:
    """Its definitions are loaded; what takes no time and what came before is there, too."""
    slow = "import time\ntime.sleep(0.6)\ntrained = True"
    cells = ["quick = max(1, 2)", *[slow] * 6, "late = max(3, 4)", "plain = 5"]
    limits = jail.Limits(seconds=2, total_seconds=60, loading_seconds=1)
    body = "return str([n in globals() for n in ('quick', 'trained', 'late', 'plain')])"
    lines = run([*cells, *q2(body)], limits=limits)
    (hurry,) = (line["hurry"] for line in lines if "hurry" in line)
    assert "statements took more than 1 seconds" in hurry
    assert lines[-1]["reply"]["value"] == "[True, True, False, True]"
    assert [line for line in lines if line.get("late")] == []  # it had the time to itself


def test_a_compiled_or_scripted_answer_is_an_answer() -> None:
    decorators = ("@torch.compile", "@torch.compile(fullgraph=True)", "@torch.jit.script")
    cells, calls = ["import torch"], []
    for number, decorator in enumerate(decorators):
        definition = f"{decorator}\ndef answer_{number}(queries, keys):\n"
        cells.append(f"{definition}    return queries @ keys.transpose(1, 2)")
        calls.append({**CALL, "name": f"answer_{number}"})
    queries, keys = wire.decode(CALL["args"])
    lines = jail.run({"cells": cells, "calls": calls}, jail.Limits())
    assert len(lines) == len(decorators)
    for line in lines:
        torch.testing.assert_close(wire.decode(line["reply"]["value"]), queries @ keys.mT)


def test_packages_that_are_not_allowed_are_told_by_name() -> None:
    cells = ["import math, torch", "import yaml.nodes", "from jinja2 import Template", Q2_RIGHT]
    cells[3] = cells[3].replace("    return", "    import otter, pandas, math\n    return")
    job = {"cells": cells, "calls": [CALL], "packages": ("torch",)}
    *told, last = jail.run(job, jail.Limits())
    assert [line["skipped"][2] for line in told] == [
        "yaml is not among the packages that may be used",
        "jinja2 is not among the packages that may be used",
        "pandas is not among the packages that may be used",
    ]
    assert "value" in last["reply"]


def test_a_package_of_answers_is_hidden_in_every_python_that_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [
        tmp_path / place / "answers"
        for place in (
            "venv/lib/python3.11/site-packages",
            "usr/lib/python3/dist-packages",
            "usr/local/lib/python3.12/site-packages",
        )
    ]
    for place in places:
        place.mkdir(parents=True)
    monkeypatch.setattr(jail, "shown", lambda: [tmp_path / "venv", tmp_path / "usr"])
    options = jail._bwrap(3, ["answers"])
    assert {str(place) for place in places} <= set(options)
    assert all(options[options.index(str(place)) - 1] == "--tmpfs" for place in places)
