"""The figures from Python: what they take, what they refuse, what they leave in a notebook."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from functools import cache
from itertools import pairwise, product
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from babel.messages.jslexer import tokenize
from bs4 import BeautifulSoup
from IPython.core.interactiveshell import InteractiveShell
from messages_ext import figure_messages
from traitlets import TraitError

from attention_book import MultiHeadAttention, ShapeError, figures, plots
from attention_book.figures import (
    AdditiveFigure,
    BlockFigure,
    HeadsFigure,
    LanguageModelFigure,
    LookupFigure,
    MaskingFigure,
    MatmulFigure,
    RegressionFigure,
    ScaleFigure,
    ScoringFigure,
    TilingFigure,
    base,
)
from attention_book.figures.heads import ring
from attention_book.walk import ShapeExplorer, ShapeWalk

EVERY = [*(getattr(figures, name) for name in figures.__all__), ShapeWalk]
KIBIBYTE = 1024


def stored(html: str) -> tuple[dict[str, Any], Any, str]:
    """The state, the picture's element and the caption in a figure's HTML."""
    page = BeautifulSoup(html, "html.parser")
    return json.loads(page.script.string), page.img, page.figcaption.string


@cache
def html_of(kind: Any) -> str:
    """What a figure without arguments stores; its picture takes longest to draw."""
    return kind().to_html()


@pytest.mark.parametrize("kind", EVERY)
def test_a_figure_without_arguments_stores_the_same_html_each_time(kind):
    first = html_of(kind)
    with plt.rc_context():
        plots.use_style()
        plt.rcParams["font.size"] = 20
        assert kind().to_html() == first


@pytest.mark.parametrize("kind", EVERY)
def test_html_holds_state_picture_alternative_and_caption(kind):
    figure = kind()
    state, picture, caption = stored(html_of(kind))
    assert state == json.loads(json.dumps(figure.state()))
    limit = 120 if kind is LanguageModelFigure else 50  # it brings 76,000 parameters along
    assert len(json.dumps(state)) <= limit * KIBIBYTE
    assert picture["alt"] == figure.alt
    assert 40 < len(figure.alt) < 300
    assert figure.caption in caption
    svg = ET.fromstring(unquote(picture["src"].partition(",")[2]))
    assert svg.tag.endswith("svg")
    assert len(list(svg.iter())) > 50  # not a blank picture


@pytest.mark.parametrize("kind", EVERY)
def test_a_figure_has_a_python_file_and_a_module_of_the_same_name(kind):
    name = kind.__module__.rpartition(".")[2]
    assert kind.kind == name
    text = (kind.folder / f"{name}.js").read_text(encoding="utf-8")
    assert "export default" in text
    assert "import " not in text


FILLS = ["-inf", "-1e6", "1e-6", "after"]


def ways_to_mask(scores: torch.Tensor, allowed: torch.Tensor, fill: str) -> torch.Tensor:
    """Weights, masked as a figure's `fill` says, written out a second time."""
    if fill == "after":
        return torch.softmax(scores, dim=-1) * allowed
    weights = torch.softmax(torch.where(allowed, scores, float(fill)), dim=-1)
    return weights.nan_to_num()  # a row filled with −∞ alone


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("lens", [[1, 3], [0, 3], [[1, 2], [3, 0]]], ids=str)
def test_the_still_picture_shows_the_weights_of_the_chosen_fill(fill, lens):
    scores = torch.tensor([[[0.3, 1.1, 0.7], [1.2, 0.1, 0.4]], [[0.9, 0.2, 0.5], [0.6, 0.8, 1.3]]])
    allowed = torch.arange(3) < torch.tensor(lens).reshape(2, -1, 1)
    weights = ways_to_mask(scores.double(), allowed, fill)
    shown = ET.fromstring(MaskingFigure(scores, lens, fill=fill).still()).itertext()
    numbers = [text for text in shown if re.fullmatch(r"\d\.\d\d", text)]
    assert numbers == [f"{weight:.2f}" for weight in weights.flatten().tolist()]


