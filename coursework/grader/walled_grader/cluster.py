"""The same marking on a Dask cluster: each worker holds jails of its own, the marks stay here.

What travels is the code of a notebook one way and the outcome of the tests the other way. A worker
runs the same code as this machine, and proves that its jail works before it is sent anything.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from . import assignment as assignments
from . import course, jail
from .grader import CannotGradeError, Grader, Outcome

if TYPE_CHECKING:
    from distributed import Client, Future

#: Seconds to wait for a scheduler to answer.
PATIENCE = 15.0
#: Seconds after which a waiting submission looks at which workers there are.
LOOK = 2.0
#: Seconds to wait for a worker where all have gone: a cluster may start new ones.
WITHOUT_WORKERS = 60.0
#: How many submissions to send per thread of a worker: none is to wait for its next one.
AHEAD = 2


class LostError(CannotGradeError):
    """The cluster is gone; what was marked is stored."""


@functools.cache
def version() -> str:
    """What decides a mark, as one number: this package, the assignments and torch."""
    digest = hashlib.sha256(torch.__version__.encode())
    own = Path(__file__).parent.glob("*.py")
    for path in sorted([*own, *course.sources().glob("*.*"), *course.mistakes().rglob("*.*")]):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


# What a worker does.


@functools.lru_cache(maxsize=2)
def _grader(name: str, seed: int, limits: jail.Limits, jobs: int) -> Grader:
    jail.check()
    grader = Grader(assignments.load(name), seed, jobs, limits)
    grader.prove()
    return grader


_one_at_a_time = threading.Lock()


def _here(name: str, seed: int, limits: jail.Limits) -> Grader:
    from distributed import get_worker

    with _one_at_a_time:
        return _grader(name, seed, limits, get_worker().state.nthreads)


def _examine(wanted: str, name: str, seed: int, limits: jail.Limits) -> str:
    """Why this worker cannot mark, or nothing where it can."""
    if version() != wanted:
        return "it has another version of the grader, of the assignments or of torch"
    if shown := jail.shows(course.folder()):
        return f"{course.folder()} lies in {shown}, which every submission can read"
    try:
        _here(name, seed, limits)
    except (CannotGradeError, jail.NoJailError) as why:
        return str(why)
    return ""


def _replay(
    wanted: str, name: str, seed: int, limits: jail.Limits, cells: list[str], own_seed: int
) -> Outcome | str:
    """The outcome of a notebook's code.

    Or the address of this worker, where it is not the one that was examined: a worker that comes
    back keeps its address, whatever it was started from.
    """
    from distributed import get_worker

    if version() != wanted:
        return get_worker().address
    return _here(name, seed, limits).replay(cells, own_seed)


# What this machine does.


class ClusterGrader(Grader):
    """Has each notebook's code run by a worker of a Dask cluster; use it in a `with` block."""

    def __init__(
        self, scheduler: str, assignment: assignments.Assignment, seed: int, limits: jail.Limits
    ) -> None:
        super().__init__(assignment, seed, 1, limits)
        self.scheduler = scheduler
        self._client = _connect(scheduler)
        self._looking = threading.RLock()  # who looks may wait for an answer, and look again
        self._examined: dict[str, str] = {}  # why a worker cannot mark, by address
        self._fit: dict[str, int] = {}  # the workers that could mark when last looked at

    def __enter__(self) -> ClusterGrader:
        return self

    def __exit__(self, *why: object) -> None:
        self._client.close(timeout=1)

    def prove(self) -> None:
        """Find the workers that can mark, and say of each other one why it cannot."""
        self.running = sum(self._workers().values())
        self.at_a_time = AHEAD * self.running

    def replay(self, cells: list[str], seed: int) -> Outcome:
        """Have a worker run a notebook's code and the tests; another one, where it is lost."""
        while True:
            workers = list(self._workers())
            future = self._submit(_replay, cells, seed, workers=workers)
            came_back = self._result(future, set(workers))
            if isinstance(came_back, str):
                with self._looking:  # examined anew, it says why it cannot mark
                    if self._examined.get(came_back) == "":
                        del self._examined[came_back]
            elif came_back is not None:
                return came_back

    def _submit(self, function: Any, *inputs: Any, workers: list[str]) -> Future:
        settings = (version(), self.assignment.name, self.seed, self.limits)
        try:
            return self._client.submit(function, *settings, *inputs, workers=workers, pure=False)
        except Exception as error:
            raise self._lost() from error

    def _result(self, future: Future, workers: set[str]) -> Any:
        """What came back, or None where every worker that it was meant for is gone."""
        from distributed import KilledWorker

        while True:
            try:
                raised = future.exception(timeout=LOOK)
            except TimeoutError:
                if self._client.status != "running":
                    raise self._lost() from None
                present = self._present()
                with self._looking:
                    self._tell_of(self._fit_of(present))
                if future.status == "pending" and not workers & set(present):
                    future.cancel()
                    return None
                continue
            if isinstance(raised, KilledWorker):
                raise RuntimeError("several workers ended while they marked it")
            if raised is not None:
                raise raised
            try:
                # Without a time: Dask fetches for several threads at once, and one that gave up
                # would end it for the others.
                return future.result()
            except Exception:
                raise self._lost() from None

    def _workers(self) -> dict[str, int]:
        """The workers that can mark, by address, with their numbers of threads."""
        end = time.monotonic() + WITHOUT_WORKERS
        while time.monotonic() < end:
            with self._looking:
                present = self._present()
                self._examine_new(present)
                fit = self._fit_of(present)
                self._tell_of(fit)
            if fit:
                return fit
            if present:
                raise CannotGradeError(f"No worker of {self.scheduler} can mark.")
            time.sleep(LOOK)
        raise LostError(f"{self.scheduler} has no worker.")

    def _fit_of(self, present: dict[str, int]) -> dict[str, int]:
        return {one: present[one] for one in present if self._examined.get(one) == ""}

    def _tell_of(self, fit: dict[str, int]) -> None:
        """Say which workers are gone, and how many are left."""
        for address in self._fit.keys() - fit.keys():
            print(
                f"The worker {address} is gone"
                + (", and what it had is marked again by another one. " if fit else ". ")
                + f"Workers left: {len(fit)}.",
                file=sys.stderr,
            )
        self._fit, self.running = fit, sum(fit.values())

    def _examine_new(self, present: dict[str, int]) -> None:
        asked = {
            address: self._submit(_examine, workers=[address])
            for address in present
            if address not in self._examined
        }
        for address, future in asked.items():
            try:
                why = self._result(future, {address})
            except CannotGradeError:
                raise
            except Exception as error:  # the worker does not even have this package
                why = " ".join(f"{type(error).__name__}: {error}".split())
                if "deserialization" in why:
                    why = "it or the scheduler was not started in a checkout of this version"
            if why is None:
                continue  # gone already
            self._examined[address] = why
            if why:
                print(f"The worker {address} marks nothing: {why}", file=sys.stderr)

    def _present(self) -> dict[str, int]:
        try:
            return dict(self._client.nthreads())
        except Exception:
            raise self._lost() from None

    def _lost(self) -> LostError:
        return LostError(
            f"The scheduler {self.scheduler} was lost. What is marked is stored: start the same "
            "command again, and it goes on from there."
        )


def _connect(scheduler: str) -> Client:
    try:
        from distributed import Client
    except ImportError:
        raise CannotGradeError(
            "Dask is not installed here: pip install -r requirements/cluster.txt"
        ) from None
    # What goes wrong is said here, in a sentence.
    for name in ("distributed", "asyncio", "tornado"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        return Client(scheduler, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise CannotGradeError(
            f"The scheduler {scheduler} does not answer ({str(error).splitlines()[0][:200]})."
        ) from None
