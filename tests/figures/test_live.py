"""The live Transformer: its stored parameters, and the page's model against the package's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from browser import Watched, chromium, stop_the_clock
from figures_ext import bundle
from playwright.sync_api import Browser, Locator, Page, expect
from scripts import tool
from torch import Tensor
from traitlets import TraitError

from attention_book import Transformer, train
from attention_book import transformer as transformer_module
from attention_book.data import END, LETTERS, START, Words, reversed_words, words_to_reverse
from attention_book.figures import LiveTransformer
from attention_book.figures.base import kit
from attention_book.figures.live import packed, run, shipped, unpacked

ROOT = Path(__file__).resolve().parents[2]
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


def test_training_as_in_the_chapter_gives_a_model_as_right_after_rounding():
    torch.manual_seed(1)
    model = Transformer(num_tokens=28, d_model=32, num_heads=2, num_hiddens=64).double()
    batches = torch.Generator().manual_seed(1)
    train(model, lambda: words_to_reverse(128, generator=batches), 800)
    words = words_to_reverse(1000, generator=torch.Generator().manual_seed(20_000))
    assert share_right(unpacked(packed(model)), words) >= 0.999


def test_rounding_moves_a_component_by_at_most_half_a_step_of_its_row():
    torch.manual_seed(0)
    model = Transformer(num_tokens=28, d_model=8, num_heads=2, num_hiddens=12, num_layers=2)
    with torch.no_grad():
        model.to_logits.weight[3] = 0
    before, after = model.state_dict(), unpacked(packed(model)).state_dict()
    assert before.keys() == after.keys()
    for name, part in before.items():
        half = part.abs().amax(dim=-1, keepdim=True) / 254 if part.dim() == 2 else 0
        assert ((after[name] - part).abs() <= half * 1.0001).all(), name


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


def kept(model: Transformer, head: tuple[str, int, int]) -> Tensor:
    use, layer, number = head
    part: Any = (model.encoder if use == "encoder" else model.decoder)[layer]
    attention = part.cross_attention if use == "cross" else part.self_attention
    return attention.attention_weights[0, number]


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
  window.runAll = (cases) => cases.map(([word, switches]) => {
    const written = net.write(word, switches);
    const once = net.pass(written, switches);
    const maps = { encoder: written.encoder, decoder: once.decoder, cross: once.cross };
    return { written: written.tokens, bytes: written.bytes, says: once.says, maps };
  });
}"""
LOAD = """async ([source, data]) => {
  const module = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  window.net = module.network(data);
}"""
ON = {"positions": True, "causal": True, "off": []}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def page(browser: Browser) -> Page:
    page = browser.new_page()
    page.evaluate(LOAD, [kit() + LiveTransformer.module(), shipped()])
    page.evaluate(RUN)
    return page


def test_a_thousand_words_come_out_of_the_page_as_out_of_the_package(page, model):
    names, words = drawn(1000, longest=12, seed=7)
    found = page.evaluate("(cases) => runAll(cases)", [[word, ON] for word in names])
    steps = words.outputs.shape[1] + 1
    written = model.greedy_decode(words.sources, words.source_lens, start=START, num_steps=steps)
    largest = 0.0
    for word, seen, row in zip(names, found, written.tolist(), strict=True):
        expected = row[: len(word) + 2]
        if END in expected:
            expected = expected[: expected.index(END) + 1]
        assert seen["written"] == seen["says"] == expected, word
        with torch.no_grad():
            model(reversed_words([word]).sources, torch.tensor([[START, *expected[:-1]]]))
        for use, layer, head in EVERY_HEAD:
            weights = torch.tensor(seen["maps"][use][layer][head], dtype=torch.float64)
            gap = (weights - kept(model, (use, layer, head))).abs().max().item()
            largest = max(largest, gap)
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


