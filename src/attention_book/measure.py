"""What a computation costs: seconds as ratios within one run, bytes at the peak."""

from __future__ import annotations

import itertools
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from attention_book.data import device


def seconds(function: Callable[[], Any], *, repeats: int = 5) -> float:
    """Time of the fastest of several calls, the one that was disturbed least, in seconds."""
    function()
    return min(_time(function) for _ in range(repeats))


def ratio(ours: Callable[[], Any], peer: Callable[[], Any], *, repeats: int = 15) -> float:
    """How many times as long `ours` takes as `peer`: both in turn, the median over the pairs."""
    ours(), peer()
    return statistics.median(_time(ours) / _time(peer) for _ in range(repeats))


def _time(function: Callable[[], Any]) -> float:
    _wait()
    start = time.perf_counter()
    function()
    _wait()
    return time.perf_counter() - start


def _wait() -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def peak_bytes(function: Callable[[], Any]) -> int:
    """The most memory that tensors made during one call take at one time, in bytes.

    Counts the results of every operation as long as they live, also those that autograd keeps;
    not what a kernel borrows and gives back within one operation: `allocated_bytes` counts that
    too. It is the same each time.
    """
    with _Living() as living:
        function()
    return living.peak


def allocated_bytes(function: Callable[[], Any]) -> int:
    """The most memory that one call takes at one time, the kernels' own buffers included, in bytes.

    Read from the memory events of PyTorch's profiler, on the CPU. It depends on the number of
    threads, since each has buffers of its own.
    """
    with _silent_stderr(), tempfile.TemporaryDirectory() as folder:
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
            function()
        path = Path(folder) / "trace.json"
        profiled.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    changes = [
        (event["ts"], event["args"]["Bytes"]) for event in events if event["name"] == "[memory]"
    ]
    return max(itertools.accumulate(change for _, change in sorted(changes)), default=0)


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Keep the profiler's notes of its start and stop, written below Python, off the page."""
    sys.stderr.flush()
    kept = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


class _Living(TorchDispatchMode):
    """Watches each operation, and adds up the memory of the tensors made so far and still held."""

    def __init__(self) -> None:
        super().__init__()
        self.peak = 0
        self._made: dict[int, tuple[StorageWeakRef, int]] = {}
        self._given: set[int] = set()

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        storages = [_storage(x) for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        self._given.update(
            storage._cdata for storage in storages if storage._cdata not in self._made
        )
        outputs = operation(*args, **(kwargs or {}))
        for storage in (_storage(x) for x in tree_leaves(outputs) if isinstance(x, torch.Tensor)):
            if storage._cdata not in self._given:
                self._made[storage._cdata] = StorageWeakRef(storage), storage.nbytes()
        self._made = {key: made for key, made in self._made.items() if not made[0].expired()}
        self.peak = max(self.peak, sum(nbytes for _, nbytes in self._made.values()))
        return outputs


def _storage(tensor: torch.Tensor) -> torch.UntypedStorage:
    return tensor.untyped_storage()
