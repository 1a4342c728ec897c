"""The live Transformer: its stored parameters, and the page's model against the package's."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from playwright.sync_api import Browser, Page
from scripts import tool
from torch import Tensor
from traitlets import TraitError

from attention_book import Transformer
from attention_book import transformer as transformer_module
from attention_book.data import END, LETTERS, START, Words, reversed_words, words_to_reverse
from attention_book.figures import LiveTransformer
from attention_book.figures.base import kit
from attention_book.figures.live import packed, run, shipped, unpacked

EVERY_HEAD = [(use, 0, head) for use in ("encoder", "decoder", "cross") for head in range(2)]


def drawn(number: int, *, longest: int, seed: int) -> tuple[list[str], Words]:
    words = words_to_reverse(
        number, shortest=1, longest=longest, generator=torch.Generator().manual_seed(seed)
    )
    spelled = zip(words.sources.tolist(), words.source_lens.tolist(), strict=True)
    return ["".join(LETTERS[i] for i in row[:n]) for row, n in spelled], words


def until_the_end(tokens: Tensor) -> Tensor:
    """Tokens after the first end count for nothing."""
    after = (tokens == END).cumsum(dim=1) > 0
    return torch.where(after, END, tokens)


def share_right(model: Transformer, words: Words) -> float:
    steps = words.outputs.shape[1]
    written = model.greedy_decode(words.sources, words.source_lens, start=START, num_steps=steps)
    return (until_the_end(written) == words.outputs).all(dim=1).double().mean().item()


# --- Parameters ---------------------------------------------------------------------------------


def test_the_stored_model_writes_fresh_words_backwards():
    data = shipped()
    _, words = drawn(3000, longest=data["longest"], seed=20_000)
    assert share_right(unpacked(data), words) >= 0.999


def test_the_tool_trains_the_model_that_is_stored():
    live = tool("live")
    data = packed(live.trained(num_steps=1))
    stored = shipped()
    for name in ("d_model", "heads", "layers", "letters", "layout"):
        assert data[name] == stored[name]
    assert [stored["shortest"], stored["longest"]] == [live.SHORTEST, live.LONGEST]


# --- The run in Python --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model() -> Transformer:
    return unpacked(shipped())


def kept(model: Transformer, head: tuple[str, int, int], example: int = 0) -> Tensor:
    use, layer, number = head
    part: Any = (model.encoder if use == "encoder" else model.decoder)[layer]
    attention = part.cross_attention if use == "cross" else part.self_attention
    return attention.attention_weights[example, number]


@pytest.mark.parametrize("positions", [True, False])
def test_a_run_is_the_package_s_own_forward(model, positions, monkeypatch):
    if not positions:
        plain = transformer_module.sinusoidal_positions
        monkeypatch.setattr(
            transformer_module, "sinusoidal_positions", lambda *a, **k: 0 * plain(*a, **k)
        )
    for word in ("a", "regal", "stressed", "counterpoint"):
        found = run(model, word, positions=positions)
        one = reversed_words([word])
        steps = len(found.written)
        by_package = model.greedy_decode(one.sources, start=START, num_steps=steps)
        assert by_package[0].tolist() == found.written
        logits = model(one.sources, torch.tensor([[START, *found.written[:-1]]]))
        assert logits[0].argmax(dim=-1).tolist() == found.says
        for head, weights in found.maps.items():
            torch.testing.assert_close(weights, kept(model, head), rtol=0, atol=1e-12)


def test_without_the_mask_writing_is_the_same_and_reading_again_is_not(model):
    with_mask, without = (run(model, "stressed", causal=causal) for causal in (True, False))
    assert without.written == with_mask.written == with_mask.says
    assert without.says != without.written
    ahead = without.maps["decoder", 0, 0].triu(diagonal=1)
    assert ahead.max() > 0.01
    assert with_mask.maps["decoder", 0, 0].triu(diagonal=1).max() == 0


def test_without_positions_words_of_the_same_letters_are_the_same(model):
    orders = ["live", "evil", "vile", "veil"]
    assert len({tuple(run(model, word, positions=False).written) for word in orders}) == 1


@pytest.mark.parametrize("head", EVERY_HEAD, ids=str)
def test_every_head_matters_for_some_word(model, head):
    words, _ = drawn(30, longest=10, seed=3)
    assert any(run(model, word, off=[head]).written != run(model, word).written for word in words)


# --- The page -----------------------------------------------------------------------------------

RUN = """() => {
  window.runAll = (cases) => JSON.stringify(cases.map(([word, switches]) => {
    const written = net.write(word, switches);
    const once = net.pass(written, switches);
    const maps = { encoder: written.encoder, decoder: once.decoder, cross: once.cross };
    return { written: written.tokens, bytes: written.bytes, says: once.says, maps };
  })); // one text: each number of a list would be sent in a wrapping of its own
}"""
LOAD = """async ([source, data]) => {
  const module = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  window.net = module.network(data);
}"""
ON = {"positions": True, "causal": True, "off": []}


def run_all(page: Page, cases: list[Any]) -> list[Any]:
    return json.loads(page.evaluate("(cases) => runAll(cases)", cases))


@pytest.fixture(scope="module")
def page(browser: Browser) -> Page:
    page = browser.new_page()
    page.evaluate(LOAD, [kit() + LiveTransformer.module(), shipped()])
    page.evaluate(RUN)
    return page


def test_a_thousand_words_come_out_of_the_page_as_out_of_the_package(page, model):
    names, words = drawn(1000, longest=12, seed=7)
    found = run_all(page, [[word, ON] for word in names])
    steps = words.outputs.shape[1] + 1
    written = model.greedy_decode(words.sources, words.source_lens, start=START, num_steps=steps)
    with torch.no_grad():
        begun = torch.full((len(names), 1), START)
        model(words.sources, torch.cat([begun, written[:, :-1]], dim=1), words.source_lens)
    largest = 0.0
    for i, (word, seen, row) in enumerate(zip(names, found, written.tolist(), strict=True)):
        expected = row[: len(word) + 2]
        if END in expected:
            expected = expected[: expected.index(END) + 1]
        assert seen["written"] == seen["says"] == expected, word
        for use, layer, head in EVERY_HEAD:
            weights = torch.tensor(seen["maps"][use][layer][head], dtype=torch.float64)
            queries, keys = (
                len(expected) if is_written else words.source_lens[i]
                for is_written in (use != "encoder", use == "decoder")
            )
            assert weights.shape == (queries, keys)
            by_package = kept(model, (use, layer, head), i)[:queries, :keys]
            largest = max(largest, (weights - by_package).abs().max().item())
    print(f"1,000 words, largest difference of a weight: {largest:.1e}")
    assert largest <= 1e-5


CASES = {
    "positions off": {"positions": False},
    "mask off": {"causal": False},
    "both off": {"positions": False, "causal": False},
    **{f"{head} off": {"off": [head]} for head in EVERY_HEAD},
    "three heads off": {"off": EVERY_HEAD[::2]},
    "all heads and the mask off": {"off": EVERY_HEAD, "causal": False},
}


def compare(
    page: Page, model: Transformer, words: list[str], within: float, **switches: Any
) -> None:
    """Whether the page writes, names and weighs for each word what Python does."""
    off = [list(head) for head in switches.get("off", [])]
    sent = [[word, {**ON, **switches, "off": off}] for word in words]
    for word, seen in zip(words, run_all(page, sent), strict=True):
        expected = run(model, word, **switches)
        assert seen["written"] == expected.written, word
        assert seen["says"] == expected.says, word
        for (use, layer, head), weights in expected.maps.items():
            shown = torch.tensor(seen["maps"][use][layer][head], dtype=torch.float64)
            torch.testing.assert_close(shown, weights, rtol=0, atol=within)


@pytest.mark.parametrize("switches", CASES.values(), ids=CASES.keys())
def test_the_switches_do_in_the_page_what_they_do_in_the_package(page, model, switches):
    compare(page, model, drawn(20, longest=12, seed=11)[0], 1e-5, **switches)


def test_the_cache_grows_by_one_key_and_value_per_token(page):
    [seen] = run_all(page, [["live", ON]])
    per_position = 2 * 32 * 4  # a key and a value of d_model components of 4 bytes
    assert seen["bytes"] == [0] + [per_position * (4 + n) for n in range(1, 6)]


def test_a_model_of_two_layers_and_other_heads_runs_in_the_page(page):
    torch.manual_seed(2)
    data = packed(Transformer(28, d_model=12, num_heads=3, num_hiddens=10, num_layers=2))
    page.evaluate(LOAD, [kit() + LiveTransformer.module(), data])
    for switches in ({}, {"causal": False}, {"off": [("decoder", 1, 2)]}):
        compare(page, unpacked(data), ["a", "regal"], 1e-9, **switches)
    page.evaluate(LOAD, [kit() + LiveTransformer.module(), shipped()])


# --- What the reader gives ----------------------------------------------------------------------

WORDS = {
    "empty": "",
    "too long": "a" * 13,
    "a page": "word " * 1000,
    "capitals": "Live",
    "accent": "café",
    "emoji": "🙂",
    "right to left": "שלום",
    "digit": "r2d2",
    "space": "two words",
}


@pytest.mark.parametrize("word", WORDS.values(), ids=WORDS.keys())
def test_a_word_that_the_model_cannot_read_is_refused_in_one_sentence(word):
    with pytest.raises(TraitError) as caught:
        LiveTransformer(word=word)
    message = str(caught.value)
    assert message.startswith("LiveTransformer: word must be 1 to 12 of the letters a to z")
    assert len(message) < 140


def small(**sizes: int) -> Transformer:
    return Transformer(
        **{"num_tokens": 28, "d_model": 8, "num_heads": 2, "num_hiddens": 4, **sizes}
    )


def infinite() -> Transformer:
    model = small()
    with torch.no_grad():
        model.to_logits.bias[0] = torch.inf
    return model


MODELS = {
    "no model": (lambda: "live", TypeError, "must be a Transformer, but is str"),
    "tokens": (lambda: small(num_tokens=10), ValueError, "has 10 tokens; the figure needs 28"),
    "large": (lambda: small(d_model=512), ValueError, "more than the 100,000"),
    "heads": (lambda: small(num_heads=8, num_layers=2), ValueError, "2 layers of 8 heads"),
    "infinite": (infinite, ValueError, "NaN or infinite"),
}


@pytest.mark.parametrize(("make", "error", "piece"), MODELS.values(), ids=MODELS.keys())
def test_a_model_that_the_page_cannot_run_is_refused(make, error, piece):
    with pytest.raises(error, match=f"^LiveTransformer: .*{piece}"):
        LiveTransformer(make())


@pytest.mark.parametrize("head", [("cross", 0, 2), ("cross", 1, 0), ("self", 0, 0), "cross", 3])
def test_a_head_that_there_is_not_cannot_be_switched_off(head):
    with pytest.raises(TraitError, match="LiveTransformer: off must list heads such as"):
        LiveTransformer(off=[head])


def test_a_reader_s_own_model_keeps_its_lengths_and_stays_within_the_page():
    torch.manual_seed(0)
    largest = small(d_model=64, num_hiddens=128)
    figure = LiveTransformer(largest, shortest=2, longest=5, word="abcdef")
    assert [figure.data["shortest"], figure.data["longest"]] == [2, 5]
    assert figure.alt.endswith("No word in its training had more than 5 letters.")
    assert len(figure.data["parameters"]) < 140_000