@pytest.mark.parametrize("switches", CASES.values(), ids=CASES.keys())
def test_the_switches_do_in_the_page_what_they_do_in_the_package(page, model, switches):
    names, _ = drawn(20, longest=12, seed=11)
    off = [list(head) for head in switches.get("off", [])]
    found = page.evaluate(
        "(cases) => runAll(cases)", [[word, {**ON, **switches, "off": off}] for word in names]
    )
    for word, seen in zip(names, found, strict=True):
        expected = run(model, word, **switches)
        assert seen["written"] == expected.written, word
        assert seen["says"] == expected.says, word
        for (use, layer, head), weights in expected.maps.items():
            shown = torch.tensor(seen["maps"][use][layer][head], dtype=torch.float64)
            torch.testing.assert_close(shown, weights, rtol=0, atol=1e-5)


def test_the_cache_grows_by_one_key_and_value_per_token(page):
    [seen] = page.evaluate("(cases) => runAll(cases)", [["live", ON]])
    per_position = 2 * 32 * 4  # a key and a value of d_model components of 4 bytes
    assert seen["bytes"] == [0] + [per_position * (4 + n) for n in range(1, 6)]


def test_a_model_of_two_layers_and_other_heads_runs_in_the_page(page):
    torch.manual_seed(2)
    data = packed(Transformer(28, d_model=12, num_heads=3, num_hiddens=10, num_layers=2))
    page.evaluate(LOAD, [kit() + LiveTransformer.module(), data])
    other = unpacked(data)
    for word in ("a", "regal"):
        for switches in ({}, {"causal": False}, {"off": [("decoder", 1, 2)]}):
            expected = run(other, word, **switches)
            [seen] = page.evaluate("(cases) => runAll(cases)", [[word, {**ON, **switches}]])
            assert seen["written"] == expected.written
            assert seen["says"] == expected.says
            for (use, layer, head), weights in expected.maps.items():
                shown = torch.tensor(seen["maps"][use][layer][head], dtype=torch.float64)
                torch.testing.assert_close(shown, weights, rtol=0, atol=1e-9)
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


# --- The figure on its page ---------------------------------------------------------------------


@pytest.fixture
def figure(tmp_path: Path, browser: Browser) -> Iterator[Locator]:
    """The moving part of a page that holds the figure alone, as the book's script brings it up, for
    a reader who wants no motion; see `moving`."""
    (tmp_path / "figures.js").write_text(bundle(), encoding="utf-8")
    head = (
        '<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        '<script defer src="figures.js"></script>'
    )
    (tmp_path / "live.html").write_text(head + LiveTransformer().to_html(), encoding="utf-8")
    watched = Watched(browser.new_context(reduced_motion="reduce"), "file:")
    watched.page.goto((tmp_path / "live.html").as_uri())
    found = watched.page.locator("attention-figure")
    found.locator(".af-form").wait_for()
    yield found
    assert watched.errors == []
    watched.page.context.close()


def moving(figure: Locator) -> Page:
    """The page, loaded again for a reader who likes motion, with its timers standing still."""
    figure.page.emulate_media(reduced_motion="no-preference")
    stop_the_clock(figure.page)
    return figure.page


def written(figure: Locator) -> str:
    return "".join(figure.locator(".af-box .af-letter").all_text_contents())


def look_inside(figure: Locator) -> None:
    figure.get_by_text("Look inside: 6 attention maps").click()


TYPED = {
    "": "Type a word of 1 to 12 letters.",
    "   ": "Type a word of 1 to 12 letters.",
    "a" * 40: "40 letters are too many: the model reads at most 12.",
    "It was the best of times. " * 500: "These are 3,000 words; the model reads one.",
    "x" * 5000: "5,000 letters are too many: the model reads at most 12.",
    "café": "The model knows only the letters a to z, not “\u2068é\u2069”.",
    "hi🙂": "The model knows only the letters a to z, not “\u2068🙂\u2069”.",
    "👩‍👩‍👧": "The model knows only the letters a to z, not “\u2068👩‍👩‍👧\u2069”.",
    "שלום": "The model knows only the letters a to z, not “\u2068ש\u2069”.",
    "<b>": "The model knows only the letters a to z, not “\u2068<\u2069”.",
    "r2d2": "The model knows only the letters a to z, not “\u20682\u2069”.",
}