@pytest.mark.parametrize(
    ("fill", "lens", "words"),
    [
        ("-inf", [2, 3], "−∞: masked keys of example 1 get 0, and its rows sum to 1.000."),
        ("-inf", [4, 3], "No key of example 1 is masked, and its rows sum to 1.000."),
        (
            "-inf",
            [[0, 2], [3, 3]],
            "Example 1: rows with a valid key sum to 1, rows without one to 0; masked keys get 0.",
        ),
        ("-1e6", [2, 0], "−10⁶: masked keys of example 1 get 0, and its rows sum to 1.000."),
        ("-1e6", [0, 3], "−10⁶: masked keys of example 1 keep up to 0.250, a leak."),
        ("1e-6", [2, 3], "10⁻⁶: masked keys of example 1 keep up to 0.096, a leak."),
        (
            "after",
            [2, 3],
            "0 afterwards: the rows of example 1 sum to 0.119 and 0.269.",
        ),
    ],
)
def test_the_alternative_of_a_masked_figure_says_what_the_weights_do(fill, lens, words):
    assert MaskingFigure(valid_lens=lens, fill=fill).alt.endswith(words)


@pytest.mark.parametrize(("fill", "compare"), [*product(FILLS, repeat=2)])
def test_two_fills_stand_side_by_side_and_their_largest_difference_is_named(fill, compare):
    scores = torch.tensor([[[0.3, 1.1, 0.7], [1.2, 0.1, 0.4]], [[0.9, 0.2, 0.5], [0.6, 0.8, 1.3]]])
    allowed = torch.arange(3) < torch.tensor([2, 0])[:, None, None]
    first, second = (ways_to_mask(scores.double(), allowed, way) for way in (fill, compare))
    figure = MaskingFigure(scores, [2, 0], fill=fill, compare=compare)
    shown = ET.fromstring(figure.still()).itertext()
    numbers = [text for text in shown if re.fullmatch(r"\d\.\d\d", text)]
    both = torch.cat([first.flatten(), second.flatten()]).tolist()
    assert numbers == [f"{weight:.2f}" for weight in both]
    gaps = (first - second)[0].abs()  # what is said is said of example 1
    if gaps.max() <= 1e-9:
        assert figure.alt.endswith(": its weights are the same.")
        return
    count, most = int((gaps > 1e-9).sum()), f"{gaps.max():.3f}"
    assert f"{count} of 6 weights differ, by up to {most} (query" in figure.alt
    at = re.search(r"\(query (\d), key (\d)\)\.$", figure.alt)
    assert gaps[tuple(int(i) - 1 for i in at.groups())] == pytest.approx(gaps.max().item())


#: What other controls must be for a move to be seen, and what only chooses a slider.
SEEN = {
    "block": {"dropout": 0.3},
    "heads": {"num_heads": 2},
    "rotation": {"stretch": 2},
    "language_model": {"written": 4, "top_k": 20},
}
UNSEEN = {("regression", "point")}
MOVED = [
    (kind, name)
    for kind in EVERY
    for name, about in kind.controls().items()
    if "stops" in about and (kind.kind, name) not in UNSEEN
]


@cache
def opened(kind: Any) -> tuple[str, str]:
    """The words and the picture that a figure opens with."""
    figure = kind(**SEEN.get(kind.kind, {}))
    return figure.alt, figure.still()


@pytest.mark.parametrize(("kind", "name"), MOVED, ids=lambda part: getattr(part, "kind", part))
def test_a_moved_control_changes_picture_and_words_alike(kind, name):
    figure = kind(**SEEN.get(kind.kind, {}))
    before, still = opened(kind)
    stops = figure.stops(name)
    stop = next(stop for stop in (stops[0], stops[-1]) if stop != getattr(figure, name))
    setattr(figure, name, [stop, stop] if kind.controls()[name].get("isPair") else stop)
    assert figure.alt == figure.describe() != before, f"the words say nothing of {name}"
    assert figure.still() != still, f"the picture does not show {name}"


@pytest.mark.parametrize("kind", EVERY)
def test_what_can_be_moved_is_named_in_the_help_of_its_figure(kind):
    text = kind.__doc__ or ""
    declared = [name for name, about in kind.controls().items() if about]
    missing = [name for name in declared if f"`{name}`" not in text]
    assert not missing, f"the docstring of {kind.__name__} does not name {missing}"


LARGEST = {
    "masking": lambda: MaskingFigure(-torch.rand(4, 8, 12)),
    "scale": lambda: ScaleFigure(torch.randn(20, 4096), torch.randn(16, 4096)),
    "heads": lambda: HeadsFigure(*(torch.rand(n, 12, 12) for n in (1, 2, 4, 8, 16))),
    "block": lambda: BlockFigure(torch.rand(8, 64)),
    "tiling": lambda: TilingFigure(-torch.rand(16, 16)),
}


