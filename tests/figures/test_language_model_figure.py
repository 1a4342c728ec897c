"""The language model's figure: its parameters, and the page's model against the package's."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import pytest
import torch
from browser import stop_the_clock
from playwright.sync_api import Browser, Locator, Page, expect
from scripts import tool
from stage import PHONE, PHONES, Stage, box_of, lines_said, one_screen, readings
from torch.nn.functional import cross_entropy
from traitlets import TraitError

from attention_book import LanguageModel, Transformer
from attention_book.data import WORDS, orders
from attention_book.figures import LanguageModelFigure, live
from attention_book.figures.base import kit
from attention_book.figures.language_model import packed, run, shipped, unpacked
from attention_book.language_model import likely_tokens

EVERY_HEAD = [(layer, head) for layer in range(2) for head in range(4)]


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return unpacked(shipped())


def share_right(model: LanguageModel, num_texts: int = 200) -> float:
    """How often the likeliest word after a person who ordered before is their thing."""
    drawn = orders(num_texts, generator=torch.Generator().manual_seed(20_000))
    with torch.no_grad():
        named = model(drawn.tokens)[:, 1::4].argmax(dim=-1)
    return (named == drawn.tokens[:, 2::4])[drawn.is_known].double().mean().item()


def tokens_of(text: str) -> list[int]:
    return [WORDS.index(word) for word in text.split()]


def prompts(lengths: list[int], seed: int) -> list[list[int]]:
    drawn = orders(len(lengths), generator=torch.Generator().manual_seed(seed)).tokens.tolist()
    return [row[:length] for row, length in zip(drawn, lengths, strict=True)]


# --- Parameters ---------------------------------------------------------------------------------


def test_the_stored_model_brings_back_what_was_ordered(model):
    assert share_right(model) >= 0.98


def test_without_the_head_that_looks_back_the_second_mention_is_a_guess(model):
    data = shipped()
    off = [tuple(data["back"])]
    prompt = tokens_of(data["prompt"])
    chances = run(model, prompt).chances
    assert WORDS[chances.argmax()] == data["wanted"]
    assert chances.max() > 0.9
    assert run(model, prompt, off=off).chances[WORDS.index(data["wanted"])] < 0.5
    for head in EVERY_HEAD:  # the question of the figure has one answer
        if head not in off:
            assert run(model, prompt, off=[head]).chances[WORDS.index(data["wanted"])] > 0.5, head


def test_the_tool_trains_the_model_that_is_stored():
    made = tool("language_model")
    data, stored = packed(made.trained(num_steps=1), WORDS, longest=48), shipped()
    assert data.keys() | {"prompt", "wanted", "back"} == stored.keys()
    for name in data.keys() - {"parameters"}:
        assert data[name] == stored[name], name
    assert [stored["prompt"], stored["wanted"]] == [made.PROMPT, made.WANTED]
    assert stored["back"] == made.head_that_looks_back(unpacked(stored))


@pytest.mark.parametrize(
    ("model", "round_trip"),
    [
        (
            lambda: LanguageModel(5, 8, 2, 12, 1, tied=False),
            lambda model: unpacked(packed(model, list("abcde"), longest=9)),
        ),
        (
            lambda: Transformer(28, d_model=8, num_heads=2, num_hiddens=12, num_layers=2),
            lambda model: live.unpacked(live.packed(model)),
        ),
    ],
    ids=["language model", "Transformer"],
)
def test_rounding_moves_a_component_by_at_most_half_a_step_of_its_row(model, round_trip):
    torch.manual_seed(0)
    small = model()
    with torch.no_grad():
        small.to_logits.weight[3] = 0
    before, after = small.state_dict(), round_trip(small).state_dict()
    assert before.keys() == after.keys()
    for name, part in before.items():
        half = part.abs().amax(dim=-1, keepdim=True) / 254 if part.dim() == 2 else 0
        assert ((after[name] - part).abs() <= half * 1.0001).all(), name


# --- The run in Python --------------------------------------------------------------------------


def test_a_run_is_the_package_s_own_text_and_forward(model):
    for prompt in prompts([1, 6, 13, 30], seed=1):
        found = run(model, prompt, num_written=9, temperature=0.8, top_k=9, top_p=0.9, seed=4)
        written = model.generate(
            torch.tensor([prompt]),
            9,
            temperature=0.8,
            top_k=9,
            top_p=0.9,
            generator=torch.Generator().manual_seed(4),
        )
        assert found.written == written[0].tolist()
        with torch.no_grad():
            logits = model(torch.tensor([[*prompt, *found.written]]))[0]
        torch.testing.assert_close(found.logits, logits, rtol=0, atol=1e-12)
        for layer, weights in zip(model.layers, found.weights, strict=True):
            kept: Any = layer
            torch.testing.assert_close(
                kept.self_attention.attention_weights[0], weights, rtol=0, atol=1e-12
            )


def test_a_head_that_is_off_and_the_mask_change_what_they_should(model):
    [prompt] = prompts([24], seed=2)
    whole = run(model, prompt)
    assert whole.weights.triu(diagonal=1).max() == 0
    unmasked = run(model, prompt, causal=False)
    assert unmasked.weights.triu(diagonal=1).max() > 0.1
    torch.testing.assert_close(unmasked.weights.sum(-1), torch.ones(2, 4, 24).double())
    for layer, head in EVERY_HEAD:
        without = run(model, prompt, off=[(layer, head)])
        assert (without.logits - whole.logits).abs().max() > 0.01
        torch.testing.assert_close(without.weights[: layer + 1], whole.weights[: layer + 1])
    alone = run(model, prompt, off=EVERY_HEAD).logits
    torch.testing.assert_close(alone[-1], run(model, prompt[-1:], off=EVERY_HEAD).logits[-1])


def test_five_heads_are_the_most_that_can_be_off_as_the_challenge_asks(model):
    figure = LanguageModelFigure()
    vocabulary = figure.data["vocabulary"]
    prompt = [vocabulary.index(word) for word in figure.prompt.split()]
    wanted = vocabulary.index("pie")

    def chances(number: int) -> list[float]:
        some = combinations(EVERY_HEAD, number)
        return [run(model, prompt, off=off).chances[wanted].item() for off in some]

    assert 0 < sum(chance > 0.5 for chance in chances(5)) < 6
    assert max(chances(6)) < 0.5


# --- The page -----------------------------------------------------------------------------------

LOAD = """async ([source, data]) => {
  const module = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  window.net = module.decoder(data);
  window.of = module.chancesOf;
  window.runAll = (cases) => cases.map(([prompt, number, settings]) => {
    const written = net.write(prompt, number, settings);
    const read = net.read([...prompt, ...written], settings);
    return { written, ...read, ...of(read.logits.at(-1), settings) };
  });
}"""
SETTINGS = {"temperature": 1.0, "top_k": 99, "top_p": 1.0, "seed": 0, "causal": True, "off": []}


@pytest.fixture(scope="module")
def page(browser: Browser) -> Page:
    page = browser.new_page()
    page.evaluate(LOAD, [kit() + LanguageModelFigure.module(), shipped()])
    return page


def compare(page: Page, model: LanguageModel, cases: list[tuple[list[int], int, Any]]) -> float:
    """The largest difference of a logit, weight or probability; the texts are the same."""
    sent = [
        [prompt, number, {**SETTINGS, **some, "off": [list(head) for head in some.get("off", [])]}]
        for prompt, number, some in cases
    ]
    found = page.evaluate("(cases) => runAll(cases)", sent)
    largest = 0.0
    for (prompt, number, some), seen in zip(cases, found, strict=True):
        expected = run(model, prompt, num_written=number, **some)
        assert seen["written"] == expected.written, (prompt, some)
        assert seen["kept"] == expected.kept, (prompt, some)
        for name in ("logits", "weights", "chances"):
            shown = torch.tensor(seen[name], dtype=torch.float64)
            gap = (shown - getattr(expected, name)).abs().max().item()
            largest = max(largest, gap)
    print(f"{len(cases)} cases, largest difference {largest:.1e}")
    return largest


def test_many_texts_and_settings_come_out_of_the_page_as_out_of_the_package(page, model):
    lengths = [1 + 3 * i % 40 for i in range(120)]
    cases = []
    for i, prompt in enumerate(prompts(lengths, seed=7)):
        some = {
            "temperature": [0.0, 0.1, 0.7, 1.0, 1.4, 2.0][i % 6],
            "top_k": [35, 1, 2, 5, 12, 35, 20][i % 7],
            "top_p": [1.0, 0.05, 0.5, 0.9, 0.95][i % 5],
            "seed": i % 10,
        }
        cases.append((prompt, i % 9, some))
    assert compare(page, model, cases) <= 1e-9


SWITCHES = {
    "mask off": {"causal": False},
    **{f"{head} off": {"off": [head]} for head in EVERY_HEAD},
    "three heads off": {"off": EVERY_HEAD[::3]},
    "all heads off": {"off": EVERY_HEAD},
    "all heads and the mask off": {"off": EVERY_HEAD, "causal": False},
}


@pytest.mark.parametrize("switches", SWITCHES.values(), ids=SWITCHES.keys())
def test_the_switches_do_in_the_page_what_they_do_in_the_package(page, model, switches):
    texts = prompts([1, 2, 7, 12, 19, 26, 33, 40], seed=11)
    assert compare(page, model, [(text, i % 5, switches) for i, text in enumerate(texts)]) <= 1e-9
    kept = compare(page, model, [(text, 0, {}) for text in texts[2:3]])
    changed = run(model, texts[2], **switches).logits - run(model, texts[2]).logits
    assert changed.abs().max() > 1e3 * kept  # so a switch that did nothing would be seen


def test_kept_sets_are_the_package_s_at_every_stop_of_the_sliders(page):
    generator = torch.Generator().manual_seed(3)
    logits = 2 * torch.randn(20, 35, generator=generator, dtype=torch.float64)
    logits[0, 3:9] = logits[0, 2]  # top-k keeps all that are as likely as the k-th
    cases = []
    for i in range(len(logits)):
        for k in range(1, 36, 2):
            top_p = 0.05 * (1 + (i + k) % 20) if i else 1.0
            cases.append((i, k, top_p, [0.1, 0.5, 1.0, 2.0][(i + k) % 4]))
    sent = [
        [logits[i].tolist(), {"temperature": t, "top_k": k, "top_p": p}] for i, k, p, t in cases
    ]
    found = page.evaluate("(cases) => cases.map((one) => of(...one).chances)", sent)
    for (i, k, p, temperature), chances in zip(cases, found, strict=True):
        kept = likely_tokens(logits[i] / temperature, k, p)
        shown = torch.tensor(chances)
        assert (shown > 0).tolist() == kept.tolist(), (i, k, p, temperature)
        assert shown.sum() == pytest.approx(1)


OTHERS = {
    "untied": {"tied": False},
    "without positions": {"rotary_base": None},
    "another base": {"rotary_base": 37.5},
    "one head of keys": {"num_kv_heads": 1},
    "another epsilon": {"eps": 0.01},
}


@pytest.mark.parametrize("more", OTHERS.values(), ids=OTHERS.keys())
def test_a_reader_s_own_model_runs_in_the_page(page, more):
    torch.manual_seed(2)
    own = LanguageModel(6, 12, 3, 10, 3, **more)
    data = packed(own, list("abcdef"), longest=12)
    page.evaluate(LOAD, [kit() + LanguageModelFigure.module(), data])
    cases = [([0, 3, 1, 5], 5, {}), ([2], 3, {"off": [(2, 1)], "causal": False})]
    assert compare(page, unpacked(data), cases) <= 1e-9
    page.evaluate(LOAD, [kit() + LanguageModelFigure.module(), shipped()])


# --- What the reader gives ----------------------------------------------------------------------


def small(**sizes: Any) -> LanguageModel:
    given = {"num_tokens": 4, "d_model": 8, "num_heads": 2, "num_hiddens": 4, "num_layers": 1}
    return LanguageModel(**{**given, **sizes})


def infinite() -> LanguageModel:
    model = small()
    with torch.no_grad():
        model.embedding.weight[0, 0] = torch.inf
    return model


FOUR = list("abcd")
REFUSED = {
    "no model": (lambda: ("gpt", FOUR), TypeError, "must be a LanguageModel, but is str"),
    "no vocabulary": (lambda: (small(), None), TypeError, "together, or neither"),
    "a text": (lambda: (small(), "abcd"), TypeError, "must be a list of words"),
    "few words": (lambda: (small(), FOUR[:3]), ValueError, "3 words for a model of 4 tokens"),
    "a word twice": (lambda: (small(), list("abca")), ValueError, "number 3 is 'a'"),
    "a space": (lambda: (small(), ["a", "b c", "d", "e"]), ValueError, "number 1 is 'b c'"),
    "an empty word": (lambda: (small(), ["a", "b", "", "e"]), ValueError, "number 2 is ''"),
    "no words": (lambda: (small(), [1, 2, 3, 4]), ValueError, "number 0 is 1"),
    "large": (lambda: (small(d_model=256), FOUR), ValueError, "more than the 120,000"),
    "heads": (
        lambda: (small(d_model=16, num_heads=8, num_layers=3), FOUR),
        ValueError,
        "3 layers of 8 heads",
    ),
    "infinite": (lambda: (infinite(), FOUR), ValueError, "NaN or infinite"),
}


@pytest.mark.parametrize(("make", "error", "piece"), REFUSED.values(), ids=REFUSED.keys())
def test_a_model_or_a_vocabulary_that_the_page_cannot_run_is_refused(make, error, piece):
    with pytest.raises(error, match=f"^LanguageModelFigure: .*{piece}"):
        LanguageModelFigure(*make())


@pytest.mark.parametrize("longest", [1, 65, 4.5, "48"])
def test_a_length_that_the_page_cannot_hold_is_refused(longest):
    with pytest.raises(ValueError, match="longest must be from 2 to 64"):
        LanguageModelFigure(small(), FOUR, longest=longest)


PROMPTS = {
    "empty": ("", "must have 1 to 48 words, but has 0"),
    "spaces": ("   ", "must have 1 to 48 words, but has 0"),
    "unknown": ("bring ana piano", "has 'piano'"),
    "too long": ("bring ana tea inside. " * 13, "but has 52"),
}


@pytest.mark.parametrize(("prompt", "piece"), PROMPTS.values(), ids=PROMPTS.keys())
def test_a_prompt_that_the_model_cannot_read_is_refused_in_one_sentence(prompt, piece):
    with pytest.raises(TraitError, match=rf"^LanguageModelFigure: prompt .*{piece}"):
        LanguageModelFigure(prompt=prompt)


@pytest.mark.parametrize("head", [(0, 4), (2, 0), ("0", 0), 3, (0,)])
def test_a_head_that_there_is_not_cannot_be_switched_off(head):
    with pytest.raises(TraitError, match="LanguageModelFigure: off must list heads such as"):
        LanguageModelFigure(off=[head])


def test_the_sentence_says_what_the_ends_of_the_settings_do():
    assert "At temperature 0 the likeliest word is always taken." in (
        LanguageModelFigure(temperature=0.0).alt
    )
    assert "words may be drawn" not in LanguageModelFigure(temperature=2.0).alt
    assert "Only this word may be drawn." in LanguageModelFigure(top_k=1).alt
    assert "5 of 35 words may be drawn." in LanguageModelFigure(top_k=5).alt
    assert "With every head off" in LanguageModelFigure(off=EVERY_HEAD).alt
    unmasked = "Without the mask the words cost 0.65 nats each, with it 1.60: a position can see"
    assert unmasked in LanguageModelFigure(causal=False).alt
    for asks in (True, "mask"):  # what the text costs is no measure of a model with heads off
        assert (" cost " in LanguageModelFigure(asks=asks, off=[(0, 0)]).alt) is (asks == "mask")
    masked = LanguageModelFigure(asks="mask").alt
    assert masked.endswith("weight 1.00. The words of this text cost 1.60 nats each on average.")
    assert "The text is full" in LanguageModelFigure(written=48).alt
    assert " cost " not in LanguageModelFigure(prompt="bring").alt


# --- The figure on its page ---------------------------------------------------------------------


@pytest.fixture
def figure(stage: Stage) -> Locator:
    """The moving part of a page that holds the figure alone."""
    page = stage.show(LanguageModelFigure(), viewport={"width": 900, "height": 900})
    return page.locator("attention-figure")


def shown_words(figure: Locator) -> str:
    return " ".join(figure.locator("[data-key^='word']").all_text_contents())


TYPED = {
    "": "Type or choose a word: the model continues a text, but begins none.",
    "   ": "Type or choose a word: the model continues a text, but begins none.",
    "bring ana piano": "The model does not know “\u2068piano\u2069”: its vocabulary has 35 words.",
    "bring <b>": "The model does not know “\u2068<b>\u2069”: its vocabulary has 35 words.",
    "bring שלום": "The model does not know “\u2068שלום\u2069”: its vocabulary has 35 words.",
    "bring 🙂": "The model does not know “\u2068🙂\u2069”: its vocabulary has 35 words.",
    "x" * 5000: f"The model does not know “\u2068{'x' * 20}\u2069”: its vocabulary has 35 words.",
    "ana " * 49: "49 words are too many: the model reads at most 48.",
    "ana " * 1500: "1,500 words are too many: the model reads at most 48.",
}


def test_what_the_model_cannot_read_gets_one_sentence_and_the_text_stays(figure):
    before = shown_words(figure)
    field, problem = figure.get_by_label("your text"), figure.locator(".af-problem")
    for typed, words in TYPED.items():
        field.fill(typed)
        assert problem.inner_text() == f"{words} The figure still shows the text before."
        assert field.get_attribute("aria-invalid") == "true"
        assert shown_words(figure) == before
        figure.get_by_role("button", name="Reset").click()
        assert field.input_value() == before
        assert problem.inner_text() == ""


def test_the_word_that_is_lost_stays_in_sight_and_the_head_is_named(figure):
    words = figure.locator(".af-next-word")
    figure.get_by_label("a head of layer 0").check()
    layer, head = shipped()["back"]
    switch = figure.get_by_role("checkbox", name=f"layer {layer}, head {head}")
    switch.uncheck()
    assert words.all_inner_texts()[-1] == shipped()["wanted"]  # the least of those that are shown
    verdict = figure.locator(".af-verdict").inner_text()
    assert f"Head {head} of layer {layer} tells each thing whose it is." in verdict
    switch.check()
    assert words.all_inner_texts()[0] == shipped()["wanted"]


def test_a_word_is_waited_for_while_it_is_typed(figure):
    field, problem = figure.get_by_label("your text"), figure.locator(".af-problem")
    field.fill("")
    field.press_sequentially(" Bring ana te")
    assert problem.inner_text() == ""
    assert shown_words(figure) == "bring ana"
    field.press_sequentially("a")
    assert shown_words(figure) == "bring ana tea"
    assert field.input_value() == " Bring ana tea"  # what is typed is left alone
    field.press_sequentially(" ou")
    field.press("Enter")
    assert "does not know “\u2068ou\u2069”" in problem.inner_text()
    assert shown_words(figure) == "bring ana tea"


def test_words_are_clicked_and_removed(figure):
    before = shown_words(figure)
    figure.get_by_text("Click words: 35 in the vocabulary").click()
    figure.get_by_role("button", name="milk", exact=True).click()
    figure.get_by_role("button", name="outside.", exact=True).click()
    assert shown_words(figure) == f"{before} milk outside."
    assert figure.get_by_label("your text").input_value() == f"{before} milk outside."
    for _ in range(3):
        figure.get_by_role("button", name="remove the last word").click()
    assert shown_words(figure) == before.rsplit(" ", 1)[0]
    figure.get_by_label("your text").fill("bring")
    figure.get_by_role("button", name="remove the last word").click()
    assert "begins none" in figure.locator(".af-problem").inner_text()
    assert shown_words(figure) == "bring"


def test_pointing_at_a_word_shows_where_the_heads_look_from_there(figure, model):
    words = shown_words(figure).split()
    weights = run(model, tokens_of(" ".join(words))).weights
    for q in (len(words) - 1, 5):
        figure.locator(f"[data-key='word {q}']").hover()
        expected = int((weights[:, :, q] >= 0.05).sum())
        assert figure.locator(".af-text .af-thread").count() == expected
        assert figure.locator(".af-from").get_attribute("data-key") == f"word {q}"
        for layer, head in EVERY_HEAD:
            k = int(weights[layer, head, q].argmax())
            looks = figure.locator(f"[data-key='looks {layer} {head}']").inner_text()
            assert looks == f"→\u2009{words[k]}"
    figure.locator("[data-key='looks 1 0']").hover()  # one head alone, from that word
    assert figure.locator(".af-text .af-thread").count() == int((weights[1, 0, 5] >= 0.05).sum())
    figure.page.mouse.move(0, 0)
    figure.locator("[data-key='looks 1 0']").hover()  # and from the last, where none was chosen
    assert figure.locator(".af-text .af-thread").count() == int((weights[1, 0, -1] >= 0.05).sum())


def test_panels_and_sentence_speak_of_the_word_that_is_pointed_at(figure, model):
    words = shown_words(figure).split()
    logits = run(model, tokens_of(" ".join(words))).logits
    titles, now = figure.locator(".af-panel .af-title"), figure.locator(".af-now")
    last, opened = len(words) - 1, now.inner_text()
    for q, word in ((last, None), (10, "fish"), (3, "inside.")):
        if word:
            figure.locator(f"[data-key='word {q}']").hover()
        name = f"“{words[q]}” ({q})"
        assert titles.all_inner_texts() == [
            f"Next word after {name}",
            f"Where the heads look from {name}",
        ]
        chances = logits[q].softmax(dim=-1)
        bars = figure.locator("[data-key^='next']")
        for node in bars.all():
            token = int(str(node.get_attribute("data-key")).split()[1])
            seen = float(node.get_attribute("data-value") or "nan")
            assert seen == pytest.approx(chances[token].item(), abs=1e-9)
        assert bars.first.get_attribute("data-key") == f"next {chances.argmax()}"
        best = bars.first.locator(".af-next-word").inner_text()
        start = f"After “{words[q]}” comes “{best}” with probability {chances.max():.3f}."
        assert now.inner_text() == f"{start}{opened[opened.index('. The words') + 1 :]}"
    figure.page.mouse.move(0, 0)
    assert titles.first.inner_text() == f"Next word after “mia” ({last})"


def test_two_hops_lead_from_the_second_mention_to_the_thing_and_its_name(figure):
    hops, said = figure.locator(".af-hop"), figure.locator(".af-hops")
    assert hops.count() == 0  # they would answer the question of the figure
    assert said.inner_text().startswith("Point at a word to see two hops")
    figure.locator("[data-key='word 13']").hover()
    keys = [hop.get_attribute("data-key") for hop in hops.all()]
    assert keys == ["hop 1 2", "hop 0 3"]
    assert figure.locator(".af-met").all_text_contents() == ["mia", "pie"]
    assert said.inner_text() == (
        "From “mia” (13) head 2 of layer 1 looks at “pie” (2). "
        "Before that, head 3 of layer 0 has looked from “pie” at “mia” (1)."
    )
    figure.get_by_role("checkbox", name="layer 0, head 3").uncheck()  # the word stays chosen
    assert hops.count() == 0
    assert said.inner_text() == (
        "From “mia” (13) no head of layer 1 puts most of its weight on one other word."
    )
    figure.get_by_role("checkbox", name="layer 0, head 3").check()
    assert hops.count() == 2
    figure.page.mouse.move(0, 0)
    assert hops.count() == 0


def test_while_it_writes_its_button_stays_where_it_is(figure):
    stop_the_clock(figure.page)
    figure.get_by_role("button", name="Play").click()
    pause = figure.get_by_role("button", name="Pause")
    before, rows = box_of(pause), set()
    for _ in range(32):
        figure.page.clock.run_for(350)
        rows.add(figure.locator("[data-key^='word']").last.get_attribute("data-at"))
        assert box_of(pause) == before
    figure.page.clock.run_for(350)  # with the last word it has stopped
    rows.add(figure.locator("[data-key^='word']").last.get_attribute("data-at"))
    after = box_of(figure.get_by_role("button", name="Play"))
    assert (after.y, after.height, after.right) == (before.y, before.height, before.right)
    assert len({at.split(",")[0] for at in rows if at}) >= 3  # though rows of words came


def test_the_field_shows_the_last_word(figure):
    figure.page.set_viewport_size({"width": 500, "height": 900})
    figure.page.reload()
    field = figure.get_by_label("your text")
    at_end = """(node) => node.scrollLeft > 0
      && node.scrollWidth - node.clientWidth - node.scrollLeft <= 1"""
    figure.locator(".af-form").wait_for()
    figure.get_by_text("Write with it").click()  # on a narrow page it is folded away
    figure.page.wait_for_function(at_end, arg=field.element_handle())
    field.focus()
    field.evaluate("(node) => { node.scrollLeft = 0; }")
    field.press("Tab")
    figure.page.wait_for_function(at_end, arg=field.element_handle())


def test_it_writes_word_by_word_and_without_motion_it_steps(figure):
    page = figure.page
    stop_the_clock(page)
    before = shown_words(figure)
    written = run(unpacked(shipped()), tokens_of(before), num_written=3).written
    figure.get_by_role("button", name="Play").click()
    for number in range(1, 4):
        words = [WORDS[token] for token in written[:number]]
        assert shown_words(figure) == " ".join([before, *words])
        page.clock.run_for(350)
    figure.get_by_role("button", name="Pause").click()
    page.emulate_media(reduced_motion="reduce")
    page.reload()
    step = figure.get_by_role("button", name="Next step")
    step.click()
    step.click()
    assert shown_words(figure) == " ".join([before, *(WORDS[token] for token in written[:2])])


# --- On a phone, and without the mask -----------------------------------------------------------

ORDERED = "bring ana tea inside. bring ben milk outside. bring ben"


@pytest.mark.parametrize(("width", "height"), PHONES)
def test_on_a_phone_the_heads_and_what_they_change_stay_in_one_screen(width, height, stage):
    page = stage.phone(LanguageModelFigure(), width, height)
    stays = one_screen(page, "label, button, summary, [data-at]")
    at = str(page.locator("[data-key^=word]").last.get_attribute("data-at"))
    assert at.startswith("2,")  # in the third line
    switches = page.locator(".af-switch")
    assert len({box_of(switch).y for switch in switches.all()}) == 2  # a row for each layer
    page.locator(".af-predict input").first.check()
    heads = [shipped()["back"], [0, 0], [0, 1], [1, 0], [1, 1]]
    for number, (layer, head) in enumerate(heads, start=1):
        page.get_by_role("checkbox", name=f"layer {layer}, head {head}").tap()
        said = "1 head" if number == 1 else f"{number} heads"
        expect(page.locator(".af-now")).to_contain_text(f"With {said} off “pie” has 0.")
        stays()
    assert page.evaluate("scrollY") == 0


@pytest.mark.parametrize(("width", "height"), PHONES)
def test_on_a_phone_the_mask_and_the_losses_stay_in_one_screen(width, height, stage):
    page = stage.phone(LanguageModelFigure(prompt=ORDERED, asks="mask"), width, height)
    stays = one_screen(page, "label, button, summary, [data-at]")
    key = page.locator(".af-loss-key")
    expect(key).to_have_text("Bars: loss in nats.")
    page.locator(".af-predict input").last.check()
    page.get_by_role("checkbox", name="causal mask").tap()
    expect(page.locator(".af-verdict")).to_have_text(re.compile("^✓ You said: "))
    expect(key).to_have_text("Bars: loss in nats. Dashed: with the mask.")
    stays()
    assert page.locator(":is(.af-switch, .af-hops):visible").count() == 0
    page.get_by_text("Where its heads look").tap()
    expect(page.locator(".af-hops")).to_have_text(re.compile("^Tap a word to see two hops: "))
    place = box_of(page.locator(".af-now")).y
    for head in range(4):
        page.get_by_role("checkbox", name=f"layer 0, head {head}").tap()
        assert lines_said(page) <= 2
        assert box_of(page.locator(".af-now")).y == place


def test_no_name_of_a_word_is_cut_and_no_row_stands_empty(stage: Stage) -> None:
    page = stage.phone(LanguageModelFigure(), *PHONES[0])
    page.get_by_role("checkbox", name="layer 0, head 0").tap()
    cut = "(all) => all.filter((one) => one.scrollWidth > one.clientWidth).length"
    assert page.locator(".af-looks").evaluate_all(cut) == 0
    for asks in (True, "mask"):
        page = stage.show(LanguageModelFigure(prompt=ORDERED, asks=asks))
        pane, last = box_of(page.locator(".af-pane")), box_of(page.locator("[data-key^=word]").last)
        assert pane.bottom - last.bottom < 10


def test_writing_is_folded_on_a_phone_until_a_link_asks_and_the_text_follows_its_last_word(stage):
    fold = "details:has(.af-choosing)"
    assert stage.show(LanguageModelFigure()).locator(fold).get_attribute("open") is not None
    page = stage.phone(LanguageModelFigure(), *PHONES[0])
    assert page.locator(fold).get_attribute("open") is None
    page = stage.show(LanguageModelFigure(), at="#figure=language_model&written=30", viewport=PHONE)
    assert page.locator(fold).get_attribute("open") is not None
    pane, last = box_of(page.locator(".af-pane")), box_of(page.locator("[data-key^=word]").last)
    assert pane.y <= last.y
    assert last.bottom <= pane.bottom


def test_without_a_head_the_bars_keep_what_was_likely_before(figure, model):
    data, prompt = shipped(), tokens_of(shipped()["prompt"])
    marked = figure.locator(".af-next-bar.af-compared")
    assert marked.count() == 0
    layer, head = data["back"]
    figure.get_by_role("checkbox", name=f"layer {layer}, head {head}").uncheck()
    before = run(model, prompt).chances
    kept = marked.evaluate_all(
        """(all) => all.map((one) => [one.parentNode.dataset.key.split(" ")[1],
            one.style.getPropertyValue("--before")].map(Number))"""
    )
    assert [WORDS[token] for token, _ in kept] == [data["wanted"]]
    assert kept[0][1] == pytest.approx(before[WORDS.index(data["wanted"])].item(), abs=1e-9)


def test_the_mask_is_asked_about_and_the_loss_stands_over_each_word(stage, model):
    page = stage.show(LanguageModelFigure(prompt=ORDERED, asks="mask"), reduced_motion="reduce")
    text, opened = tokens_of(ORDERED), readings(page)
    targets = torch.tensor(text[1:])
    losses = {
        causal: [
            0.0,
            *cross_entropy(
                run(model, text, causal=causal).logits[:-1], targets, reduction="none"
            ).tolist(),
        ]
        for causal in (True, False)
    }
    assert sum(losses[False]) < sum(losses[True])  # so the answer is that it falls

    def heights(kind: str) -> list[float]:
        return page.locator(kind).evaluate_all(
            "(all) => all.map((one) => one.height.baseVal.value)"
        )

    scale = 30 / max(losses[True])
    mask, verdict = page.get_by_role("checkbox", name="causal mask"), page.locator(".af-verdict")
    page.get_by_text("Where its heads look").click()
    page.get_by_label("it falls").check()
    for causal in (True, False):
        if not causal:
            page.get_by_role("checkbox", name="layer 0, head 0").uncheck()
            mask.uncheck()
            expect(verdict).to_have_text("Noted. Now take the mask away.")  # of the model as it was
            page.get_by_role("checkbox", name="layer 0, head 0").check()
        assert heights(".af-loss") == pytest.approx(
            [scale * loss for loss in losses[causal]], abs=1e-6
        )
        dashed = [0.0 if causal else scale * loss for loss in losses[True]]
        assert heights(".af-loss-before") == pytest.approx(dashed, abs=1e-6)
        assert page.locator(".af-loss").first.evaluate("""(first) =>
            [...first.parentNode.parentNode.children].every((group) => {
                const { bottom } = group.lastChild.getBoundingClientRect();
                return bottom <= group.children[1].getBoundingClientRect().top + 3;
            })""")  # no number is crossed
    expect(verdict).to_have_text(re.compile(r"^✓ You said: it falls\. .* 1\.51 .* 0\.38 "))
    field, goal = page.get_by_label("your text"), page.locator(".af-challenge")
    field.fill("bring ana tea inside. " * 4)
    expect(goal).to_have_text(re.compile("^Challenge: .*“Write with it”"))  # the mask is away
    mask.check()
    expect(goal).to_have_text(re.compile("^Challenge met: "))
    page.get_by_role("button", name="Reset").click()
    assert readings(page) == opened
    expect(verdict).to_have_text("")


def test_a_link_that_switches_a_head_off_unfolds_the_heads(stage: Stage) -> None:
    figure = LanguageModelFigure(prompt=ORDERED, asks="mask")
    switch = ".af-switch:visible"
    assert stage.show(figure).locator(switch).count() == 0
    off = stage.show(figure, at="#figure=language_model&off=[[0,1]]")
    assert off.locator(switch).count() == 8


def test_what_the_figure_does_not_ask_is_refused():
    with pytest.raises(ValueError, match="asks must be True, False or 'mask', but is 'heads'"):
        LanguageModelFigure(asks="heads")  # type: ignore[arg-type]