def test_what_the_model_cannot_read_gets_one_sentence_and_the_figure_stays(figure):
    before = written(figure)
    field, problem = figure.get_by_label("your word"), figure.locator(".af-problem")
    for typed, sentence in TYPED.items():
        field.fill(typed)
        assert problem.inner_text() == f"{sentence} The figure still shows “live”."
        assert field.get_attribute("aria-invalid") == "true"
        assert written(figure) == before
        figure.get_by_role("button", name="Reset").click()
        assert field.input_value() == "live"
        assert problem.inner_text() == ""
    field.fill(" Desserts ")
    assert problem.inner_text() == ""
    assert written(figure) == "dessertsstressed"
    assert field.input_value() == " Desserts "  # what is typed is left alone


def test_the_keyboard_alone_types_plays_switches_and_reads(figure):
    page = figure.page
    focused = page.locator(":focus")

    def tab_to(selector: str, press: str = "Tab") -> None:
        for _ in range(20):
            page.keyboard.press(press)
            if focused.count() and focused.evaluate("(node, s) => node.matches(s)", selector):
                return
        raise AssertionError(f"Tab does not reach {selector}")

    tab_to(".af-word")
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.type("regal")
    assert written(figure) == "regallager"
    tab_to("input[type=range]")
    page.keyboard.press("Home")
    now = figure.locator(".af-now")
    assert now.inner_text() == "The encoder has read “regal”. Nothing is written yet."
    page.keyboard.press("ArrowRight")
    assert now.inner_text() == "1 of 6 tokens are written."
    tab_to("summary")
    page.keyboard.press("Enter")
    assert "1 written and 5 read positions, 1,536 bytes" in figure.locator(".af-cache").inner_text()
    tab_to("input[type=range]", "Shift+Tab")
    page.keyboard.press("End")
    tab_to("input[name=positions]")
    page.keyboard.press("Space")
    assert "Without positions it writes the same" in now.inner_text()
    page.keyboard.press("Space")
    tab_to("input[name=causal]")
    page.keyboard.press("Space")
    assert written(figure) == "regallager"
    assert "predict another token" in now.inner_text()
    page.keyboard.press("Space")
    tab_to("[data-key='token 0']", "Shift+Tab")
    reading = figure.locator(".af-reading")
    assert "Position 0: after start it writes l; it looks most at l (4)" in reading.inner_text()
    page.keyboard.press("ArrowRight")
    assert "Position 1: after l it writes a" in reading.inner_text()
    tab_to("[data-key='letter 0']", "Shift+Tab")
    page.keyboard.press("End")
    assert "l (4): l (0) looks at it most, weight 0." in reading.inner_text()
    tab_to("[data-key^='encoder']")
    page.keyboard.press("ArrowDown")
    assert "head 0: e (1) gives r (0) the weight 0." in reading.inner_text()
    assert figure.locator(".af-followed").get_attribute("d")


def test_a_head_that_is_switched_off_changes_what_is_written_and_comes_back(figure):
    look_inside(figure)
    box = figure.get_by_role("checkbox", name="Decoder self-attention, head 1")
    box.uncheck()
    expected = run(unpacked(shipped()), "live", off=[("decoder", 0, 1)]).written
    assert written(figure) == "live" + "".join(LETTERS[t] for t in expected if t < START)
    box.check()
    assert written(figure) == "liveevil"


def test_play_writes_token_by_token_and_without_motion_it_steps(figure):
    page = moving(figure)
    expect(figure.locator("[data-key^='token ']")).to_have_count(0)  # the word writes itself first
    page.clock.run_for(5 * 350)
    figure.get_by_role("button", name="Play").click()
    now, fresh = figure.locator(".af-now"), figure.locator(".af-box.af-fresh")
    assert "Nothing is written yet." in now.inner_text()
    for number in range(1, 4):
        page.clock.run_for(350)
        assert now.inner_text() == f"{number} of 5 tokens are written."
        assert fresh.get_attribute("data-key") == f"token {number - 1}"
    figure.get_by_role("button", name="Pause").click()
    page.clock.run_for(2000)
    assert now.inner_text() == "3 of 5 tokens are written."
    page.emulate_media(reduced_motion="reduce")
    page.reload()
    step = figure.get_by_role("button", name="Next step")
    step.click()
    step.click()
    assert figure.locator(".af-now").first.inner_text() == "1 of 5 tokens are written."


