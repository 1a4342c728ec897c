"""The wall: run the replay program under bubblewrap, with nothing to read and nowhere to write.

No network, no files but Python and the system's libraries, an empty environment, a small private
/tmp, limits on time, memory, processes and output, and no system call that opens a way around
them. The job goes in by one pipe, the answers come out by another.
"""

from __future__ import annotations

import json
import os
import platform
import selectors
import shutil
import site
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Limits:
    """What one submission may use."""

    seconds: float = 10.0  #: for one statement or one call
    later_seconds: float = 1.0  #: for a statement, once two have run out of time
    total_seconds: float = 120.0
    memory: int = 2**30  #: bytes that one process may ask for; more is an error in its code
    total_memory: int = 3 * 2**30  #: bytes of all processes together; more ends the jail
    processes: int = 32
    file_size: int = 16 * 2**20
    reply_size: int = 16 * 2**20
    output: int = 64 * 2**20


class NoJailError(RuntimeError):
    """This machine cannot hold a jail; nothing may be graded here."""


class OverrunError(RuntimeError):
    """A submission overran a limit of the whole jail and was ended."""


#: How often the memory of a jail is added up: often enough that it cannot outgrow the machine in
#: between, seldom enough to cost next to nothing.
SECONDS_BETWEEN_LOOKS = 0.5

#: System calls refused in the jail, (x86-64, aarch64): new namespaces and mounts, memory that no
#: limit counts, and ways into other processes or the kernel.
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
}
#: name: (column of REFUSED, AUDIT_ARCH_…, number of clone)
MACHINES = {"x86_64": (0, 0xC000003E, 56), "aarch64": (1, 0xC00000B7, 220)}


def seccomp_program() -> bytes:
    """A classic BPF program that refuses those calls with EPERM and allows the others."""
    column, architecture, clone = MACHINES[platform.machine()]
    load, equal, at_least, any_bit, give = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, refuse, unknown, kill = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
    number_at, architecture_at, first_argument_at = 0, 4, 16
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
    program += [
        line(equal, clone, 0, 3),
        line(load, first_argument_at),
        line(any_bit, clone_newuser, 0, 1),
        line(give, refuse),
        line(give, allow),
    ]
    return b"".join(program)


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
            [*_bwrap(filter_fd), sys.executable, "-I", "-S", "-c", ""],
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


def run(job: dict[str, Any], limits: Limits, slot: int = 0) -> list[dict[str, Any]]:
    """Run a job; returns the lines that the replay program wrote.

    `slot` numbers the jails that this process runs at the same time.

    Raises:
        OverrunError: where the jail as a whole overran a limit, with the lines in `.args[1]`.
        NoJailError: where the jail ended before the student's code began, which is not its fault.
    """
    job = {
        **job,
        "uid": user(slot),
        "seconds": limits.seconds,
        "later_seconds": limits.later_seconds,
        "memory": limits.memory,
        "processes": limits.processes,
        "file_size": limits.file_size,
        "reply_size": limits.reply_size,
    }
    output = bytearray()
    failure = None
    with (
        _seccomp() as filter_fd,
        subprocess.Popen(
            [*_bwrap(filter_fd), sys.executable, "-I", "-B", "/jail/replay.py"],
            env={},
            pass_fds=[filter_fd],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process,
    ):
        try:
            _send(process, json.dumps(job).encode())
            failure = _receive(process, output, limits)
        finally:
            # The jail's first process dies with this one, and with it every process in the jail.
            process.kill()
    lines = [line for line in map(_parsed, output.split(b"\n")) if line is not None]
    if not lines or "started" not in lines.pop(0):
        raise NoJailError(f"The jail did not start: {failure or 'it ended before it said so'}")
    if failure is not None:
        raise OverrunError(failure, lines)
    return lines


def user(slot: int) -> int:
    """The user that a jail runs as: the kernel counts processes by user, over all jails together.

    Two gradings at once have different users, told apart by the process that grades.
    """
    return 60_000 + (os.getpid() * 61 + slot) % 5_000


def _send(process: subprocess.Popen[bytes], job: bytes) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(job)
        process.stdin.close()
    except BrokenPipeError:
        # It ended before it read the job; what it lacks shows in the answers.
        process.stdin = None


def _receive(process: subprocess.Popen[bytes], output: bytearray, limits: Limits) -> str | None:
    """Collect the output until it ends; returns the limit that was overrun, if any."""
    assert process.stdout is not None
    deadline = time.monotonic() + limits.total_seconds
    next_look = 0.0
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if selector.select(timeout=0.1):
                chunk = os.read(process.stdout.fileno(), 2**16)
                if not chunk:
                    return None
                output += chunk
            if len(output) > limits.output:
                return f"it wrote more than {limits.output // 2**20} MiB"
            if time.monotonic() > deadline:
                return f"it ran longer than {limits.total_seconds:g} seconds in all"
            if time.monotonic() < next_look:
                continue
            next_look = time.monotonic() + SECONDS_BETWEEN_LOOKS
            if _memory(process.pid) > limits.total_memory:
                return f"it used more than {limits.total_memory / 2**30:g} GiB of memory"


def _memory(pid: int) -> int:
    """Bytes held by a process and all its descendants, what they share counted once."""
    total = 0
    try:
        members = psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return 0
    for member in members:
        try:
            total += member.memory_full_info().pss
        except psutil.NoSuchProcess:
            continue
    return total


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


@contextmanager
def _seccomp() -> Iterator[int]:
    read_end, write_end = os.pipe()
    try:
        os.write(write_end, seccomp_program())
        os.close(write_end)
        yield read_end
    finally:
        os.close(read_end)


def _bwrap(filter_fd: int) -> list[str]:
    """The bubblewrap command line, up to the program to run."""
    # The whole path, because the environment, and with it the search path, is emptied.
    options = [shutil.which("bwrap") or "bwrap", "--die-with-parent", "--new-session", "--clearenv"]
    options += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    options += ["--unshare-cgroup-try", "--hostname", "jail", "--seccomp", str(filter_fd)]
    if os.getuid() == 0:
        # Root outside would stay root for the kernel's limits, whatever number it wears inside:
        # the replay program changes to a user of its own before it reads anything.
        options += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
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
    for folder in dict.fromkeys(("/usr", sys.base_prefix, sys.prefix)):
        for parent in reversed(Path(folder).parents[:-1]):
            options += ["--dir", str(parent)]  # else closed to all but root
        options += ["--ro-bind", folder, folder]
    # The package holds answers, so it is not there: neither installed nor in editable form.
    for folder in map(Path, site.getsitepackages()):
        if (folder / "attention_book").is_dir():
            options += ["--tmpfs", str(folder / "attention_book")]
    options += ["--dir", "/jail"]
    for name in ("replay.py", "wire.py"):
        options += ["--ro-bind", str(HERE / name), f"/jail/{name}"]
    options += ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]
    return [*options, "--remount-ro", "/", "--chdir", "/tmp", "--"]
