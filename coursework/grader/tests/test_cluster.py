"""Marking on a Dask cluster: the same marks, whatever happens to workers and scheduler."""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
import pytest
from handed_in import notebook

from walled_grader import assignment as assignments
from walled_grader import cli, cluster, course, jail
from walled_grader.grader import Outcome

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

ASSIGNMENT = "0_first_hand_in"
READ = assignments.load(ASSIGNMENT)
CELLS = READ.reference_cells
LIMITS = jail.Limits(seconds=3)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "LOOK", 0.05)
    monkeypatch.setattr(cluster, "WITHOUT_WORKERS", 0.2)
    cluster._grader.cache_clear()
    cluster.version.cache_clear()


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A scheduler with two workers, all in this process."""
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=False,
        dashboard_address="127.0.0.1:0",
        silence_logs=False,
    ) as found:
        yield found
        if found.scheduler.status == distributed.Status.closed:  # do not wait for its answer
            timeouts = dask.config.get("distributed.comm.timeouts")
            monkeypatch.setitem(timeouts, "connect", "1s")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    handed_in = tmp_path / "in"
    handed_in.mkdir()
    for number in range(6):
        wrong = CELLS[1].replace("dim=-1", "dim=1") if number % 2 else CELLS[1]
        path = handed_in / f"student {number}.ipynb"
        path.write_text(notebook([CELLS[0], wrong, CELLS[2]]))
    (handed_in / "damaged.ipynb").write_text("{")
    return handed_in


def bytes_of(out: Path) -> dict[str, bytes]:
    """Everything that a run wrote but its seed."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.name != "run.json"
    }


def run(folder: Path, scheduler: str | None, out: str, capsys: Any) -> tuple[int, str, Path]:
    """Mark with a known seed; returns the exit status, what was said and where the marks are."""
    path = folder.with_name(out)
    path.mkdir(exist_ok=True)
    if not (path / "run.json").exists():
        run_file = f'{{"assignment": "{ASSIGNMENT}", "digest": "{READ.digest}", "seed": 5}}\n'
        (path / "run.json").write_text(run_file)
    arguments = [ASSIGNMENT, str(folder), "--out", str(path), "--jobs", "2"]
    capsys.readouterr()
    status = cli.main([*arguments, *(["--scheduler", scheduler] if scheduler else [])])
    return status, capsys.readouterr().err, path


class Fake:
    """A grader whose jail is this process: quick, and it can be told to do something meanwhile."""

    def __init__(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        self.meanwhile = meanwhile
        self.seen: list[str] = []
        self.seconds: dict[str, float] = {}  # how long it says that it ran, by the first cell
        self.calls = READ.record(5)

    def replay(self, cells: list[str], seed: int) -> Any:
        self.seen.append(cells[1])
        self.meanwhile()
        results = READ.grade(5, self.calls, [None] * len(self.calls))
        return Outcome(results, [], False, {}, self.seconds.get(cells[0], 1.0))


def until(true: Callable[[], bool]) -> None:
    """Wait until something is true, or half a minute."""
    end = time.monotonic() + 30
    while not true() and time.monotonic() < end:
        threading.Event().wait(0.02)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    one = Fake()
    monkeypatch.setattr(cluster, "_grader", lambda *settings: one)
    return one


def test_a_cluster_gives_the_marks_of_one_machine_to_the_byte(here, folder, capsys) -> None:
    for path in folder.glob("student [2-9].ipynb"):
        path.unlink()  # this test alone has real jails, which take their time
    status, said, there = run(folder, here.scheduler_address, "there", capsys)
    assert status == 0, said
    _, _, alone = run(folder, None, "alone", capsys)
    assert bytes_of(there) == bytes_of(alone)
    assert "student 0.ipynb,5,3,8,8" in (there / "marks.csv").read_text()


def test_what_is_marked_is_not_marked_again(here, folder, capsys, fake) -> None:
    status, said, out = run(folder, here.scheduler_address, "out", capsys)
    assert (status, len(fake.seen)) == (0, 6), said
    assert "not final" not in (out / "marks.csv").read_text()
    (folder / "new.ipynb").write_bytes((folder / "student 0.ipynb").read_bytes())
    run(folder, here.scheduler_address, "out", capsys)
    assert len(fake.seen) == 7


def test_the_summary_times_what_runs_and_not_what_waits(here, folder, capsys, fake) -> None:
    path = folder / "student 3.ipynb"
    slow = nbformat.read(path, as_version=4)
    slow.cells[0].source = "slow = True"
    nbformat.write(slow, path)
    fake.seconds["slow = True"] = 40.0
    out = str(folder.with_name("out"))
    arguments = ASSIGNMENT, str(folder), "--out", out, "--scheduler", here.scheduler_address
    assert cli.main([*arguments]) == 0
    # The damaged one takes no time.
    summary = "7 marked now, 6.4 s each; the longest, student 3.ipynb, took 40 s."
    assert summary in capsys.readouterr().out


def test_where_no_worker_is_left_nothing_is_said_of_another_one(here, capsys) -> None:
    with cluster.ClusterGrader(here.scheduler_address, READ, 5, LIMITS) as grader:
        grader._tell_of({"tcp://one": 1, "tcp://two": 1})
        grader._tell_of({"tcp://two": 1})
        grader._tell_of({})
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith(
        "is gone, and what it had is marked again by another one. Workers left: 1."
    )
    assert second == "The worker tcp://two is gone. Workers left: 0."


def test_a_scheduler_that_does_not_answer_is_one_sentence(folder, capsys, monkeypatch) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 1.0)
    status, said, out = run(folder, "tcp://127.0.0.1:9", "out", capsys)
    assert status == 2
    assert said.count("\n") == 1
    assert "The scheduler tcp://127.0.0.1:9 does not answer" in said
    assert not list((out / "results").iterdir())


