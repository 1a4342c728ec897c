"""examine: right subjects are left in peace, and wrong ones are called by their names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from functools import partial

import examined
import pytest
import torch
from browser import ROOT
from torch import nn
from torch.nn import functional as F

from attention_book.examine import CannotExamine, examination
from attention_book.examine.__main__ import loaded, main
from attention_book.examine.reading import declared
from attention_book.examine.report import PAGES
from attention_book.examine.subject import Subject
from attention_book.mistakes import MISTAKES

#: On a busy machine an examination takes longer, and is none the less right.
examine = partial(examination.examine, seconds=600)


def names(report) -> set[str]:
    """The findings, with what cannot be told apart from them."""
    return {name for finding in report.findings for name in (finding.name, *finding.also)}


@pytest.mark.parametrize("subject", examined.RIGHT + examined.MODULES)
def test_a_right_subject_is_left_in_peace(subject) -> None:
    report = examine(subject)
    assert report.ok, report


@pytest.mark.parametrize(("kind", "name"), examined.WRONG)
def test_a_subject_with_one_wrong_line_is_called_by_the_mistakes_name(kind: str, name: str) -> None:
    subject, options = examined.wrong(kind, name)
    report, name = examine(subject, **options), name.split()[0]
    others = {"causal": "attention", "cached": "heads", "separate": "heads"}
    assert report.kind == others.get(kind, kind)
    found = [finding.name for finding in report.findings]
    assert len(found) == 1, report
    assert name in (names(report) if kind in {"attention", "softmax"} else found), report


@pytest.mark.parametrize("block", [3, 16, 64])
@pytest.mark.parametrize(("name", "lines", "line", "other"), examined.BLOCKS)
def test_a_mistake_between_blocks_has_a_name_whatever_their_size(
    name, lines, line, other, block
) -> None:
    head = f"q, k, v, block_size={block}"
    assert examine(examined.changed(line, line, lines, head)).ok
    assert names(examine(examined.changed(line, other, lines, head))) == {name}


@pytest.mark.parametrize(("dim", "over"), [(-2, "queries"), (-4, "batch")])
def test_sums_alone_tell_the_axis_of_a_softmax_with_a_second_mistake(dim: int, over: str) -> None:
    def softmax(scores):
        return (1.7 * scores).softmax(dim)

    assert f"softmax-over-{over}" in names(examine(softmax, kind="softmax"))


def test_a_causal_rule_that_is_always_on_is_a_reading_and_its_mistakes_are_named() -> None:
    lines = examined.CAUSAL_LINES.replace("if causal", "if True")
    strict = examined.changed(*examined.CAUSAL["causal-strict"], lines, "q, k, v")
    assert names(examine(strict)) == {"causal-strict"}

    def causal_attention(q, k, v):
        return F.scaled_dot_product_attention(q, k, v)

    assert names(examine(causal_attention)) == {"causal-ignored"}


@pytest.mark.parametrize("tiled", [False, True])
def test_heads_of_queries_share_heads_of_keys_in_groups(tiled: bool) -> None:
    def attention(q, k, v):
        n = q.shape[1] // k.shape[1]
        k, v = (x.repeat(1, n, 1, 1) if tiled else x.repeat_interleave(n, 1) for x in (k, v))
        return F.scaled_dot_product_attention(q, k, v)

    wanted = {"kv-heads-interleaved-wrongly"} if tiled else set()
    assert names(examine(attention, layout="bhld")) == wanted


def test_what_promises_a_cache_is_not_excused_by_pytorchs_convention() -> None:
    def attend(q, k, v, is_causal=True):
        """Causal, for decoding with a cache too."""
        return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)

    assert names(examine(attend)) == {"causal-aligned-to-first"}
    attend.__doc__ = ""
    assert examine(attend).ok


def test_a_rotation_that_turns_the_other_way_is_a_note() -> None:
    other = examined.changed("[-second, first]", "[second, -first]", *examined.ROTATES)
    report = examine(other, "rotation")
    assert report.ok
    assert [note.name for note in report.notes] == ["rotation-backwards"]


def test_of_two_kinds_the_one_that_explains_more_is_believed() -> None:
    def attend(scores, values):
        return scores.softmax(-2) @ values

    assert examine(attend).kind == "attention"


def test_calls_that_make_a_later_one_fail_are_remembered() -> None:
    class Tired(nn.Module):
        calls = 0

        def forward(self, q, k, v):
            self.calls += 1
            return F.scaled_dot_product_attention(q, k, v if self.calls < 3 else v[0, 0])

    assert names(examine(Tired, "attention")) == {"remembers-last-call"}


def test_a_cache_is_found_behind_a_method_for_one_step() -> None:
    class Late(examined.Stepping):
        def step(self, tokens):
            logits, self.at = super().step(tokens), self.at - tokens.shape[1] + 1
            return logits

    assert names(examine(Late)) == {"cache-differs"}


@pytest.mark.parametrize(
    "given",
    ["(places[:, None] * self.place.weight[0]).sin()", "self.place.weight[places[0] :][:n]"],
    ids=["counted", "in a table"],
)
def test_a_caches_positions_are_named_whether_counted_or_in_a_table(given: str) -> None:
    source = examined.DECODER_SOURCE.replace("self.place(places)", given)
    restarts = examined.rewritten(examined.PLACED, "places = torch.arange(n)", source)
    assert names(examine(restarts)) == {"positions-restart-with-cache"}


def hides(q, k, v, mask):
    weights = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(mask, -1e30).softmax(-1)
    return weights @ v


def test_a_masks_meaning_is_found_by_trying_and_fixed_by_a_declaration(monkeypatch) -> None:
    report = examine(hides)
    assert report.ok
    assert "True = hidden" in report.reading
    assert examine(hides, mask="blocked").ok
    assert names(examine(hides, mask="allowed")) == {"mask-polarity"}

    monkeypatch.setattr(hides, "__doc__", "mask: True means that a query may attend to the key.")
    for subject in (hides, lambda q, k, v, blocked: hides(q, k, v, ~blocked)):
        assert names(examine(subject, "attention")) == {"mask-polarity"}


@pytest.mark.parametrize(
    ("words", "slot", "meaning"),
    [
        ("True means that a query may attend to the key.", "mask", "allowed"),
        ("True where a key is padding.", "mask", "blocked"),
        ("False where a key is hidden.", "mask", "allowed"),
        ("1 for real tokens and 0 for padding.", "mask", "allowed"),
        ("", "allowed_keys", "allowed"),
        ("", "blocked", "blocked"),
    ],
)
def test_words_and_names_declare_what_a_mask_means(words: str, slot: str, meaning: str) -> None:
    def subject(q, k, v, mask):
        return hides(q, k, v, mask)

    subject.__doc__ = f"mask: {words}"
    assert declared(Subject(subject, seconds=30), slot) == meaning


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        ("attention", "empty-row-nan", "A query without any key gets NaN."),
        ("causal", "causal-aligned-to-first", "The causal rule begins at the top left."),
    ],
)
def test_a_convention_that_is_documented_or_allowed_is_a_note(kind, name, words) -> None:
    subject, options = examined.wrong(kind, name)
    assert names(examine(subject, **options)) == {name}
    allowed = examine(subject, allow=[name], **options)
    subject.__doc__ = words
    for report in (allowed, examine(subject, **options)):
        assert report.ok
        assert name in [note.name for note in report.notes]


def test_a_finding_is_shown_with_an_example_that_can_be_run() -> None:
    subject = examined.changed(*examined.ATTENTION["scale-missing"])
    finding = examine(subject).findings[0]
    assert finding.certainty == "identified"
    assert finding.sentence == MISTAKES["scale-missing"].sentence
    assert finding.exhibit == "06_scaled_dot_product.html#trap-17"
    assert [tuple(x.shape) for x in finding.inputs.values()] == [(1, 2, 2)] * 3
    assert all(torch.equal(x, x.round()) for x in finding.inputs.values())
    lines = finding.call.splitlines()
    known = {"torch": torch, "attention": subject}
    exec("\n".join(lines[:-1]), known)
    got = eval(lines[-1], known)
    torch.testing.assert_close(got.double(), finding.got)
    inputs = {name: x.double() for name, x in finding.inputs.items()}
    right = F.scaled_dot_product_attention(*inputs.values())
    torch.testing.assert_close(right, finding.expected)


def test_a_report_can_be_printed_shown_and_stored() -> None:
    subject = examined.changed(*examined.ATTENTION["mask-times-infinity"])
    report = examine(subject)
    assert not report.ok
    assert "0 times infinity is NaN." in repr(report)
    assert "<code>mask-times-infinity</code></a>" in report._repr_html_()
    twins = examine(examined.changed(*examined.ATTENTION["mask-times-scores"]))
    assert "mask-times-scores (or fill-zero" in repr(twins)
    stored = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert stored["ok"] is False
    assert stored["findings"][0]["name"] == "mask-times-infinity"
    assert report.seconds > 0


def test_each_exhibit_stands_on_the_page_that_a_finding_links_to() -> None:
    for label in {mistake.exhibit for mistake in MISTAKES.values() if mistake.exhibit}:
        page = ROOT / "notebooks" / f"{PAGES.get(label, 'museum')}.ipynb"
        assert f"({label})=" in page.read_text(encoding="utf-8"), f"{label} is not in {page}"


def test_two_mistakes_of_different_stages_are_both_named() -> None:
    lines = examined.LINES.replace(examined.SCALED, "scores = q @ k_t")
    subject = examined.changed(*examined.ATTENTION["fill-too-small"], lines)
    assert names(examine(subject)) == {"scale-missing", "fill-too-small"}


def test_the_subject_and_the_process_are_as_before() -> None:
    class Restless(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(()))
            self.register_buffer("seen", torch.zeros(()))

        def forward(self, q, k, v):
            self.seen += 1
            torch.set_default_dtype(torch.float64)
            torch.set_grad_enabled(False)
            torch.set_default_device("meta")
            os.environ["ATTENTION"] = "elsewhere"
            os.chdir("/")
            print("x" * 10_000)
            return F.scaled_dot_product_attention(q, k, v) * self.scale

    subject = Restless()
    subject.scale.grad = torch.tensor(3.0)
    torch.manual_seed(5)
    state, folder = torch.get_rng_state(), os.getcwd()
    assert names(examine(subject, "attention")) == {"global-state-changed"}
    assert (os.getcwd(), os.environ.get("ATTENTION")) == (folder, None)
    assert torch.empty(0).device.type == "cpu"
    assert subject.training
    assert subject.scale.dtype == torch.float32
    assert subject.scale.grad == 3
    assert subject.seen == 0
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_default_dtype() == torch.float32
    assert torch.is_grad_enabled()


def raising(error: BaseException):
    def subject(q, k, v):
        raise error

    return subject


class Holding(nn.Module):
    """Holds a lock, which cannot be copied, or a matrix that is in no memory."""

    def __init__(self, lock=None, device=None):
        super().__init__()
        self.lock, self.map = lock, nn.Linear(4, 4, device=device)

    def forward(self, x):
        return self.map(x)


class Leaves:
    def __init__(self):
        sys.exit(3)


BAD = {
    "made with an exit": (Leaves, "SystemExit"),
    "cannot be copied": (Holding(threading.Lock()), "cannot be copied"),
    "on another device": (Holding(device="meta"), "cannot be copied"),
    "stops": (raising(GeneratorExit()), "GeneratorExit"),
    "sparse": (lambda q, k, v: q.to_sparse(), "real numbers in memory"),
    "result on another device": (lambda q, k, v: q.to("meta"), "real numbers in memory"),
    "raises": (raising(RuntimeError("it needs a GPU")), "RuntimeError: it needs a GPU"),
    "none": (lambda q, k, v: None, "None"),
    "complex": (lambda q, k, v: torch.complex(v, v), "complex|real numbers"),
    "block": (nn.TransformerEncoderLayer(8, 2, 16), "no reference"),
    "scalar": (lambda q, k, v: v.sum(), "shape"),
    "no arguments": (lambda: None, "TypeError"),
    "class with arguments": (nn.Linear, "without arguments"),
    "number": (3, "not a function"),
    "exits": (raising(SystemExit(3)), "SystemExit"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_examined_is_refused_with_what_was_tried(name: str) -> None:
    subject, said = BAD[name]
    with pytest.raises(CannotExamine) as caught:
        examine(subject)
    tried = "\n".join([caught.value.reason, *caught.value.tried])
    assert any(word in tried for word in said.split("|")), tried


def test_a_word_that_is_not_one_of_the_contract_is_refused() -> None:
    for argument in ({"kind": "attn"}, {"mask": "yes"}, {"layout": "bdlh"}):
        with pytest.raises(ValueError, match="must be one of"):
            examine(examined.by_hand, **argument)


def test_time_is_kept_between_calls() -> None:
    with pytest.raises(CannotExamine, match="seconds"):
        examine(examined.by_hand, seconds=0)


FILE = """
import os
import subprocess
import torch
from torch.nn import MultiheadAttention, functional as F
print("noise" * 1000)
def right(q, k, v):
    print("noise" * 1000)
    return F.scaled_dot_product_attention(q, k, v)