#: How many parts are moving, or still to move, two frames from now.
MOVING = """(figure) => new Promise((tell) =>
  requestAnimationFrame(() => requestAnimationFrame(() => tell(
    figure.querySelector(".af-weave").getAnimations({ subtree: true }).length))))"""


def test_the_word_writes_itself_once_when_it_is_first_seen(figure):
    out_of_sight, in_sight = {"width": 900, "height": 60}, {"width": 900, "height": 700}
    figure.page.set_viewport_size(out_of_sight)
    page = moving(figure)
    expect(figure.locator(".af-waiting")).to_have_count(0)
    now, tokens = figure.locator(".af-now"), figure.locator("[data-key^='token ']")
    value = figure.locator(".af-slider:has-text('tokens written') .af-value")
    whole = "The model reads “live” and writes “evil”: right."
    assert now.inner_text() == whole
    page.set_viewport_size(in_sight)
    expect(tokens).to_have_count(0)
    for number in range(5):
        assert tokens.count() == number
        assert value.inner_text() == f"{number} of 5"
        assert whole not in now.inner_text()
        assert number == 0 or f"{number} of 5 tokens are written." == now.inner_text()
        page.clock.run_for(350)
    assert now.inner_text() == whole
    assert value.inner_text() == "5 of 5"
    page.set_viewport_size(out_of_sight)
    page.clock.run_for(700)
    page.set_viewport_size(in_sight)
    page.clock.run_for(700)
    assert tokens.count() == 5
    assert now.inner_text() == whole
    assert figure.locator(".af-spoken").text_content() == ""
    figure.get_by_label("your word").fill("noon")  # what is typed is answered at once
    assert written(figure) == "noonnoon"
    assert figure.locator(".af-fresh").count() == 0


def begun(figure: Locator) -> Page:
    """The page of a figure whose word has written two tokens of itself."""
    figure.page.set_viewport_size({"width": 900, "height": 700})
    page = moving(figure)
    expect(figure.locator("[data-key^='token ']")).to_have_count(0)
    page.clock.run_for(700)
    assert figure.locator("[data-key^='token ']").count() == 2
    return page


def test_a_word_that_writes_itself_changes_no_state_and_ends_with_the_first_move(figure):
    page = begun(figure)
    letter = figure.locator("[data-key='letter 0']")
    letter.focus()
    page.clock.run_for(350)
    assert letter.evaluate("(node) => node === document.activeElement")
    assert "v (1) looks at it most" not in figure.locator(".af-reading").inner_text()
    figure.get_by_role("button", name="Copy link").click()
    assert "written=14" in page.evaluate("location.hash")
    figure.get_by_label("positions").uncheck()
    every = figure.locator("[data-key^='token ']").count()
    assert figure.locator(".af-slider .af-value").first.inner_text() == f"{every} of {every}"
    page.clock.run_for(700)
    assert figure.locator("[data-key^='token ']").count() == every


def test_the_slider_goes_on_from_what_is_seen_of_a_word_that_writes_itself(figure):
    page = begun(figure)
    figure.get_by_role("slider", name="tokens written").press("ArrowRight")
    assert figure.locator(".af-now").inner_text() == "3 of 5 tokens are written."
    page.clock.run_for(700)
    assert figure.locator(".af-now").inner_text() == "3 of 5 tokens are written."


def looks(model: Transformer, word: str) -> Tensor:
    """The weights over the letters with which the tokens were written, the mean of the heads."""
    return torch.stack([run(model, word).maps["cross", 0, head] for head in range(2)]).mean(0)


