"""Print what the package costs beside its peers, as ratios within one run.

Times are taken in turn, ours and the peer's, in changing order; a ratio is the median over the
pairs, so that whatever else the machine does touches both alike. Memory is what one call adds to
the highest mark of a process of its own. The exit status is 1 where a bound is missed.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention_book import (
    AdditiveAttention,
    DotProductAttention,
    MultiHeadAttention,
    causal_mask,
    masked_softmax,
)
from attention_book.data import device, normal
from attention_book.shapes import ShapeTable
from benchmarks import peak

Call = Callable[[], Any]


class Line(NamedTuple):
    """One comparison as it is printed."""

    what: str
    ours: str
    peer: str
    ratio: float
    bound: float | None

    @property
    def verdict(self) -> str:
        if self.bound is None:
            return ""
        return "ok" if self.ratio <= self.bound else "MISSED"


# Time


def seconds(call: Call) -> float:
    """Of the processor, on which others' work does not count; by the clock on a GPU."""
    if device.type != "cuda":
        start = time.process_time()
        call()
        return time.process_time() - start
    torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def pairs(ours: Call, peer: Call) -> tuple[float, float, float]:
    """Median seconds of ours and of the peer, and the median of their ratios."""
    for call in (ours, peer, ours, peer):
        call()
    repeats = min(200, max(7, int(4 / (seconds(ours) + seconds(peer)))))
    times = []
    for turn in range(repeats):
        if turn % 2:
            times.append((seconds(ours), seconds(peer)))
        else:
            theirs = seconds(peer)
            times.append((seconds(ours), theirs))
    medians = (statistics.median(column) for column in zip(*times, strict=True))
    return *medians, statistics.median(mine / theirs for mine, theirs in times)  # type: ignore[return-value]


def in_time(what: str, peer_name: str, ours: Call, peer: Call, bound: float | None) -> Line:
    mine, theirs, ratio = pairs(ours, peer)
    return Line(what, readable(mine), f"{readable(theirs)}  {peer_name}", ratio, bound)


def readable(duration: float) -> str:
    if duration < 1e-3:
        return f"{duration * 1e6:.0f} µs"
    return f"{duration * 1e3:.1f} ms"


def random(*shape: int) -> Tensor:
    return normal(*shape, generator=torch.Generator().manual_seed(0))


def without_gradients(call: Call) -> Call:
    def quiet() -> None:
        with torch.no_grad():
            call()

    return quiet


def with_gradients(module: nn.Module, call: Callable[[], Tensor]) -> Call:
    def forward_and_back() -> None:
        module.zero_grad()
        call().sum().backward()

    return forward_and_back


# What the peers do


def softmax_by_assignment(scores: Tensor, valid_lens: Tensor) -> Tensor:
    """The masked softmax of D2L, on a copy: −10⁶ assigned to the padded scores of flat rows."""
    rows = scores.clone().flatten(end_dim=1)
    lengths = valid_lens.repeat_interleave(scores.shape[1])
    rows[torch.arange(scores.shape[2], device=device) >= lengths[:, None]] = -1e6
    return F.softmax(rows, dim=-1).reshape(scores.shape)


def additive_by_assignment(
    module: AdditiveAttention, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor
) -> Tensor:
    """The additive attention of D2L, with our weights: every hidden unit of every pair at once."""
    hidden = torch.tanh(module.W_q(queries).unsqueeze(2) + module.W_k(keys).unsqueeze(1))
    weights = softmax_by_assignment(module.w_v(hidden).squeeze(-1), valid_lens)
    return torch.bmm(weights, values)


# The comparisons


def softmaxes() -> Iterator[Line]:
    scores = random(8, 512, 512)
    lens = torch.arange(64, 513, 64, device=device)
    mask = causal_mask(512, device=device)
    plain = without_gradients(lambda: F.softmax(scores, dim=-1))
    what = "masked_softmax (8, 512, 512)"
    ours = without_gradients(lambda: masked_softmax(scores, lens))
    yield in_time(f"{what}, a length an example", "F.softmax", ours, plain, 1.4)
    causal = without_gradients(lambda: masked_softmax(scores, mask=mask))
    yield in_time(f"{what}, causal", "F.softmax", causal, plain, None)
    assigned = without_gradients(lambda: softmax_by_assignment(scores, lens))
    yield in_time(f"{what}, a length an example", "assigned −10⁶, as D2L", ours, assigned, 0.5)


