"""The benchmarks: both sides owe the same answer, a run is stored whole, and its page shows it."""

from __future__ import annotations

import copy
import importlib.util
import itertools
import json
import platform

import pytest
from benchmarks import __main__ as bench
from benchmarks import contestants, measure
from benchmarks.contestants import COMPARISONS, CONTESTANTS, SIZES, Case, Comparison, Contestant
from browser import ROOT, built_book
from bs4 import BeautifulSoup
from matplotlib import rc_context

from attention_book import ShapeError, plots

MIB = 2**20


def key_of(row: dict) -> tuple:
    return tuple(row[name] for name in ("ours", "peer", "padded", "size", "quantity", "mode"))


class LongCase(Case):
    """Lengths for one example too many."""

    @property
    def valid_lens(self):
        return Case(self.batch + 1, self.length).valid_lens


@pytest.fixture(scope="module")
def page():
    """The extension that draws the page."""
    path = ROOT / "book" / "_ext" / "benchmarks_ext.py"
    spec = importlib.util.spec_from_file_location("benchmarks_ext", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run(page) -> dict:
    """The stored run of the CPU, to look at or to change."""
    return copy.deepcopy(page.stored_runs()["last"])


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


def test_the_unchecked_contestant_checks_nothing():
    forward, _ = CONTESTANTS["the same, unchecked"](LongCase(2, 3))
    with pytest.raises(RuntimeError, match="size of tensor"):
        forward()
    forward, _ = CONTESTANTS["DotProductAttention"](LongCase(2, 3))
    with pytest.raises(ShapeError):
        forward()


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
    # The weights, written over the penalised scores; the system counts pages in steps.
    weights = 8 * 1024**2 * 4
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


# The stored run


def test_the_stored_run_is_of_todays_comparisons_and_bounds(run):
    stored = {key_of(row): row for row in run["rows"]}
    promised = {
        (c.ours, c.peer, c.padded, "usual", *kind.split()): pytest.approx(bound, rel=1e-3)
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


def test_the_stored_run_bears_out_what_the_page_says_of_growth_and_checks(run):
    slopes = {series["name"]: series["exponents"] for series in run["growth"]}
    for name in ("DotProductAttention", "DotProductAttention(fused=True)"):
        assert slopes[name]["time"] == pytest.approx(2, abs=0.2)
    assert slopes["DotProductAttention"]["memory"] == pytest.approx(2, abs=0.1)
    assert slopes["DotProductAttention(fused=True)"]["memory"] < 1.1
    ratios = {key_of(row)[1:]: row["ratio"] for row in run["rows"]}
    unchecked = ("the same, unchecked", True, "usual", "time", "inference")
    assert ratios[unchecked] == pytest.approx(1, abs=0.02)


def test_a_stored_run_names_no_computer_and_no_folder(page):
    for run in page.stored_runs().values():
        text = json.dumps(run)
        assert platform.node() not in text
        assert not {"/home", "/tmp", "/root", str(ROOT)} & set(text.split('"'))
        assert not any(part.startswith("/") for part in text.split('"'))


# The page


def shown_ratio(row):
    least = f" ({row['least']:.2f})" if row["quantity"] == "time" else ""
    return f"{row['ratio']:.2f}{least}"


def test_the_page_shows_each_stored_ratio_and_the_machine(page):
    built = built_book() / "book" / "benchmarks.html"
    shown = BeautifulSoup(built.read_text(encoding="utf-8"), "html.parser")
    for name, run in page.stored_runs().items():
        machine = shown.find(id=f"benchmarks-{name}").get_text(" ", strip=True)
        for word in (run["date"], run["machine"]["processor"], run["versions"]["torch"]):
            assert word in machine
    cells = [cell.get_text("|") for cell in shown.select("table.benchmarks td") if cell.get_text()]
    wanted = [
        (shown_ratio(row), *(page.readable(v, row["quantity"]) for v in row["values"]))
        for run in page.stored_runs().values()
        for row in run["rows"]
    ]
    assert sorted((c.split("|")[0], *c.split("|")[-2:]) for c in cells) == sorted(wanted)


def test_the_pictures_of_the_page_are_those_of_the_stored_runs(page):
    images = built_book() / "_images"
    shown = (built_book() / "book" / "benchmarks.html").read_text(encoding="utf-8")
    alts = [i["alt"] for i in BeautifulSoup(shown, "html.parser").select("figure.drawn img")]
    for name, run in page.stored_runs().items():
        for kind, (draw, alt, _) in page.PICTURES.items():
            assert alt(run) in alts
            for form, width in (("wide", page.WIDE), ("narrow", page.NARROW)):
                with rc_context(plots.STYLE):
                    picture = page.svg(draw(run, width))
                file = f"benchmarks-{name}-{kind}-{form}.svg"
                assert (images / file).read_text(encoding="utf-8") == picture
                assert file in shown


def test_another_run_is_another_picture_table_and_number(page, run):
    before = copy.deepcopy(run)
    row = run["rows"][-1]
    row["ratio"], row["least"] = 123.0, 150.0
    run["growth"][0]["exponents"]["time"] = 3.21
    with rc_context(plots.STYLE):
        for draw, alt, _ in page.PICTURES.values():
            assert page.svg(draw(run, page.WIDE)) != page.svg(draw(before, page.WIDE))
            assert alt(run) != alt(before)
    assert "123.00" in page.table(run)
    changed = dict(page.numbers(run, "last")).items() - dict(page.numbers(before, "last")).items()
    assert {text for _, text in changed} == {"123.00", "150.00", "3.21"}


def test_the_page_says_which_promise_is_missed(page, run):
    promised = [row for row in run["rows"] if row["bound"]]
    for row in promised:
        row["ratio"] = row["bound"]
    assert page.described(run).endswith(f"{len(promised)} promises it keeps {len(promised)}.")
    assert "not&nbsp;≤" not in page.table(run)
    promised[0]["ratio"] = promised[0]["bound"] * 1.01
    assert page.described(run).endswith(f"{len(promised)} promises it keeps {len(promised) - 1}.")
    assert page.table(run).count("not&nbsp;≤") == 1


@pytest.mark.parametrize(
    ("value", "quantity", "words"),
    [
        (1.34e-5, "time", "13 µs"),
        (0.1532, "time", "153 ms"),
        (2.0, "time", "2 s"),
        (3.6 * MIB, "memory", "3.6 MiB"),
        (2**31, "memory", "2 GiB"),
        (0, "memory", "0 KiB"),
    ],
)
def test_amounts_have_a_unit_that_fits(page, value, quantity, words):
    assert page.readable(value, quantity).replace("\N{NO-BREAK SPACE}", " ") == words