def test_an_address_that_is_none_is_one_sentence(folder, capsys) -> None:
    status, said, _ = run(folder, "nonsense://x:y", "out", capsys)
    assert (status, said.count("\n")) == (2, 1)


def test_a_cluster_without_workers_is_one_sentence(folder, capsys) -> None:
    with distributed.LocalCluster(
        n_workers=0, processes=False, dashboard_address="127.0.0.1:0", silence_logs=False
    ) as empty:
        status, said, _ = run(folder, empty.scheduler_address, "out", capsys)
    assert status == 2
    assert "has no worker." in said


def test_a_worker_without_a_jail_marks_nothing_and_the_other_all(
    here, folder, capsys, fake, monkeypatch
) -> None:
    unfit = here.workers[0].address

    def grader(*settings: Any) -> Fake:
        if distributed.get_worker().address == unfit:
            raise jail.NoJailError("No bubblewrap here.")
        return fake

    monkeypatch.setattr(cluster, "_grader", grader)
    status, said, out = run(folder, here.scheduler_address, "out", capsys)
    assert status == 0
    assert said.count("marks nothing") == 1
    assert f"The worker {unfit} marks nothing: No bubblewrap here." in said
    assert len(list((out / "results").iterdir())) == 7
    assert len(fake.seen) == 6


def test_where_no_worker_has_a_jail_nothing_is_marked(here, folder, capsys, monkeypatch) -> None:
    def grader(*settings: Any) -> None:
        raise jail.NoJailError("No bubblewrap here.")

    monkeypatch.setattr(cluster, "_grader", grader)
    status, said, out = run(folder, here.scheduler_address, "out", capsys)
    assert status == 2
    assert said.count("No bubblewrap here.") == 2
    assert f"No worker of {here.scheduler_address} can mark." in said
    assert not list((out / "results").iterdir())


def test_a_worker_of_another_version_marks_nothing(here, folder, capsys, monkeypatch) -> None:
    def version() -> str:
        try:
            return distributed.get_worker().address
        except ValueError:
            return "this machine's"

    monkeypatch.setattr(cluster, "version", version)
    status, said, _ = run(folder, here.scheduler_address, "out", capsys)
    assert status == 2
    assert "it has another version of the grader" in said