def test_without_the_mask_a_token_says_where_it_looked_when_it_was_written(figure, model):
    figure.get_by_label("your word").fill("stressed")
    weights, once = looks(model, "stressed"), run(model, "stressed", causal=False)
    readings = "(figure) => [...figure.querySelectorAll('.af-box')].map((box) => box.reading)"
    threads = """(figure) => [...figure.querySelectorAll(".af-weave .af-thread")]
        .map((path) => path.getAttribute("stroke-width"))"""
    before = figure.evaluate(readings), figure.evaluate(threads)
    figure.get_by_label("causal mask").uncheck()
    assert (figure.evaluate(readings), figure.evaluate(threads)) == before
    for q, row in enumerate(weights):
        reading = str(figure.locator(f"[data-key='token {q}']").get_attribute("aria-label"))
        k = int(row.argmax())
        assert f"it looks most at {'stressed'[k]} ({k}), weight {row[k]:.2f}," in reading
    look_inside(figure)
    cell = figure.locator("[data-key='cross 0 0 4 1']")
    assert float(str(cell.get_attribute("data-value"))) == pytest.approx(
        once.maps["cross", 0, 0][4, 1].item(), abs=1e-5
    )
    assert cell.get_attribute("aria-label").startswith("Cross-attention, head 0, in one pass: ")
    note = figure.get_by_text("Without the mask, the maps of the decoder")
    assert note.is_visible()
    figure.get_by_label("causal mask").check()
    assert not note.is_visible()
    assert "in one pass" not in str(cell.get_attribute("aria-label"))


def test_an_arc_of_the_decoder_joins_what_it_reads(figure):
    look_inside(figure)
    place = """(figure, [key, side]) => {
        const box = figure.querySelector(`[data-key="${key}"] rect`);
        return Number(box.getAttribute("x")) + Number(box.getAttribute("width")) / 2 + side;
    }"""
    ends = """(figure) => {
        const numbers = figure.querySelector(".af-followed").getAttribute("d").match(/[-.\\d]+/g);
        return [numbers[0], numbers[6]].map(Number);
    }"""
    start = figure.locator(".af-weave text", has_text="▷")
    for q, k in ((2, 1), (4, 2), (3, 3)):
        figure.locator(f"[data-key='decoder 0 0 {q} {k}']").hover()
        apart = 8 if q == k else 0  # a weight for the own position is a loop
        assert figure.evaluate(ends) == [
            figure.evaluate(place, [f"token {q - 1}", -apart]),
            figure.evaluate(place, [f"token {k - 1}", apart]),
        ]
        assert not start.is_visible()
    figure.locator("[data-key='decoder 0 0 2 0']").hover()
    assert start.is_visible()
    assert figure.evaluate(ends)[1] == float(str(start.get_attribute("x")))
    figure.page.mouse.move(2, 2)
    assert not start.is_visible()


def test_the_letters_read_stay_where_they_are_when_more_is_written(figure):
    places = (
        "(figure) => [...figure.querySelectorAll('.af-box rect')].map((box) => box.x.baseVal.value)"
    )
    figure.get_by_label("your word").fill("evil")
    before = figure.evaluate(places)[:4]
    figure.get_by_label("positions").uncheck()
    assert figure.locator("[data-key^='token ']").count() != 5
    assert figure.evaluate(places)[:4] == before
    figure.get_by_label("causal mask").uncheck()
    label = figure.get_by_text("in one pass", exact=True).bounding_box()
    first = figure.locator(".af-other").nth(4).bounding_box()
    assert first["x"] - label["x"] - label["width"] >= 8


def test_without_the_mask_no_word_meets_the_challenge(figure):
    goal = figure.locator(".af-challenge")
    figure.get_by_label("causal mask").uncheck()
    figure.get_by_label("your word").fill("hippopotamus")
    assert goal.inner_text().startswith("Challenge: ")
    figure.get_by_label("causal mask").check()
    assert goal.inner_text().startswith("Challenge met: ")


def test_the_prediction_is_judged_when_both_words_were_tried_without_positions(figure):
    verdict = figure.locator(".af-verdict")
    figure.locator(".af-predict input").nth(2).check()
    figure.get_by_label("your word").fill("evil")
    figure.get_by_label("positions").uncheck()
    assert verdict.inner_text().startswith("Noted.")
    figure.get_by_role("button", name="Reset").click()
    figure.locator(".af-predict input").nth(2).check()
    figure.get_by_label("positions").uncheck()  # what was tried before the reset is forgotten
    assert verdict.inner_text().startswith("Noted.")
    figure.get_by_label("your word").fill("evil")
    assert verdict.inner_text().startswith("Your prediction was right.")


