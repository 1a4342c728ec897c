"""The benchmarks: both sides owe the same answer, a run is stored whole, the README shows it."""

from __future__ import annotations

import itertools
import json
import platform

import pytest
from benchmarks import __main__ as bench
from benchmarks import contestants, measure, report
from benchmarks.contestants import COMPARISONS, CONTESTANTS, SIZES, Case, Comparison, Contestant
from browser import ROOT

MIB = 2**20


def key_of(row: dict) -> tuple:
    return tuple(row[name] for name in ("ours", "peer", "padded", "size", "quantity", "mode"))


class LongCase(Case):
    """Lengths for one example too many."""

    @property
    def valid_lens(self):
        return Case(self.batch + 1, self.length).valid_lens


@pytest.fixture
def run() -> dict:
    """The stored run of the CPU, to look at or to change."""
    return report.stored_runs()["On a CPU"]


# Contestants


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the peers' own imports
@pytest.mark.parametrize(
    ("comparison", "mode"),
    [(c, mode) for c in COMPARISONS if not c.floor for mode in c.modes],
    ids=lambda part: part if isinstance(part, str) else f"{part.ours}-{part.peer}",
)
def test_a_peer_with_our_weights_gives_our_answer_and_our_gradient(comparison, mode):
    case = Case(3, 7, mode == "training", comparison.padded)
    contestants.judged(*(CONTESTANTS[s](case) for s in (comparison.ours, comparison.peer)), case)


def test_a_peer_that_gives_another_answer_or_gradient_is_not_timed():
    case = Case(2, 3, training=True)
    x = case.random(5)
    ours, other = Contestant(lambda: x * 2, [x]), Contestant(lambda: x * 3, [x])
    same_answer = Contestant(lambda: x * 2 + (x - x.detach()), [x])
    contestants.judged(ours, ours, case)
    for peer in (other, same_answer):
        with pytest.raises(AssertionError, match="not close"):
            contestants.judged(ours, peer, case)


def test_a_contestant_owes_an_output_in_the_shape_of_its_first_input():
    case = Case(2, 3)
    for name, make in CONTESTANTS.items():
        forward, leaves = make(case)
        assert not leaves or forward().shape == leaves[0].shape, name


# Measuring


def test_each_side_is_timed_in_turns_of_a_millisecond_or_a_call(monkeypatch):
    clock, order = [0.0], []
    monkeypatch.setattr(measure, "warm_up", lambda *calls: None)
    monkeypatch.setattr(measure.time, "process_time", lambda: clock[0])
    monkeypatch.setattr(measure, "ON_GPU", False)

    def lasting(side, duration):
        def call():
            order.append(side)
            clock[0] += duration

        return call

    mine, theirs = measure.in_turns(lasting("mine", 1e-4), lasting("theirs", 4e-3), budget=0.05)
    assert mine == pytest.approx([1e-4] * 10)
    assert theirs == pytest.approx([4e-3] * 10)
    turns = [(side, len(list(calls))) for side, calls in itertools.groupby(order[2:])]
    assert turns[:4] == [("theirs", 1), ("mine", 20), ("theirs", 2), ("mine", 20)]


def test_memory_is_what_one_call_adds_to_a_process_of_its_own():
    # The filled scores, their softmax, and the weights; the system counts pages in steps.
    weights = 3 * 8 * 1024**2 * 4
    added, duration = bench.in_own_process(measure.peak, "masked_softmax", Case(8, 1024), True)
    assert weights - MIB < added < weights + 2 * MIB
    assert duration > 0


def test_an_exponent_is_the_slope_at_the_longest_lengths():
    lengths = [16, 32, 64, 128, 256, 512]
    assert bench.exponent(lengths, [1.0, 1.0, *(n**2 for n in lengths[2:])]) == 2
    assert bench.exponent(lengths, [0, 0, *(7 * n for n in lengths[2:])]) == 1


@pytest.mark.parametrize(
    ("added", "duration", "limit"), [(MIB, 0.4, "time"), (2**62, 1e-4, "memory")]
)
def test_lengths_double_until_the_next_could_take_too_much(monkeypatch, added, duration, limit):
    costs = {16: (1, 1e-6), 32: (1, 1e-6), 64: (1, 1e-6), 128: (added, duration)}
    monkeypatch.setattr(bench, "in_own_process", lambda peak, name, case, timed: costs[case.length])
    monkeypatch.setattr(measure, "SECONDS", 1.0)
    found = bench.series("fused", "anything")
    assert found["lengths"] == [16, 32, 64, 128]
    assert found["limit"] == limit


def test_the_pairs_count_and_calls_are_timed_until_the_budgets_are_spent(monkeypatch):
    quick, slow = (
        Comparison(name, "peer", sizes=("lesson",), modes=("inference",), budget=0.6)
        for name in "qs"
    )
    timed = []

    def in_own_process(compared, comparison, case):
        timed.append(comparison.ours)
        later = 1 - timed.count("q") / 10
        return ([0.2, later], [0.1, 0.2]) if comparison is quick else ([1, 1.5, 5], [0.5, 1, 1])

    monkeypatch.setattr(bench, "COMPARISONS", [quick, slow])
    monkeypatch.setattr(bench, "in_own_process", in_own_process)
    monkeypatch.setattr(bench, "ROUNDS", 4)
    of_quick, of_slow = bench.rows()
    assert timed == ["q", "s", "q"]  # 1.4 s are less than the budgets, 2.7 s and 10 s are more
    assert of_quick["ratio"] == pytest.approx((2 + 4) / 2)  # of 2, 4.5, 2 and 4
    assert of_quick["values"] == pytest.approx([0.5, 0.15])
    assert of_quick["least"] == 2
    assert (of_slow["ratio"], of_slow["values"], of_slow["least"]) == (2, [1.5, 1], 2)