def additives() -> Iterator[Line]:
    module, arguments = peak.additive(query_chunk=4)
    hidden = torch.zeros(8, 512, 512, 64, device=device)
    what = "AdditiveAttention(query_chunk=4), 512 × 512, 64 hidden"
    ours = without_gradients(lambda: module(*arguments))
    yield in_time(what, "tanh in place, as many numbers", ours, hidden.tanh_, 1.25)
    del hidden
    theirs = without_gradients(lambda: additive_by_assignment(module, *arguments))
    yield in_time(what, "all at once, as D2L", ours, theirs, 1 / 2.3)


def multi_heads() -> Iterator[Line]:
    for batch, length, bounds in [(8, 512, (1.05, 1.05)), (2, 10, (None, None))]:
        torch.manual_seed(0)
        ours = MultiHeadAttention(512, 8, bias=True, fused=True).to(device)
        peer = nn.MultiheadAttention(512, 8, batch_first=True).to(device)
        x = random(batch, length, 512)
        what = f"MultiHeadAttention(fused=True) ({batch}, {length}, 512), 8 heads"
        name = "nn.MultiheadAttention"

        def our_forward(module: nn.Module = ours, x: Tensor = x) -> Tensor:
            return module(x, x, x)

        def peer_forward(module: nn.Module = peer, x: Tensor = x) -> Tensor:
            return module(x, x, x, need_weights=False)[0]

        training = with_gradients(ours, our_forward), with_gradients(peer, peer_forward)
        yield in_time(f"{what}, training", name, *training, bounds[0])
        ours.eval()
        peer.eval()
        inference = without_gradients(our_forward), without_gradients(peer_forward)
        yield in_time(f"{what}, inference", name, *inference, bounds[1])


def checks() -> Iterator[Line]:
    check = ShapeTable.check

    def unchecked(call: Call) -> Call:
        def peer() -> None:
            ShapeTable.check = lambda *_: None  # type: ignore[assignment, method-assign, return-value]
            call()
            ShapeTable.check = check  # type: ignore[method-assign]

        return peer

    for batch, length, bound in [(8, 512, 1.01), (2, 10, None)]:
        attention = DotProductAttention()
        q, k, v = (random(batch, length, 64) for _ in range(3))
        lens = torch.full((batch,), length // 2, device=device)

        def forward(
            attention: nn.Module = attention, arguments: tuple[Tensor, ...] = (q, k, v, lens)
        ) -> Tensor:
            with torch.no_grad():
                return attention(*arguments)

        what = f"DotProductAttention ({batch}, {length}, 64), tracing off"
        yield in_time(what, "without its shape tables", forward, unchecked(forward), bound)


# Memory


def memory() -> Iterator[Line]:
    command = [sys.executable, "-m", peak.__name__]
    # What is freed goes back to the system, instead of staying in the pool of the C library.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": str(2**20)}
    for mode in ("inference", "training"):
        mine, theirs = (
            int(subprocess.check_output([*command, chunk, mode], env=environment))
            for chunk in ("4", "0")
        )
        yield Line(
            f"AdditiveAttention(query_chunk=4), 512 × 512, 64 hidden, {mode}",
            f"{mine / 2**20:.0f} MiB",
            f"{theirs / 2**20:.0f} MiB  all queries at once",
            mine / theirs,
            1 / 16,
        )


def main() -> int:
    # The processor time of two threads would count the waiting of one for the other.
    torch.set_num_threads(1)
    machine = torch.cuda.get_device_name() if device.type == "cuda" else platform.machine()
    print(f"torch {torch.__version__} on {machine}, one CPU thread\n")
    print(f"{'what':<72} {'ours':>9}   {'peer':<44} {'ratio':>6} {'bound':>6}")
    missed = 0
    for comparisons in (softmaxes, additives, multi_heads, checks, memory):
        for line in comparisons():
            bound = "" if line.bound is None else f"{line.bound:.3f}"
            print(
                f"{line.what:<72} {line.ours:>9}   {line.peer:<44} {line.ratio:>6.3f} {bound:>6} "
                f"{line.verdict}",
                flush=True,
            )
            missed += line.verdict == "MISSED"
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