def test_a_word_to_try_is_written_token_by_token_as_slider_and_sentence_say(figure):
    page = moving(figure)
    value = figure.locator(".af-slider:has-text('tokens written') .af-value")
    now, newest = figure.locator(".af-now"), figure.locator(".af-newest")
    button = figure.get_by_role("button", name="attention")
    button.click()
    for number in range(10):
        assert value.inner_text() == f"{number} of 10"
        assert figure.locator("[data-key^='token ']").count() == number
        assert "noitnetta" not in now.inner_text()
        assert newest.count() == min(number, 1)
        if number:
            assert newest.get_attribute("data-key") == f"token {number - 1}"
            strong = figure.locator(".af-weave .af-thread:not(.af-faded)").all()
            assert {one.get_attribute("data-query") for one in strong} == {str(number - 1)}
        page.clock.run_for(350)
    assert value.inner_text() == "10 of 10"
    assert now.inner_text() == "The model reads “attention” and writes “noitnetta”: right."
    assert figure.locator(".af-newest, .af-faded").count() == 0
    button.click()
    page.clock.run_for(700)
    figure.get_by_role("button", name="level").click()  # begins anew while another is written
    assert value.inner_text() == "0 of 6"
    page.clock.run_for(350)
    assert value.inner_text() == "1 of 6"


def test_no_word_to_try_meets_the_challenge(figure):
    for word in figure.locator(".af-chip").all_inner_texts():
        figure.get_by_role("button", name=word, exact=True).click()
        assert figure.locator(".af-now").inner_text().endswith(f"“{word[::-1]}”: right.")
        assert figure.locator(".af-challenge").inner_text().startswith("Challenge: ")


LIT = ".af-on, .af-faded, .af-lit, .af-followed[d]"


def test_what_was_lit_goes_out_when_a_letter_is_left(figure):
    look_inside(figure)
    page = figure.page
    letter, token = figure.locator("[data-key='letter 1']"), figure.locator("[data-key='token 2']")

    def lit() -> None:
        assert figure.locator(".af-thread.af-on").count() > 0
        assert figure.locator(".af-thread.af-faded:not(.af-on)").count() > 0
        assert figure.locator(".af-lit").count() > 0

    for one in (letter, token, letter):
        one.hover()
        lit()
        page.mouse.move(2, 2)  # out of the drawing at once
        assert figure.locator(LIT).count() == 0
    token.focus()
    lit()
    page.keyboard.press("Tab")
    assert figure.locator(LIT).count() == 0
    letter.focus()
    lit()
    page.keyboard.press("Escape")
    assert figure.locator(LIT).count() == 0
    figure.locator("[data-key='encoder 0 0 1 1']").hover()
    assert figure.locator(".af-followed[d]").count() == 1
    page.mouse.move(2, 2)
    assert figure.locator(LIT).count() == 0


def test_maps_that_a_letter_is_no_part_of_are_not_marked(figure):
    look_inside(figure)
    for q in (0, 2, 4):
        figure.locator(f"[data-key='token {q}']").hover()
        uses = figure.locator(".af-lit").evaluate_all(
            "(cells) => cells.map((cell) => cell.dataset.key.split(' ')[0])"
        )
        assert sorted(set(uses)) == ["cross", "decoder"]
        assert len(uses) == 2 * 4 + 2 * 5


def test_a_reader_who_wants_no_motion_sees_none(figure):
    figure.get_by_role("button", name="level").click()
    figure.get_by_label("causal mask").uncheck()
    assert figure.locator(".af-waiting").count() == 0
    assert figure.evaluate(MOVING) == 0


def test_a_letter_that_is_read_says_who_looks_at_it_and_lights_its_threads(figure, model):
    look_inside(figure)
    weights = torch.stack([run(model, "live").maps["cross", 0, head] for head in range(2)]).mean(0)
    signs = ["e", "v", "i", "l", "end"]
    for k, letter in enumerate("live"):
        box = figure.locator(f"[data-key='letter {k}']")
        box.hover()
        q = int(weights[:, k].argmax())
        assert box.get_attribute("aria-label") == (
            f"{letter} ({k}): {signs[q]} ({q}) looks at it most, weight {weights[q, k]:.2f}, "
            "the mean of the heads."
        )
        lit = figure.locator(".af-thread.af-on")
        assert {node.get_attribute("data-source") for node in lit.all()} == {str(k)}
        cells = figure.locator(".af-cell.af-lit")
        keys = {tuple(str(node.get_attribute("data-key")).split()) for node in cells.all()}
        rows = {("encoder", "0", str(h), str(k), str(i)) for h in range(2) for i in range(4)}
        columns = {("cross", "0", str(h), str(i), str(k)) for h in range(2) for i in range(5)}
        assert keys == rows | columns
    figure.locator("[data-key='cross 0 1 2 1']").hover()
    assert figure.locator(".af-followed").get_attribute("d")
    assert cells.count() == 0