def test_a_worker_that_comes_back_in_another_version_marks_nothing(
    here, folder, capsys, fake, monkeypatch
) -> None:
    """Under the address at which the one before was examined."""
    address, changed = here.workers[0].address, threading.Event()
    before, ours = len(list(folder.iterdir())), cluster.version()

    def version() -> str:
        try:
            there = distributed.get_worker().address
        except ValueError:
            return ours
        return "another" if changed.is_set() and there == address else ours

    fake.meanwhile = changed.set
    monkeypatch.setattr(cluster, "version", version)
    monkeypatch.setattr(cluster, "AHEAD", 1)
    status, said, out = run(folder, here.scheduler_address, "out", capsys)
    assert status == 0
    assert len(list((out / "results").iterdir())) == before
    assert f"The worker {address} marks nothing: it has another version" in said
    assert "the grader itself failed" not in (out / "marks.csv").read_text()


def test_a_worker_whose_jails_would_show_the_answers_marks_nothing(
    here, folder, capsys, fake, monkeypatch
) -> None:
    monkeypatch.setattr(jail, "shows", lambda path: "/usr" if path == course.folder() else None)
    with distributed.Client(here.scheduler_address, set_as_default=False) as client:
        said = client.submit(
            cluster._examine, cluster.version(), ASSIGNMENT, 5, LIMITS, pure=False
        ).result()
    assert "lies in /usr, which every submission can read" in said


def test_a_worker_that_dies_costs_nobody_a_mark(here, folder, capsys, fake) -> None:
    once, deadline = threading.Event(), threading.Event()

    def die() -> None:
        if not once.is_set():
            once.set()
            worker = distributed.get_worker()
            worker.loop.add_callback(worker.close, nanny=False, executor_wait=False)
            # What it says after that reaches nobody.
            deadline.wait(1)

    fake.meanwhile = die
    status, said, out = run(folder, here.scheduler_address, "out", capsys)
    assert status == 0, said
    assert (
        said.count("is gone, and what it had is marked again by another one. Workers left: 1") == 1
    )
    assert len(list((out / "results").iterdir())) == 7
    text = (out / "marks.csv").read_text()
    assert "the grader itself failed" not in text


def test_a_slow_scheduler_costs_nobody_a_mark(here, monkeypatch) -> None:
    """Dask fetches at once what several threads wait for; this takes longer than one looks."""
    gather, calls = here.scheduler.handlers["gather"], itertools.count()

    async def late(*arguments: Any, **named: Any) -> Any:
        if next(calls) < 200:
            answered = asyncio.Event()
            asyncio.get_running_loop().call_later(4 * cluster.LOOK, answered.set)
            await answered.wait()
        return await gather(*arguments, **named)

    monkeypatch.setitem(here.scheduler.handlers, "gather", late)
    with (
        cluster.ClusterGrader(here.scheduler_address, READ, 5, LIMITS) as grader,
        ThreadPoolExecutor(10) as threads,
    ):
        futures = [grader._client.submit(abs, number, pure=False) for number in range(10)]
        until(lambda: all(one.status == "finished" for one in futures))
        assert list(threads.map(lambda one: grader._result(one, set()), futures)) == [*range(10)]


def test_a_scheduler_that_dies_half_way_loses_nothing(here, folder, capsys, fake) -> None:
    results = folder.with_name("out") / "results"
    dying = threading.Event()

    def die() -> None:
        if len(fake.seen) < 3:
            return
        until(lambda: any(results.glob("student*")))
        if not dying.is_set():
            dying.set()
            here.scheduler.loop.add_callback(here.scheduler.close)
        until(lambda: here.scheduler.status == distributed.Status.closed)

    fake.meanwhile = die
    status, said, out = run(folder, here.scheduler_address, "out", capsys)
    assert status == 2
    assert "was lost. What is marked is stored" in said
    kept = {path.name: path.read_bytes() for path in (out / "results").iterdir()}
    assert 1 <= len(kept) < 7
    fake.meanwhile = lambda: None
    with distributed.LocalCluster(
        n_workers=1, processes=False, dashboard_address="127.0.0.1:0", silence_logs=False
    ) as another:
        status, said, _ = run(folder, another.scheduler_address, "out", capsys)
    assert status == 0, said
    assert len(list((out / "results").iterdir())) == 7
    for name, content in kept.items():
        assert (out / "results" / name).read_bytes() == content


def test_without_dask_the_command_says_what_to_install(folder, capsys, monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    status, said, _ = run(folder, "tcp://127.0.0.1:8786", "out", capsys)
    assert status == 2
    assert "pip install -r requirements/cluster.txt" in said
    assert os.path.exists(course.folder().parent / "requirements/cluster.txt")
