"""The memory that additive attention needs, as a process of its own: chunk, mode → bytes."""

from __future__ import annotations

import resource
import sys
from contextlib import nullcontext
from pathlib import Path

import torch
from torch import Tensor

from attention_book import AdditiveAttention
from attention_book.data import device, normal


def additive(query_chunk: int | None) -> tuple[AdditiveAttention, list[Tensor]]:
    """Additive attention with 64 hidden units, and 8 examples of 512 queries and keys for it."""
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    module = AdditiveAttention(64, 64, 64, query_chunk=query_chunk).to(device)
    tensors = [normal(8, 512, 64, generator=generator) for _ in range(3)]
    return module, [*tensors, torch.arange(64, 513, 64, device=device)]


def highest_mark() -> int:
    """The most memory that this process has held so far, in bytes."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated()
    status = Path("/proc/self/status")
    if status.exists():  # there getrusage counts in the mark of the process that started this one
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


def extra_bytes(query_chunk: int | None, *, training: bool) -> int:
    """What one call adds to the highest mark, after a small call that loads what is loaded once."""
    module, arguments = additive(query_chunk)

    def call(tensors: list[Tensor]) -> None:
        with nullcontext() if training else torch.no_grad():
            output = module(*tensors)
            if training:
                output.sum().backward()

    call([tensor[:1, :8] for tensor in arguments[:3]])
    before = highest_mark()
    call(arguments)
    return highest_mark() - before


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(extra_bytes(int(sys.argv[1]) or None, training=sys.argv[2] == "training"))