@pytest.mark.parametrize("make", LARGEST.values(), ids=LARGEST.keys())
def test_the_largest_figure_a_reader_can_make_stays_small(make):
    assert len(json.dumps(make().state(), separators=(",", ":"))) <= 50 * KIBIBYTE


def test_no_state_can_end_its_script_element():
    tokens = ["</script><b>", "b", "c", "d"]
    state, *_ = stored(MaskingFigure(tokens=tokens).to_html())
    assert state["data"]["tokens"] == tokens


def test_shown_live_where_the_front_end_names_its_cell(monkeypatch):
    parent = {"metadata": {}}
    kernel = SimpleNamespace(get_parent=lambda: parent)
    monkeypatch.setattr(base, "get_ipython", lambda: SimpleNamespace(kernel=kernel))
    view = "application/vnd.jupyter.widget-view+json"
    bundle, _ = MaskingFigure()._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    parent["metadata"]["cellId"] = "a1"
    bundle, _ = MaskingFigure()._repr_mimebundle_()
    assert set(bundle) == {view, "text/html", "text/plain"}


def test_a_plain_shell_has_no_kernel_to_live_on(monkeypatch):
    monkeypatch.setattr(base, "get_ipython", lambda: InteractiveShell.instance())
    assert set(MaskingFigure()._repr_mimebundle_()[0]) == {"text/html", "text/plain"}


# --- What is said in another language ------------------------------------------------------------

#: Where a single word is shown, too: as these properties, or as what stands in an element.
SHOWN = {"title", "label", "xLabel", "yLabel", "task", "reading", '"aria-label"'}
NO_TEXT = {
    "classes": r"(af-\S+ ?)+",
    "styles and drawing": r"(--|translate\(|stop-color:|…px |background:|var\(|… … ).*",
    "functions of styles": r"(calc|color-mix|linear-gradient)\(.*",
    "media queries": r"\([a-z-]+: \w+\)",
    "the start of keys in masking.js": "other ",
}


def untranslated(script: str, within: str = "") -> list[str]:
    """The texts of a script that no t("…") or t`…` translates, as far as they can be told from
    names: those with a space and a word, and a word where it is shown. In the values of a t`…`
    each word counts, because the messages of a template's values are not collected."""
    tokens = [x for x in tokenize(f"{script};", jsx=False, dotted=False) if "comment" not in x.type]
    found, keys = [], set()
    for i, token in enumerate(tokens):
        one, two = [tokens[j].value if j >= 0 else "" for j in (i - 1, i - 2)]
        if token.value == "say" and one != "function":  # its second argument is a key for tests
            depth, at = 0, i + 2
            while depth or tokens[at].value != ",":
                depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(tokens[at].value, 0)
                at += 1
            keys.add(at + 1)
        if token.type not in ("string", "template_string"):
            continue
        is_translated = (two, one) in (("t", "("), ("phrase", "(")) or one == "t"
        values = r"\$\{((?:[^{}]|\{[^{}]*\})*)\}"
        for value in re.findall(values, token.value) if token.value[0] == "`" else []:
            found += untranslated(value, "t" if is_translated else "template")
        text = re.sub(values, "…", token.value[1:-1])
        is_word = " " in text or within == "t" or (one == ":" and two in SHOWN)
        is_word = is_word or (two, one) == ("}", ",")
        if not re.search(r"(?<![\w-])[A-Z]?[a-z]{2,}(?!\w)", text) or not is_word:
            continue
        is_name = one in ("{", ",") and tokens[i + 1].value == ":"
        if is_translated or is_name or i in keys or (two, one) == ("key", ":"):
            continue
        if not any(re.fullmatch(pattern, text) for pattern in NO_TEXT.values()):
            found.append(text)
    return found


SCRIPTS = sorted(file for folder in (base.HERE, ShapeWalk.folder) for file in folder.glob("*.js"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda file: file.stem)
def test_what_a_script_shows_can_be_translated(script):
    assert untranslated(script.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda file: file.stem)
def test_no_text_of_a_script_spans_lines_so_pages_may_have_it_without_indentation(script):
    lines = script.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.count("`") % 2] == []
    comments = [line.strip() for line in lines if re.match(r"\s*(/\*|\*)", line)]
    assert [line for line in comments if "*/" in line[:-2]] == []