def wrong(q, k, v):
    return torch.softmax(q @ k.mT, -1) @ v
def hangs(q, k, v):
    while True:
        pass
def dies(q, k, v):
    subprocess.Popen(["sh", "-c", f"sleep 2; touch {__file__}.late"])
    os._exit(5)
def forks(q, k, v):
    os.fork()
    return wrong(q, k, v)
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("subjects") / "subjects.py"
    path.write_text(FILE, encoding="utf-8")
    (path.parent / "broken.py").write_text("import nowhere_at_all\n", encoding="utf-8")
    yield path
    assert not path.with_name("subjects.py.late").exists(), "what a subject has started lives on"


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("subjects.py:MultiheadAttention", 0, "(embed_dim=32, num_heads=4)"),
        ("subjects.py:hangs", 2, "not finished"),
        ("subjects.py:dies", 2, "ended with code 5"),
    ],
)
def test_the_command_says_by_its_code_what_it_found(file, capsys, name, code, said) -> None:
    seconds = 4 if "hangs" in name else 60
    assert main([str(file.parent / name)], seconds) == code
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("subjects.py:absent", "has no 'absent'"),
        ("broken.py:right", "does not import"),
        ("nothing.py:right", "there is no file"),
        ("right", "there is no file"),
    ],
)
def test_a_name_that_leads_nowhere_is_refused(file, name: str, said: str) -> None:
    with pytest.raises(CannotExamine, match=said):
        loaded(str(file.parent / name))


def test_the_command_gives_the_report_of_a_subject_that_forks_as_data(file) -> None:
    command = [sys.executable, "-m", "attention_book.examine", f"{file}:forks", "--json"]
    said = subprocess.run([*command, "--kind", "attention"], capture_output=True, text=True)
    assert said.returncode == 1, said.stderr
    assert [one["name"] for one in json.loads(said.stdout)["findings"]] == ["scale-missing"]


def test_a_wrong_command_has_the_code_2() -> None:
    with pytest.raises(SystemExit) as caught:
        main(["file.py:right", "--kind", "attn"])
    assert caught.value.code == 2
