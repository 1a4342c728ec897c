"""Let one command at a time do what two would spoil for each other."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(lock: Path, what: str) -> Iterator[None]:
    """Hold the lock file; where another command holds it, say so and wait."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"Another command is {what}; waiting for it …", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