@pytest.mark.parametrize(("bound", "status"), [(1e9, 0), (1e-9, 1)])
def test_a_missed_bound_fails_the_run_which_is_stored_all_the_same(
    monkeypatch, tmp_path, capsys, bound, status
):
    one = Comparison("masked_softmax", "D2L's masked softmax", bounds={"time inference": bound})
    sizes = {"lesson": (2, 3), "usual": (2, 5)}
    monkeypatch.setattr(bench, "COMPARISONS", [one])
    monkeypatch.setattr(bench, "GROWTH", {"softmax": ("masked_softmax",)})
    monkeypatch.setattr(bench, "SIZES", sizes)
    monkeypatch.setattr(bench, "ROUNDS", 1)
    monkeypatch.setattr(bench, "STORED", tmp_path / "last.json")
    readme = tmp_path / "README.md"
    readme.write_text(f"{report.BEGIN}{report.END}", encoding="utf-8")
    monkeypatch.setattr(report, "README", readme)
    monkeypatch.setattr(report, "HERE", tmp_path)

    def in_this_process(measured, *arguments):
        if measured is measure.compared:
            return measured(*arguments)
        return MIB, arguments[1].length / 100

    monkeypatch.setattr(bench, "in_own_process", in_this_process)
    monkeypatch.setattr(measure, "keep_freed_memory", lambda: None)
    assert bench.main() == status
    assert ("MISSED" in capsys.readouterr().out) == bool(status)
    stored = json.loads((tmp_path / "last.json").read_text(encoding="utf-8"))
    kinds = [(row["size"], row["quantity"], row["mode"]) for row in stored["rows"]]
    assert kinds == [
        ("lesson", "time", "inference"),
        ("lesson", "time", "training"),
        ("usual", "time", "inference"),
        ("usual", "memory", "inference"),
        ("usual", "time", "training"),
        ("usual", "memory", "training"),
    ]
    assert [row["bound"] for row in stored["rows"]] == [None, None, bound, None, None, None]
    assert stored["growth"][0]["name"] == "masked_softmax"
    assert stored["date"] in readme.read_text(encoding="utf-8")


# The stored run


def test_the_stored_run_is_of_todays_comparisons_and_bounds(run):
    stored = {key_of(row): row for row in run["rows"]}
    promised = {
        (c.ours, c.peer, c.padded, c.sizes[-1], *kind.split()): pytest.approx(bound, rel=1e-3)
        for c in COMPARISONS
        for kind, bound in c.bounds.items()
    }
    assert {key: row["bound"] for key, row in stored.items() if row["bound"]} == promised
    assert {key[:5] for key in stored if key[4] == "time"} == {
        (c.ours, c.peer, c.padded, size, "time") for c in COMPARISONS for size in c.sizes
    }
    assert run["sizes"] == {name: list(size) for name, size in SIZES.items()}
    series = [(found["way"], found["name"]) for found in run["growth"]]
    assert series == [(way, name) for way, names in bench.GROWTH.items() for name in names]


def test_a_stored_run_names_no_computer_and_no_folder():
    for run in report.stored_runs().values():
        text = json.dumps(run)
        assert platform.node() not in text
        assert not {"/home", "/tmp", "/root", str(ROOT)} & set(text.split('"'))
        assert not any(part.startswith("/") for part in text.split('"'))


# The README


def rows_of(markdown: str) -> list[list[str]]:
    lines = [line for line in markdown.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_readme_shows_the_stored_runs():
    text = report.README.read_text(encoding="utf-8")
    assert text == report.with_runs(text, report.stored_runs())


def test_each_ratio_of_a_run_stands_in_its_row_and_column(run):
    for number, row in enumerate(run["rows"]):
        row["ratio"], row["bound"] = float(number), None
    head, _, *lines = rows_of(report.ratios(run))
    for number, row in enumerate(run["rows"]):
        size = " × ".join(map(str, run["sizes"][row["size"]]))
        column = head.index(f"{row['quantity']}, {row['mode']}, {size}")
        line = next(li for li in lines if li[:2] == [row["ours"], report.peer_of(row)])
        assert line[column] == f"{number}.00"


def test_a_missed_promise_says_so(run):
    promised = [row for row in run["rows"] if row["bound"]]
    for row in promised:
        row["ratio"] = row["bound"]
    assert f"keeps {len(promised)} of {len(promised)} promises" in report.machine(run)
    assert "**not**" not in report.ratios(run)
    promised[0]["ratio"] = promised[0]["bound"] * 1.01
    assert f"keeps {len(promised) - 1} of {len(promised)} promises" in report.machine(run)
    assert report.ratios(run).count("**not** ≤") == 1


def test_only_what_is_between_the_marks_is_written(run):
    text = f"before\n{report.BEGIN}old\n{report.END}after\n"
    written = report.with_runs(text, {"On a CPU": run})
    assert written.startswith("before\n")
    assert written.endswith("after\n")
    assert "old" not in written
    assert run["date"] in written
    with pytest.raises(ValueError, match="lost the line"):
        report.with_runs("no marks", {"On a CPU": run})
