"""The wall: run the replay program under bubblewrap, with nothing to read and nowhere to write.

No network, no files but Python and the system's libraries, an empty environment, a small private
/tmp, limits on time, memory, processes and output, and no system call that opens a way around
them. The job goes in as a file, the answers come out by a pipe.
"""

from __future__ import annotations

import json
import os
import platform
import selectors
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from .text import told
from .wire import MalformedError, parse

HERE = Path(__file__).parent
PYTHON = (sys.executable, "-I")


@dataclass(frozen=True)
class Limits:
    """What one submission may use."""

    #: For one statement or one call: of a processor, or asleep. Time in which others keep the
    #: processors busy does not count.
    seconds: float = 10.0
    later_seconds: float = 2.0  #: … once others have used up as much
    total_seconds: float = 120.0  #: by the clock, from when the student's code may begin
    loading_seconds: float = 20.0  #: for all statements; then only definitions are loaded
    start_seconds: float = 600.0  #: by the clock, until then; on a busy machine it takes a while
    memory: int = 2**30  #: bytes that one process may ask for; more is an error in its code
    total_memory: int = 3 * 2**30  #: bytes of all processes together; more ends the jail
    processes: int = 32
    file_size: int = 16 * 2**20
    files: int = 2_000
    output: int = 16 * 2**20


class NoJailError(RuntimeError):
    """This machine cannot hold a jail; nothing may be graded here."""


class StoppedError(RuntimeError):
    """The run was ended from outside, before it had answered."""


class OverrunError(RuntimeError):
    """A submission overran a limit of the whole jail and was ended.

    Its arguments are a sentence, the lines until then, and whether it was for want of time.
    """


RAN_LONGER = "it ran longer than"
#: How often the memory of a jail is added up: often enough that it cannot outgrow the machine in
#: between, seldom enough to cost next to nothing.
SECONDS_BETWEEN_LOOKS = 0.5

#: System calls refused in the jail, (x86-64, aarch64): new namespaces and mounts, memory that no
#: limit counts, locks that hold for programs outside, ways into other processes or the kernel, and
#: a new session, which the kernel's scheduler would give as much time as a whole neighbour.
REFUSED = {
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "mount_setattr": (442, 442),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "setsid": (112, 157),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "flock": (73, 32),
    "io_setup": (206, 0),
    "landlock_create_ruleset": (444, 444),
    "inotify_init": (253, 26),  # on aarch64 there is only the second one
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "sync": (162, 81),  # it writes out the disks of the whole machine
    "syncfs": (306, 267),
}
#: Of fcntl, which programs need, the same without its locks, leases and notices: they are kept in
#: memory that no limit counts, and hold for the files of the machine that the jail shows. They are
#: F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW, F_SETLEASE and F_NOTIFY.
REFUSED_OF_FCNTL = (6, 7, 37, 38, 1024, 1026)
#: name: (column of REFUSED, AUDIT_ARCH_…, numbers of clone and of fcntl)
MACHINES = {"x86_64": (0, 0xC000003E, 56, 72), "aarch64": (1, 0xC00000B7, 220, 25)}