def test_the_texts_in_the_data_of_walks_and_orders_are_messages():
    messages = {text for _, _, text in figure_messages()}
    data = ShapeExplorer().data
    breaks = [entry for walk in data["walks"] for entry in walk["breaks"]]
    told = [entry[key] for entry in breaks for key in ("label", "hint") if key in entry]
    told += [case["text"] for entry in breaks for case in entry["cases"]]
    for text, *values in told:  # a message has a place for each of its values
        places = {int(place) for place in re.findall(r"\{(\d+)\}", text)}
        assert places <= set(range(len(values)))
    texts = {text for text, *_ in told} | set(data["meanings"].values())
    texts |= {walk["name"] for walk in data["walks"]} | {each["source"] for each in data["models"]}
    assert texts - messages == {"Transformer"}  # a name
    assert BlockFigure().data["orders"].keys() <= messages


def test_a_text_that_cannot_be_translated_is_found():
    script = 'h("p", {}, "plain"); note(`step ${i}`); slider({ label: "heads" }); t("one head")'
    assert untranslated(script) == ["plain", "step …", "heads"]
    assert untranslated('say(node(a, b), `weight ${i}`, x, t`head ${one ? "one" : h}`)') == ["one"]


# --- What the reader gives ----------------------------------------------------------------------

GOOD = torch.tensor([[[1.0, 2.0, 3.0], [0.5, 0.0, -1.0]]])
BAD = {
    "not a tensor": ([[1.0]], TypeError, ["scores", "list"]),
    "complex": (GOOD.to(torch.complex64), TypeError, ["scores", "complex64"]),
    "boolean": (GOOD > 0, TypeError, ["scores", "bool"]),
    "NaN": (GOOD.masked_fill(GOOD == 0, torch.nan), ValueError, ["scores", "NaN"]),
    "infinity": (GOOD.masked_fill(GOOD == 0, torch.inf), ValueError, ["scores", "infinity"]),
    "two axes": (GOOD[0], ShapeError, ["scores", "(batch, queries, keys)", "2", "(2, 3)"]),
    "empty": (GOOD[:, :, :0], ShapeError, ["'keys' is 0", "(1, 2, 0)"]),
    "too large": (torch.zeros(1, 2, 500), ShapeError, ["'keys' is 500", "(1, 2, 500)", "12"]),
    "requires grad": (GOOD.clone().requires_grad_(), ValueError, ["scores", ".detach()"]),
    "other device": (GOOD.to("meta"), ValueError, ["scores", "meta", ".cpu()"]),
}


@pytest.mark.parametrize(("scores", "error", "pieces"), BAD.values(), ids=BAD.keys())
def test_a_tensor_that_cannot_be_drawn_is_named_in_one_sentence(scores, error, pieces):
    with pytest.raises(error) as caught:
        MaskingFigure(scores)
    message = str(caught.value)
    assert "\n" not in message
    for piece in ["MaskingFigure", *pieces]:
        assert piece in message


ONE_LIST = [[1.0, 2.0]]
POINT = torch.tensor(1.0)
UNFIT = {
    "scale, list": (lambda: ScaleFigure(ONE_LIST), TypeError, "queries must be a tensor"),
    "scale, point": (lambda: ScaleFigure(POINT), ShapeError, "queries must have 2 axes"),
    "matmul, point": (lambda: MatmulFigure(POINT), ShapeError, "queries must have 2 axes"),
    "tile 0, step": (lambda: TilingFigure(tile=0, step=9), TraitError, "tile must be one of"),
    "lens, one": (lambda: MaskingFigure(valid_lens=3), TraitError, "valid_lens.*MaskingFigure.*3"),
    "query, one": (lambda: ScoringFigure(query=3.0), TraitError, "2 numbers, but is 3.0"),
    "query, texts": (lambda: ScoringFigure(query=["a", 1]), TraitError, "one of .*but is 'a'"),
    "tokens": (lambda: BlockFigure(tokens=5), TypeError, "tokens must be a list of labels.*int"),
}


@pytest.mark.parametrize(("make", "error", "piece"), UNFIT.values(), ids=UNFIT.keys())
def test_what_is_of_the_wrong_kind_is_refused_by_name(make, error, piece):
    with pytest.raises(error, match=piece):
        make()