def test_the_drawing_and_the_controls_stay_where_they_are_when_a_switch_moves(figure):
    def places() -> list[Any]:
        parts = (".af-weave", ".af-word", "input[type=range]", "input[name=causal]")
        return [figure.locator(part).bounding_box() for part in parts]

    before = places()
    for name in ("causal mask", "positions"):
        figure.get_by_label(name).uncheck()
        assert places() == before
    figure.get_by_label("your word").fill("mississippi")
    assert places() == before


@pytest.mark.parametrize("size", [(1280, 720), (390, 844)])
def test_the_word_its_answer_the_challenge_and_the_controls_share_one_screen(figure, size):
    page = figure.page
    page.set_viewport_size({"width": size[0], "height": size[1]})
    parts = [".af-weave", ".af-word", ".af-challenge", "input[name=causal]", ".af-now"]
    boxes = [figure.locator(part).bounding_box() for part in parts]
    assert all(boxes)
    top, bottom = boxes[0]["y"], max(box["y"] + box["height"] for box in boxes)
    assert bottom - top <= size[1] - 100
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    row = figure.locator("[data-key='token 0']").bounding_box()
    assert row["y"] + row["height"] - top <= 260


def test_a_finger_hits_the_cells_of_a_map_on_a_phone(figure):
    page = figure.page.context.browser.new_page(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    page.goto(figure.page.url)
    there = page.locator("attention-figure")
    look_inside(there)
    for word, smallest in (("live", 24), ("transformer", 18)):
        there.get_by_label("your word").fill(word)
        boxes = [cell.bounding_box() for cell in there.locator(".af-small .af-cell").all()[::7]]
        assert all(min(box["width"], box["height"]) >= smallest for box in boxes), word
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()


def test_with_forced_colours_a_map_still_shows_its_weights(figure):
    figure.page.emulate_media(forced_colors="active")
    look_inside(figure)
    cells = figure.locator("[data-key^='cross 0 0']").evaluate_all(
        """(cells) => cells.map((cell) => [
          Number(cell.dataset.value), getComputedStyle(cell).backgroundColor,
        ])"""
    )
    strong = {colour for weight, colour in cells if weight > 0.3}
    weak = {colour for weight, colour in cells if weight < 0.01}
    assert strong
    assert weak
    assert not strong & weak


STATES = {
    'word="regal"&positions=false': ("regal", ""),
    "word=5": ("live", "The address asks for word = 5"),
    'word="a b"': ("live", "The address asks for word"),
    'off=[["cross",0,9]]': ("live", "The address asks for off"),
    "off=5": ("live", "The address asks for off"),
    "causal=1": ("live", "The address asks for causal = 1"),
    "written=99": ("live", "The address asks for written = 99"),
    "word=}": ("live", "no state that can be read"),
}


def test_an_address_that_was_edited_by_hand_gets_a_sentence(figure):
    page = figure.page
    for fields, (word, problem) in STATES.items():
        page.evaluate("(hash) => { location.hash = hash; }", f"figure=live&{fields}")
        note = figure.locator(".af-note")
        figure.locator(".af-now", has_text=f"“{word}”").wait_for()
        assert problem in note.inner_text()
        assert bool(problem) == bool(note.inner_text())


def test_the_page_holds_what_the_package_makes_now():
    figures = tool("figures")
    stored = {path.stem: path.read_text("utf-8") for path in figures.FOLDER.glob("*.html")}
    assert stored == {name: make().to_html() + "\n" for name, make in figures.STORED.items()}
