"""Measure what the package costs against its peers, as ratios within one run; print and store them.

Times are the processor's, memory is what one call adds to the highest mark; each comparison has
processes of its own. measure.py says how. The exit status is 1 where a bound is missed; the run is
stored all the same, in last.json, or in last-cuda.json where ATTENTION_BOOK_DEVICE names a GPU, and
written into the tables of README.md.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import torch

from attention_book.data import device
from benchmarks import measure, report
from benchmarks.contestants import (
    COMPARISONS,
    GROWTH,
    SHORTEST,
    SIZES,
    USUAL,
    Case,
    Comparison,
)
from benchmarks.report import missed, peer_of

STORED = Path(__file__).with_name("last-cuda.json" if measure.ON_GPU else "last.json")
#: Each comparison is timed in so many fresh processes, since it matters where in memory one lies,
#: or in fewer, once its samples add up to the budgets of all: slow calls depend less on that.
ROUNDS = 8
Row = dict[str, Any]
Result = TypeVar("Result")


def machine() -> dict[str, str]:
    """What the figures depend on: kinds and sizes, no names."""
    if measure.ON_GPU:
        properties = torch.cuda.get_device_properties(device)
        return {"processor": properties.name, "memory": readable_bytes(properties.total_memory)}
    model = platform.processor() or platform.machine()
    described = Path("/proc/cpuinfo")
    if described.exists():
        lines = [line.split(":") for line in described.read_text().splitlines()]
        model = next((li[1].strip() for li in lines if li[0].strip() == "model name"), model)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": model,
        "cores": str(os.cpu_count()),
        "memory": readable_bytes(memory),
    }


def readable_seconds(duration: float) -> str:
    return f"{duration * 1e6:.0f} µs" if duration < 1e-3 else f"{duration * 1e3:.1f} ms"


def readable_bytes(number: float) -> str:
    return f"{number / 2**20:.1f} MiB" if number < 2**30 else f"{number / 2**30:.1f} GiB"


def rounded(value: float) -> float:
    return float(f"{value:.4g}")


def in_own_process(measured: Callable[..., Result], *arguments: Any) -> Result:
    """Call in a fresh process, forked from a server that has imported all that it needs."""
    context = multiprocessing.get_context("forkserver")
    peers = ("bert.modeling_bert", "llama.modeling_llama")
    context.set_forkserver_preload([measure.__name__, *(f"transformers.models.{p}" for p in peers)])
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(measured, *arguments).result()


@cache
def peak_bytes(name: str, case: Case) -> int:
    return in_own_process(measure.peak, name, case)[0]


# Ours against peers


def cases_of(comparison: Comparison) -> Iterator[tuple[str, str, Case]]:
    """Size, mode and data of each of its measurements."""
    for size in comparison.sizes:
        for mode in comparison.modes:
            yield size, mode, Case(*SIZES[size], mode == "training", comparison.padded)


def rows() -> Iterator[Row]:
    """Every ratio. The rounds lie apart, so that a busy spell of the machine spares some."""
    planned = [(c, *rest) for c in COMPARISONS for rest in cases_of(c)]
    times: list[tuple[list[float], list[float]]] = [([], []) for _ in planned]
    for number in range(1, ROUNDS + 1):
        for (comparison, _, _, case), sides in zip(planned, times, strict=True):
            if sum(map(sum, sides)) > ROUNDS * comparison.budget:
                continue
            samples = in_own_process(measure.compared, comparison, case)
            for side, more in zip(sides, samples, strict=True):
                side.extend(more)
        print(f"timed, round {number} of {ROUNDS}", flush=True)
    for (comparison, size, mode, case), (mine, theirs) in zip(planned, times, strict=True):
        ratio = statistics.median(ours / peer for ours, peer in zip(mine, theirs, strict=True))
        medians = statistics.median(mine), statistics.median(theirs)
        yield row(comparison, size, "time", mode, medians, ratio, min(mine) / min(theirs))
        if size == USUAL and not comparison.floor and len(comparison.modes) > 1:
            peaks = peak_bytes(comparison.ours, case), peak_bytes(comparison.peer, case)
            ratio = peaks[0] / peaks[1]
            yield row(comparison, size, "memory", mode, peaks, ratio, ratio)


def row(
    comparison: Comparison,
    size: str,
    quantity: str,
    mode: str,
    sides: tuple[float, float],
    ratio: float,
    least: float,
) -> Row:
    """One ratio as it is stored, with the amounts of both sides and the ratio of the least ones."""
    promised = size == comparison.sizes[-1] and not measure.ON_GPU
    bound = comparison.bounds.get(f"{quantity} {mode}") if promised else None
    return {
        "ours": comparison.ours,
        "peer": comparison.peer,
        "padded": comparison.padded,
        "floor": comparison.floor,
        "size": size,
        "quantity": quantity,
        "mode": mode,
        "values": [rounded(side) for side in sides],
        "ratio": rounded(ratio),
        "least": rounded(least),
        "bound": bound and rounded(bound),
    }


def printed(row: Row) -> str:
    readable = readable_seconds if row["quantity"] == "time" else readable_bytes
    mine, theirs = map(readable, row["values"])
    what = f"{row['size']:<6} {row['quantity']:<6} {row['mode']:<9}"
    bound = "" if row["bound"] is None else f"{row['bound']:6.3f} "
    verdict = ("MISSED" if missed(row) else "ok") if bound else ""
    return (
        f"{row['ours']:<32} {peer_of(row):<34} {what} {mine:>10} {theirs:>10} {row['ratio']:>7.3f} "
        f"({row['least']:.3f}) {bound}{verdict}"
    )


# Growth with the length


def series(way: str, name: str) -> Row:
    """Seconds and bytes of one call at lengths that double, until the machine sets a limit."""
    lengths: list[int] = []
    times: list[float] = []
    sizes: list[int] = []
    length, limit = SHORTEST, ""
    while not limit:
        try:
            added, duration = in_own_process(measure.peak, name, Case(1, length), True)
        except (BrokenProcessPool, torch.OutOfMemoryError):  # killed, or refused by a GPU
            limit = "memory"
            break
        lengths.append(length)
        times.append(rounded(duration))
        sizes.append(added)
        length *= 2
        # Both may grow by four.
        if 4 * added > measure.SHARE * measure.free_memory():
            limit = "memory"
        elif 4 * duration > measure.SECONDS:
            limit = "time"
    exponents = {"time": exponent(lengths, times), "memory": exponent(lengths, sizes)}
    return {"way": way, "name": name, "lengths": lengths, "seconds": times, "bytes": sizes,
            "exponents": exponents, "limit": limit}  # fmt: skip


def exponent(lengths: list[int], amounts: list[float] | list[int], upper: int = 4) -> float:
    """The slope of the amounts on the lengths, both as logarithms, at the longest ones."""
    xs, ys = ([math.log(max(v, 1e-9)) for v in column[-upper:]] for column in (lengths, amounts))
    return round(statistics.linear_regression(xs, ys).slope, 2)


def printed_series(found: Row) -> str:
    last = f"{readable_seconds(found['seconds'][-1])}, {readable_bytes(found['bytes'][-1])}"
    slopes = found["exponents"]
    return (
        f"{found['name']:<32} time n^{slopes['time']:<5.2f} memory n^{slopes['memory']:<5.2f} "
        f"up to {found['lengths'][-1]} keys ({last}), stopped by {found['limit']}"
    )


def laid_out(run: dict[str, Any]) -> str:
    """The run as JSON with a line for each entry, so that two runs can be compared by eye."""
    parts = []
    for key, value in run.items():
        if isinstance(value, list):
            lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in value)
            parts.append(f'"{key}": [\n{lines}\n]')
        else:
            parts.append(f'"{key}": {json.dumps(value, ensure_ascii=False)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> int:
    start = time.perf_counter()
    run: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "device": device.type,
        "machine": machine(),
        "threads": measure.THREADS,
        "versions": {name: version(name) for name in ("torch", "keras", "transformers")},
        "sizes": SIZES,
        "rows": [],
        "growth": [],
    }
    print(", ".join([f"torch {torch.__version__}", *run["machine"].values(), "one CPU thread"]))
    print("\nGrowth with the length n of one example\n")
    for way, names in GROWTH.items():
        for name in names:
            found = series(way, name)
            print(printed_series(found), flush=True)
            run["growth"].append(found)
    print(
        "\nOurs and the peer's, the median of their ratios (of the least times), what is promised\n"
    )
    for found in rows():
        print(printed(found), flush=True)
        run["rows"].append(found)
    run["seconds"] = round(time.perf_counter() - start)
    STORED.write_text(laid_out(run), encoding="utf-8")
    report.write()
    many = sum(map(missed, run["rows"]))
    print(f"\n{many} bounds missed; stored in {STORED.parent.name}/{STORED.name}")
    return 1 if many else 0


if __name__ == "__main__":
    sys.exit(main())