def test_labels_that_are_not_given_count_like_the_figure_does():
    assert HeadsFigure(torch.full((1, 2, 2), 0.5)).data["tokens"] == ["0", "1"]
    assert BlockFigure(torch.ones(2, 4)).data["tokens"] == ["t1", "t2"]
    assert MaskingFigure(GOOD).data["tokens"] == ["key 1", "key 2", "key 3"]


BLANK = torch.full((3, 3), torch.nan)
NUMBERS = {
    "lookup": (lambda t: LookupFigure(t[0], t[1]), "keys"),
    "scale": (lambda t: ScaleFigure(t, t), "queries"),
    "regression": (lambda t: RegressionFigure(t[0], t[0]), "keys"),
    "scoring": (lambda t: ScoringFigure(t[:, :2]), "keys"),
    "matmul": (lambda t: MatmulFigure(t, t), "queries"),
    "additive": (lambda t: AdditiveFigure(t[:, :2], t[:, :1], t[0]), "W_q"),
    "heads": (lambda t: HeadsFigure(t[None]), "maps"),
    "block": (lambda t: BlockFigure(t), "x"),
    "tiling": (lambda t: TilingFigure(t), "scores"),
}


@pytest.mark.parametrize(("make", "name"), NUMBERS.values(), ids=NUMBERS.keys())
def test_each_figure_names_the_argument_that_is_not_finite(make, name):
    with pytest.raises(ValueError, match=f"Figure: {name} holds NaN"):
        make(BLANK)


@pytest.mark.parametrize(("make", "name"), NUMBERS.values(), ids=NUMBERS.keys())
def test_each_figure_takes_the_readers_tensors(make, name):
    given = torch.linspace(-1, 1, 9, dtype=torch.float32).reshape(3, 3)
    kept = given.clone()
    state, *_ = stored(make(given).to_html())
    assert state["data"]
    assert torch.equal(given, kept)


MISFITS = {
    "tokens": (lambda: MaskingFigure(GOOD, tokens=["a", "b"]), "2 tokens for 3"),
    "sizes": (lambda: ScaleFigure(torch.ones(2, 5), torch.ones(2, 3)), "'d_k' is 3"),
    "pairs": (lambda: RegressionFigure(torch.ones(5), torch.ones(3)), "'keys' is 3"),
    "plane": (lambda: ScoringFigure(torch.ones(3, 1)), "size 2"),
    "off the plane": (lambda: ScoringFigure(torch.full((3, 2), 5.0)), "−3 and 3"),
    "constant": (
        lambda: AdditiveFigure(torch.ones(2, 1), torch.ones(2, 1), torch.ones(2)),
        "constant 1",
    ),
    "heads": (lambda: HeadsFigure(torch.ones(1, 2, 2), torch.ones(2, 3, 3)), "'length' is 3"),
    "heads not square": (lambda: HeadsFigure(torch.ones(1, 2, 3)), "must be square"),
    "heads twice": (lambda: HeadsFigure(torch.ones(1, 2, 2), torch.ones(1, 2, 2)), "two of the"),
    "not square": (lambda: TilingFigure(torch.ones(2, 3)), "must be square"),
    "values": (lambda: TilingFigure(torch.ones(2, 2), torch.ones(3, 1)), "'length' is 3"),
}


@pytest.mark.parametrize(("make", "piece"), MISFITS.values(), ids=MISFITS.keys())
def test_what_does_not_fit_together_is_refused(make, piece):
    with pytest.raises((ValueError, TypeError), match=piece):
        make()