def seccomp_program() -> bytes:
    """A classic BPF program that refuses those calls with EPERM and allows the others."""
    column, architecture, clone, fcntl = MACHINES[platform.machine()]
    load, equal, at_least, any_bit, give = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, refuse, unknown, kill = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
    number_at, architecture_at, first_argument_at, second_argument_at = 0, 4, 16, 24
    clone_newuser, clone3 = 0x10000000, 435

    def line(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
        return struct.pack("=HBBI", code, if_true, if_false, value)

    program = [
        line(load, architecture_at),
        line(equal, architecture, 1, 0),
        line(give, kill),
        line(load, number_at),
        line(at_least, 0x40000000, 0, 1),  # the x32 doubles of the same calls
        line(give, kill),
        line(equal, clone3, 0, 1),  # its flags are out of reach here; libc falls back to clone
        line(give, unknown),
    ]
    for numbers in REFUSED.values():
        program += [line(equal, numbers[column], 0, 1), line(give, refuse)]
    rest = 2 * len(REFUSED_OF_FCNTL) + 2
    program += [line(equal, fcntl, 0, rest), line(load, second_argument_at)]
    for command in REFUSED_OF_FCNTL:
        program += [line(equal, command, 0, 1), line(give, refuse)]
    program += [
        line(give, allow),
        line(equal, clone, 0, 3),
        line(load, first_argument_at),
        line(any_bit, clone_newuser, 0, 1),
        line(give, refuse),
        line(give, allow),
    ]
    return b"".join(program)


def shown() -> list[Path]:
    """The folders that every jail shows, with all that is in them."""
    return [Path(folder) for folder in dict.fromkeys(("/usr", sys.base_prefix, sys.prefix))]


def package_folders() -> Iterator[Path]:
    """Where Python packages lie in what every jail shows, whichever Python they are of."""
    for folder in shown():
        for place in ("", "local/"):
            for kind in ("site-packages", "dist-packages"):
                yield from folder.glob(f"{place}lib*/python*/{kind}")


def shows(path: Path) -> Path | None:
    """The folder through which every jail shows this path, if any."""
    real = path.resolve()
    return next((one for one in shown() if real.is_relative_to(one.resolve())), None)


def check() -> None:
    """Make sure that a jail can be built here.

    Raises:
        NoJailError: with what to do about it.
    """
    if sys.platform != "linux" or platform.machine() not in MACHINES:
        raise NoJailError(
            "Grading needs bubblewrap on Linux (x86-64 or aarch64): nothing is graded without the "
            "jail. On macOS or Windows, run the same command in a Linux container or machine."
        )
    if shutil.which("bwrap") is None:
        raise NoJailError(
            "Grading needs bubblewrap and it is not installed: apt-get install bubblewrap. "
            "Nothing is graded without the jail."
        )
    with _seccomp() as filter_fd:
        tried = subprocess.run(
            [*_bwrap(filter_fd), *PYTHON, "-S", "-c", ""],
            env={},
            pass_fds=[filter_fd],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
    if tried.returncode != 0:
        raise NoJailError(
            f"bubblewrap cannot build the jail here ({tried.stderr.strip()[:200]}): the kernel or "
            "the container forbids new namespaces (Ubuntu from 24.04 on: "
            "sysctl kernel.apparmor_restrict_unprivileged_userns=0). Nothing is graded without it."
        )


def run(
    job: dict[str, Any], limits: Limits, slot: int = 0, stop: threading.Event | None = None
) -> list[dict[str, Any]]:
    """Run a job; returns the lines that the replay program wrote.

    A job holds the notebook's `cells`, the `calls` to make, each with the functions that are
    `forbidden` to it, and under `hidden` the Python packages that it may not see. Calls with the
    same functions are best made one after the other. `slot` numbers the jails that this process
    runs at the same time. Setting `stop` ends the run.

    Raises:
        OverrunError: where the jail as a whole overran a limit.
        StoppedError: where `stop` was set.
        NoJailError: where the jail ended before the student's code began, which is not its fault.
    """
    calls = [json.dumps(call).encode() for call in job["calls"]]
    head = {
        **asdict(limits),
        "cells": job["cells"],
        "calls": [len(call) for call in calls],
        "packages": list(job.get("packages", ())),
        "uid": user(slot),
    }
    first = json.dumps(head).encode()
    output = bytearray()
    with _seccomp() as filter_fd, tempfile.TemporaryFile() as file:
        # To be read piece by piece: the length of the head, the head, and one call after the other.
        file.write(b"%16d" % len(first) + first + b"".join(calls))
        file.seek(0)
        with subprocess.Popen(
            [*_bwrap(filter_fd, job.get("hidden", ())), *PYTHON, "-B", "/jail/replay.py"],
            env={},
            pass_fds=[filter_fd],
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                failure = _receive(process, output, limits, stop or threading.Event())
            finally:
                # The jail's first process dies with this one, and with it all processes in it.
                process.kill()
    lines = []
    for line in output.split(b"\n"):
        with suppress(MalformedError):
            lines.append(parse(line))
    if not lines or "started" not in lines.pop(0):
        raise NoJailError(f"The jail did not start: {failure or 'it ended before it said so'}")
    if failure is not None:
        raise OverrunError(failure, lines, failure.startswith(RAN_LONGER))
    return lines


def user(slot: int) -> int:
    """The user that a jail runs as: the kernel counts processes by user, over all jails together.

    Two gradings at once have different users, told apart by the process that grades.
    """
    return 60_000 + (os.getpid() * 61 + slot) % 5_000


def _receive(
    process: subprocess.Popen[bytes], output: bytearray, limits: Limits, stop: threading.Event
) -> str | None:
    """Collect the output until it ends; returns the limit that was overrun, if any."""
    assert process.stdout is not None
    seconds = limits.start_seconds
    deadline = time.monotonic() + seconds
    next_look = 0.0
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if stop.is_set():
                raise StoppedError
            if selector.select(timeout=0.1):
                chunk = os.read(process.stdout.fileno(), 2**16)
                if not chunk:
                    return None
                if not output:
                    seconds = limits.total_seconds
                    deadline = time.monotonic() + seconds
                output += chunk
            if len(output) > limits.output:
                return told(f"it wrote more than {limits.output // 2**20} MiB")
            if time.monotonic() > deadline:
                return told(f"{RAN_LONGER} {seconds:g} seconds in all")
            if time.monotonic() < next_look:
                continue
            next_look = time.monotonic() + SECONDS_BETWEEN_LOOKS
            if _memory(process.pid) > limits.total_memory:
                return told(f"it used more than {limits.total_memory / 2**30:g} GiB of memory")


def _memory(pid: int) -> int:
    """Bytes held by a process and all its descendants, what they share counted once."""
    total = 0
    with suppress(psutil.NoSuchProcess):
        for member in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                held = member.memory_full_info()
                total += held.pss + held.swap
    return total


@contextmanager
def _seccomp() -> Iterator[int]:
    read_end, write_end = os.pipe()
    try:
        os.write(write_end, seccomp_program())
        os.close(write_end)
        yield read_end
    finally:
        os.close(read_end)


def _bwrap(filter_fd: int, hidden: Iterable[str] = ()) -> list[str]:
    """The bubblewrap command line, up to the program to run."""
    # The whole path, because the environment, and with it the search path, is emptied.
    options = [shutil.which("bwrap") or "bwrap", "--die-with-parent", "--new-session", "--clearenv"]
    options += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    # To the kernel, the first process of a namespace is one that no other in it can signal.
    options += ["--as-pid-1"]
    options += ["--unshare-cgroup-try", "--hostname", "jail", "--seccomp", str(filter_fd)]
    if os.getuid() == 0:
        # Root outside would stay root for the kernel's limits, whatever number it wears inside:
        # the replay program makes the student's processes those of another user, and ends them.
        options += ["--cap-drop", "ALL"]
        for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_KILL"):
            options += ["--cap-add", capability]
    else:
        options += ["--unshare-user", "--uid", "65534", "--gid", "65534", "--cap-drop", "ALL"]
    # First, so that an environment that itself lies below /tmp is bound over it.
    options += ["--perms", "1777", "--size", str(16 * 2**20), "--tmpfs", "/tmp"]
    for name in ("bin", "lib", "lib64", "lib32"):
        path = Path("/", name)
        if path.is_symlink():
            options += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            options += ["--ro-bind", str(path), str(path)]
    for folder in shown():
        for parent in reversed(folder.parents[:-1]):
            options += ["--dir", str(parent)]  # else closed to all but root
        options += ["--ro-bind", str(folder), str(folder)]
    for folder in package_folders():
        for package in (HERE.name, *hidden):
            if (folder / package).is_dir():
                options += ["--tmpfs", str(folder / package)]
    options += ["--dir", "/jail"]
    for name in ("replay.py", "watch.py", "wire.py"):
        options += ["--ro-bind", str(HERE / name), f"/jail/{name}"]
    options += ["--proc", "/proc", "--dev", "/dev"]
    # What is mapped from it is memory that nothing counts; so bound, no device can be opened.
    options += ["--ro-bind", "/dev/null", "/dev/zero", "--remount-ro", "/dev"]
    return [*options, "--remount-ro", "/", "--chdir", "/tmp", "--"]
