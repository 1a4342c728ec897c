"""Seconds and bytes: how a call is measured."""

from __future__ import annotations

import ctypes
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from attention_book.data import device
from benchmarks.contestants import CONTESTANTS, Case, Comparison, call_of, judged

Call = Callable[[], Any]
ON_GPU = device.type == "cuda"
THREADS = 1  # the processor time of two would count the waiting of one for the other
#: How long one side is timed, at least, before it is the other's turn, in seconds.
TURN = 0.001
#: What a call at the next length may take of the free memory, and in seconds.
SHARE, SECONDS = 0.25, 10.0


# Memory of the C library

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_MMAP_MAX = -1, -3, -4


def _set_allocator(options: dict[int, int]) -> None:
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):  # that of GNU; others have no such settings
        for option, value in options.items():
            library.mallopt(option, value)


def keep_freed_memory() -> None:
    """For times: hand nothing back to the system.

    A page that comes fresh from the system costs more than the softmax of its numbers, and is paid
    for by whoever happens to ask first. So both sides are warmed up until they ask for none.
    """
    _set_allocator({_M_MMAP_MAX: 0, _M_TRIM_THRESHOLD: -1})


def return_freed_memory() -> None:
    """For memory: hand back at once what is freed, so that the highest mark is what was in use."""
    _set_allocator({_M_MMAP_THRESHOLD: 2**16})


def _pages_asked_for() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def warm_up(*calls: Call) -> None:
    """Call until the system is asked for no more memory, two to five times."""
    for turn in range(5):
        before = _pages_asked_for()
        for call in calls:
            call()
        if turn and _pages_asked_for() - before < 8 * len(calls):
            return


# Time


def seconds(call: Call, times: int = 1) -> float:
    """Of the processor, on which others' work does not count; by the clock on a GPU."""
    clock = time.perf_counter if ON_GPU else time.process_time
    if ON_GPU:
        torch.cuda.synchronize()
    start = clock()
    for _ in range(times):
        call()
    if ON_GPU:
        torch.cuda.synchronize()
    return (clock() - start) / times


def in_turns(ours: Call, peer: Call, budget: float) -> tuple[list[float], list[float]]:
    """Seconds of a call of ours and of the peer, sample after sample.

    The two take turns, in changing order, so that whatever else the machine does touches both. A
    turn lasts a millisecond or one call, whichever is longer.
    """
    calls = ours, peer
    warm_up(*calls)
    once = [seconds(call) for call in calls]
    in_a_row = [max(1, round(TURN / duration)) for duration in once]
    samples: tuple[list[float], list[float]] = ([], [])
    both = sum(max(TURN, duration) for duration in once)
    for number in range(max(3, round(budget / both))):
        for side in (0, 1) if number % 2 else (1, 0):
            samples[side].append(seconds(calls[side], in_a_row[side]))
    return samples


def compared(comparison: Comparison, case: Case) -> tuple[list[float], list[float]]:
    """`in_turns`, after both have given the same answer, where the peer computes the same thing.

    To be run in a process of its own, whose memory no other comparison has cut into pieces.
    """
    torch.set_num_threads(THREADS)
    keep_freed_memory()
    sides = CONTESTANTS[comparison.ours](case), CONTESTANTS[comparison.peer](case)
    if not comparison.floor:
        judged(*sides, case)
    mine, theirs = (call_of(side, case) for side in sides)
    return in_turns(mine, theirs, comparison.budget)


# Memory


def _highest_mark() -> int:
    """The most memory that this process has held so far, in bytes."""
    if ON_GPU:
        return torch.cuda.max_memory_allocated()
    status = Path("/proc/self/status")
    if status.exists():  # there getrusage counts in the mark of the process that started this one
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


def free_memory() -> int:
    """What may still be asked for, in bytes."""
    if ON_GPU:
        return torch.cuda.mem_get_info()[0]
    lines = Path("/proc/meminfo")
    if lines.exists():
        line = next(li for li in lines.read_text().splitlines() if li.startswith("MemAvailable"))
        return int(line.split()[1]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def peak(name: str, case: Case, timed: bool = False) -> tuple[int, float]:
    """What one call adds to this process's highest mark, and the least seconds of later calls.

    To be run in a process of its own. A small call comes first and loads what is loaded once.
    """
    torch.set_num_threads(THREADS)
    return_freed_memory()
    small = case._replace(batch=1, length=min(case.length, 8))
    call_of(CONTESTANTS[name](small), small)()
    call = call_of(CONTESTANTS[name](case), case)
    before = _highest_mark()
    call()
    added = _highest_mark() - before
    if not timed:
        return added, 0.0
    keep_freed_memory()
    warm_up(call)
    once = seconds(call)
    return added, min(once, *(seconds(call) for _ in range(min(50, max(2, int(0.5 / once))))))