CONTROLS = {
    "too long": (MaskingFigure, "valid_lens", [5, 1], "from 0 to 4"),
    "negative": (MaskingFigure, "valid_lens", [-1, 1], "from 0 to 4"),
    "half": (MaskingFigure, "valid_lens", [1.5, 1], "from 0 to 4"),
    "one length": (MaskingFigure, "valid_lens", [1], "2 whole numbers"),
    "ragged": (MaskingFigure, "valid_lens", [[1, 2], [1]], "2 lists of 2"),
    "scores, shape": (MaskingFigure, "scores", [[[1, 2]]], r"shape \(2, 2, 4\)"),
    "scores, text": (MaskingFigure, "scores", "abc", "finite numbers"),
    "scores, ragged": (MaskingFigure, "scores", [[[1, 2], [3]]], "finite numbers"),
    "scores, nothing": (MaskingFigure, "scores", None, "finite numbers"),
    "scores, NaN": (MatmulFigure, "Q", torch.full((2, 3, 4), torch.nan), "finite numbers"),
    "values, shape": (RegressionFigure, "values", [1.0], r"shape \(20,\)"),
    "values, high": (RegressionFigure, "values", [1.0] * 19 + [99.0], "finite numbers from"),
    "three": (ScoringFigure, "query", [1.0, 2.0, 3.0], "2 numbers"),
    "half a step": (MatmulFigure, "step", 1.0, "from 0 to 11"),
    "true step": (MatmulFigure, "step", True, "from 0 to 11"),
    "order": (BlockFigure, "order", "sorted", "one of"),
    "order, twice": (BlockFigure, "order", [0, 1, 2, 3, 3], "places 0 to 4"),
    "order, short": (BlockFigure, "order", [1, 0], "places 0 to 4"),
    "order, true": (BlockFigure, "order", [True, 0, 2, 3, 4], "places 0 to 4"),
    "positions": (BlockFigure, "positions", 1, "one of"),
}


@pytest.mark.parametrize(("kind", "name", "value", "piece"), CONTROLS.values(), ids=CONTROLS.keys())
def test_a_control_refuses_what_its_slider_cannot_show(kind, name, value, piece):
    figure = kind()
    kept = getattr(figure, name)
    with pytest.raises(TraitError, match=piece):
        setattr(figure, name, value)
    assert getattr(figure, name) == kept


def test_a_control_can_be_read_set_observed_and_given_at_the_start():
    figure = MaskingFigure(GOOD, torch.tensor([2]), tokens=["a", "b", "c"], fill="1e-6")
    seen = []
    figure.observe(lambda change: seen.append(change["new"]), "valid_lens")
    figure.valid_lens = [[1, 3]]
    assert seen == [[[1, 3]]]
    assert figure.state()["fill"] == "1e-6"


def test_a_control_takes_any_kind_of_list():
    for lens in ((1, 2), torch.tensor([1, 2]), np.array([1, 2])):
        assert MaskingFigure(valid_lens=lens).valid_lens == [1, 2]
    for query in ((1, 2.5), torch.tensor([1, 2.5]), np.array([1, 2.5]), [np.float32(1), 2.5]):
        assert ScoringFigure(query=query).query == [1.0, 2.5]


def test_larger_tiles_keep_the_other_slider_in_range():
    tiling = TilingFigure(tile=1, step=64)
    tiling.tile = 4
    assert tiling.step == 4


def test_one_head_is_shown_alone_until_a_model_has_fewer_heads():
    heads = HeadsFigure(num_heads=4, head=3)
    every = HeadsFigure(num_heads=4)
    assert heads.alt.endswith(" In head 3, position E attends most to D (0.86).")
    assert heads.still() != every.still()
    heads.num_heads = 8
    assert heads.head == 3
    heads.num_heads = 2
    assert heads.head == "all"
    assert heads.alt == HeadsFigure(num_heads=2).alt


def test_an_order_is_a_name_or_any_list_of_the_places():
    named, listed = BlockFigure(order="shifted by one"), BlockFigure(order=(1, 2, 3, 4, 0))
    assert named.order == listed.order == [1, 2, 3, 4, 0]
    assert named.alt == listed.alt
    named.order = torch.tensor([4, 3, 2, 1, 0])
    assert "“man a bit dog the”" in named.alt


def test_the_parts_that_a_page_gets_make_up_the_block():
    x = torch.randn(4, 6, dtype=torch.float64)
    figure = BlockFigure(x, order=[2, 0, 3, 1], positions=True)
    parts = {
        name: torch.tensor(figure.data[name], dtype=torch.float64)
        for name in ("x", "code", "scores", "updates")
    }
    order, places = torch.tensor(figure.order), torch.arange(4)
    at = [order, places]  # tokens, then places
    scores = sum(parts["scores"][a, b][at[a]][:, at[b]] for a in range(2) for b in range(2))
    updates = sum(parts["updates"][a][at[a]] for a in range(2))
    weights, outputs = figure.outputs(figure.order, 0.0)
    assert torch.allclose(torch.softmax(scores, dim=-1), weights, atol=1e-7)
    sums = parts["x"][order] + parts["code"] + weights @ updates
    normalised = torch.nn.functional.layer_norm(sums, (6,), eps=1e-12)
    assert torch.allclose(normalised, outputs, atol=1e-6)


def test_memory_at_a_real_length_is_said_and_drawn():
    figure = TilingFigure(n=32_768)
    words = "At n = 32,768 the whole matrix takes 4 GiB, about 43,200 times the 97 KiB of one tile"
    assert words in figure.alt
    assert "n = 32,768: 4 GiB as a whole, 97 KiB per tile" in figure.still()
    figure.n = 1024
    assert "the whole matrix takes 4 MiB, about 42.2 times the 97 KiB" in figure.alt


def test_typed_numbers_move_picture_and_words():
    figure, still = MatmulFigure(step=0), MatmulFigure(step=0).still()
    figure.Q = torch.tensor([[[1, 2, 0, -1], [0, 1, 2, 1], [2, 0, 1, -1]], figure.Q[1]])
    assert figure.describe().endswith("q1 · k1 = 1×1 + 2×0 + 0×1 + (−1)×1 = 0.")
    assert figure.still() != still


def test_moved_values_change_picture_and_words_and_given_ones_stay():
    figure, still = RegressionFigure(width=10.0), RegressionFigure(width=10.0).still()
    given = figure.values
    figure.values = [given[0] + 1.0, *given[1:]]
    assert figure.describe().endswith(" 1 moved point changes it by 0.05.")  # 1/20
    assert figure.still() != still
    assert figure.data["given"] == given
    figure.values = given
    assert "moved" not in figure.describe()
    assert figure.still() == still


def test_the_words_name_the_keys_that_win_nowhere():
    assert " No region for k2 by dot; k2 by scaled dot; k2 by bilinear. " in ScoringFigure().alt
    square = torch.tensor([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    assert "No region" not in ScoringFigure(square).alt


def test_the_plain_dot_of_the_scale_figure_climbs_as_its_gradient_falls():
    figure = ScaleFigure()
    queries, keys = base.example(200, 1024, seed=1), base.example(10, 1024, seed=2)
    back, heaviest = torch.zeros(200, dtype=torch.float64), []
    for size in figure.data["stops"]:
        heaviest.append(torch.softmax(queries[:, :size] @ keys[:, :size].T, dim=-1).amax(dim=-1))
    leads = [(weight / (1 - weight)).log().clamp(-8, 8) for weight in heaviest]
    for one, next_one in pairwise(leads):
        back += torch.relu(one - next_one)
    assert figure.data["query"] == back.argmin()

    plain, scaled = figure.data["plain"], figure.data["scaled"]
    for i in range(3, len(plain)):  # from d_k = 8 on
        before, now = plain[i - 1 : i + 1]
        assert max(now["weights"]) >= max(before["weights"])
        assert now["gradient"] < before["gradient"]
        assert now["slope"] <= before["slope"] or i == 3  # at 8 the weight passes ½
        assert now["slope"] < scaled[i]["slope"] or i == 3
    assert plain[10]["slope"] < 1e-6 < plain[6]["slope"]


def test_the_best_of_a_single_key_has_all_the_weight():
    figure = ScaleFigure(torch.ones(1, 1), torch.ones(1, 1))
    assert figure.data["plain"][0]["lead"] == 8.0
    assert "at weight 1.000, slope 0.000 if plain; 1.000, 0.000 if scaled." in figure.alt


def test_maps_of_a_readers_own_model_are_taken_as_the_module_leaves_them():
    attention = MultiHeadAttention(8, 2).eval()
    attention(*torch.rand(3, 1, 5, 8).unbind())
    figure = HeadsFigure(attention.attention_weights[0].detach())
    assert figure.data["counts"] == [2]
    assert figure.data["errors"] == []  # nothing is claimed about how they were trained


def test_training_for_a_figure_leaves_the_readers_random_numbers_alone():
    ring.cache_clear()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    HeadsFigure()
    assert torch.equal(torch.rand(3), expected)


def test_a_notebook_prints_one_sentence_for_a_value_that_no_control_shows(capsys) -> None:
    shell = InteractiveShell()
    shell.push({"figure": MaskingFigure()})
    shell.run_cell("figure.fill = 'nonsense'")
    assert re.fullmatch(r"TraitError: MaskingFigure: fill must be .*\n+", capsys.readouterr().out)
