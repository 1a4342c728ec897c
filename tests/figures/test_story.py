"""The story that a published model continues: in Python, and in a page against Python."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
import torch
from browser import Watched, chromium, serve
from figures_ext import STORIES
from playwright.sync_api import Browser, Page, expect
from stage import PHONES, Stage, box_of, bundle, one_screen, readings, sort_heads, tap_heads
from traitlets import TraitError

from attention_book import LanguageModel
from attention_book.data import stories
from attention_book.figures import StoryFigure
from attention_book.figures.base import kit
from attention_book.figures.story import BEGINNINGS, LONGEST, published, spelled, stories_file
from attention_book.tokenizer import BEGIN, Tokenizer

HEADS = [*product(range(5), range(8))]
CHILD, LILY, TIM, _ = BEGINNINGS.values()
#: Names of one to four tokens with which the sentence of the challenge was measured: head 4 of
#: layer 4 is the only one without which the likeliest piece is no longer the name's first.
NAMES = ["Ben", "Max", "Mia", "Tom", "Sue", "Spot", "Bip", "Zora", "Lucy", "Emma", "Leo", "Otto"]
GREEDY = {"temperature": 0, "top_k": 512, "top_p": 1, "seed": 0, "causal": True, "off": []}


@pytest.fixture
def model() -> LanguageModel:
    return published()[0]


@pytest.fixture
def tokens() -> Tokenizer:
    return published()[1]


def changing(text: str) -> list[tuple[int, int]]:
    """The heads without which, one at a time, the likeliest next piece is another."""
    figure = StoryFigure(story=text)
    best = figure.run().logits[-1].argmax()
    return [head for head in HEADS if figure.run([head]).logits[-1].argmax() != best]


# --- In Python ----------------------------------------------------------------------------------


def test_the_answer_and_the_challenge_are_what_was_measured():
    assert changing(CHILD) == [(4, 4)]
    assert changing(LILY) == [(2, 1), (3, 5)]


@pytest.mark.parametrize("name", NAMES)
def test_a_child_of_another_name_loses_it_with_the_same_head(name):
    figure = StoryFigure(story=CHILD.replace("Max", name))
    first = stories().encode(name, begin=False)[0]
    assert figure.run().logits[-1].argmax() == first
    assert figure.run([(4, 4)]).logits[-1].argmax() != first


def test_a_story_in_runs_has_the_tokens_of_its_parts(tokens):
    written = tokens.encode(" ball. He", begin=False, space=False)
    figure = StoryFigure(story=["Tim saw a", written, "llo"])
    assert figure.tokens() == [
        *tokens.encode("Tim saw a"),
        *written,
        *tokens.encode("llo", begin=False, space=False),
    ]
    assert tokens.decode(figure.tokens()) == "Tim saw a ball. Hello"
    assert StoryFigure(story="").tokens() == [BEGIN]


@pytest.mark.parametrize(
    "story", [None, 3, [], [[1]], ["a", "b"], ["a", [512]], ["a", [True]], "\ud800", "x" * LONGEST]
)
def test_what_is_no_story_is_refused_in_one_sentence(story):
    figure = StoryFigure()
    with pytest.raises(TraitError, match=r"^StoryFigure: story must "):
        figure.story = story
    assert figure.story == [CHILD]


def test_the_alternative_of_a_long_story_begins_with_a_whole_word():
    begun = BEGINNINGS["Tim’s ball"]
    assert StoryFigure(story=begun).alt.startswith(f"A story: “{begun}”. ")
    assert StoryFigure(story="The cat sat. " * 12).alt.startswith("A story: “… cat sat. The cat ")


def test_a_reader_s_own_model_runs_with_its_encoder_and_others_are_refused(tokens):
    torch.manual_seed(0)
    own = LanguageModel(len(tokens.vocab), 16, 2, 24, 3, tied=False)
    figure = StoryFigure(own, tokens.encode, story="A cat")
    assert figure.data["asks"] is False
    assert figure.data["file"] is None
    assert figure.data["model"]["pieces"] == spelled(tokens)["pieces"]
    with torch.no_grad():
        exact = own(torch.tensor([tokens.encode("A cat")]))[0]
    assert (figure.run().logits - exact).abs().max() < 0.02
    with pytest.raises(TypeError, match="together"):
        StoryFigure(own)
    with pytest.raises(TypeError, match="Tokenizer"):
        StoryFigure(own, str.split)
    with pytest.raises(ValueError, match="512 tokens and the model 9"):
        StoryFigure(LanguageModel(9, 8, 2, 8, 1), tokens)
    with pytest.raises(ValueError, match="more than the 500,000"):
        StoryFigure(LanguageModel(512, 128, 2, 900, 2), tokens)


def test_a_kernel_hands_the_parameters_over_when_the_reader_begins(monkeypatch):
    figure, sent = StoryFigure(), []
    monkeypatch.setattr(figure, "send", lambda content, buffers=None: sent.append(content))
    figure._handle_custom_msg("begin", [])
    file = json.loads(stories_file().partition(" = ")[2].rstrip(";\n"))
    [content] = sent
    halves = content["model"].pop("halves"), file.pop("halves")
    assert {name for name, *_ in content["model"].pop("layout")} == {
        name for name, *_ in file.pop("layout")
    }
    assert content["model"] == file
    assert len(halves[0]) == len(halves[1])


def test_the_file_is_as_small_as_promised():
    file = stories_file().encode()
    assert len(file) <= 750_000
    assert len(gzip.compress(file)) <= 560_000


# --- In the page against Python -----------------------------------------------------------------

LOAD = """async ([source, data]) => {
  const module = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  window.net = module.decoder(data);
  window.tokens = module.tokenizer(data);
  // One text: each number of a list would be sent in a wrapping of its own.
  window.readAll = (cases) => JSON.stringify(
    cases.map(([text, off]) => net.read(text, { causal: true, off }))
      .map(({ logits, weights }) => ({ logits, weights })));
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def page(browser: Browser) -> Page:
    page = browser.new_page()
    file = json.loads(stories_file().partition(" = ")[2].rstrip(";\n"))
    page.evaluate(LOAD, [kit() + StoryFigure.module(), StoryFigure().data | file])
    return page


def test_the_page_writes_the_published_text_letter_for_letter(page, model, tokens):
    written = page.evaluate("(settings) => net.write([1], 256, settings)", GREEDY)
    assert written == model.generate(torch.tensor([[1]]), 256)[0].tolist()
    text = page.evaluate("(all) => tokens.textsOf(all).join('')", written)
    exact = LanguageModel.from_pretrained(stories().folder)
    assert text == " " + tokens.decode(exact.generate(torch.tensor([[1]]), 256)[0])
    assert text.endswith("We can help you.")


def test_logits_and_weights_are_those_of_python_whatever_is_off(page, model):
    rng = random.Random(1)
    figure, cases, expected = StoryFigure(), [], []
    for length in (1, 2, 7, 30, 90):
        figure.story = ["", [rng.randrange(3, 512) for _ in range(length)]]
        for number in (0, 1, 5, 40):
            off = rng.sample(HEADS, number)
            cases.append([figure.tokens(), [list(head) for head in off]])
            expected.append(figure.run(off))
    found = json.loads(page.evaluate("(cases) => readAll(cases)", cases))
    for seen, now in zip(found, expected, strict=True):
        for name in ("logits", "weights"):
            gap = (torch.tensor(seen[name]).double() - getattr(now, name)).abs().max()
            assert gap < 1e-5, name


SIGNS = [
    *["Lily", "the", " ", "  ", "\n", "\t", "\x00", "\x7f", "\x9f", "é", "ﬁ", "中文", "😀", "👩‍👧"],
    *[
        "<s>",
        "</s>",
        "<unk>",
        "<0x41>",
        "<",
        "▁",
        "\ufeff",
        "\u2028",
        "e\u0301",
        "מ",
        "0",
        "Zz",
        "'s",
    ],
]


def test_the_page_cuts_texts_into_the_same_tokens(page, tokens):
    rng = random.Random(0)
    texts = ["", *SIGNS, *("".join(rng.choices(SIGNS, k=rng.randrange(1, 40))) for _ in range(600))]
    texts += ["".join(map(chr, rng.choices(range(1, 0xD7FF), k=20))) for _ in range(200)]
    for space in (True, False):
        found = page.evaluate(
            "([all, begins]) => all.map((x) => tokens.encode(x, begins))", [texts, space]
        )
        assert found == [tokens.encode(text, begin=False, space=space) for text in texts]
    back = page.evaluate("(all) => all.map((x) => tokens.textsOf(x).join(''))", found)
    assert back == texts
    assert page.evaluate("() => [...Array(512).keys()].map(tokens.nameOf)") == [
        *map(StoryFigure()._name, range(512))
    ]


# --- What a reader does ---------------------------------------------------------------------------

FIELD = "textarea.af-quill"


def story_of(page: Page) -> str:
    """The story that is shown, which the field says too."""
    shown = page.locator(".af-ink").text_content() or ""
    assert page.locator(FIELD).input_value() == shown
    return shown


def ready(page: Page) -> None:
    page.wait_for_function("!document.querySelector('.af-form[aria-busy=true]')")


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()
    ready(page)


def test_nothing_is_loaded_before_the_reader_begins_and_nothing_goes_elsewhere(
    browser: Browser, folder: Path
) -> None:
    (folder / "served.html").write_text(
        '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">'
        f'<script defer src="figures.js"></script>{StoryFigure().to_html()}',
        encoding="utf-8",
    )
    with serve(folder) as served:
        watched = Watched(browser.new_context(reduced_motion="reduce"), served.address)
        page = watched.page
        page.goto(f"{served.address}/served.html")
        page.locator(".af-form").wait_for()
        assert sorted(served.sent) == ["/figures.js", "/served.html"]
        press(page, "no words")
        page.locator('input[name="temperature"][value="0"]').check()
        for _ in range(10):
            page.get_by_role("button", name="Go on").click()
        page.locator(FIELD).press_sequentially(" My own secret")
        ready(page)
        assert story_of(page).endswith(" My own secret")
        assert sorted(served.sent) == [f"/{STORIES}", "/figures.js", "/served.html"]
        assert watched.outside == []
        assert watched.errors == []


def test_the_model_writes_in_the_page_what_it_writes_in_python(stage: Stage, tokens) -> None:
    page = stage.show(StoryFigure(temperature=0.0), reduced_motion="reduce")
    press(page, "no words")
    while len(story_of(page)) < 300:
        press(page, "Go on")
    exact = LanguageModel.from_pretrained(stories().folder)
    greedy = tokens.decode(exact.generate(torch.tensor([[1]]), 256)[0])
    assert greedy.startswith(story_of(page))
    assert page.locator(".af-hers").count() > 100


def test_a_piece_is_written_where_the_reader_looks_and_what_followed_goes(stage: Stage) -> None:
    page = stage.show(
        StoryFigure(story=LILY), viewport={"width": 390, "height": 844}, has_touch=True
    )
    page.locator(".af-piece").first.click()
    expect(page.locator(FIELD)).to_have_value(LILY + " b")
    page.locator(".af-ink span").filter(has_text="They").first.evaluate("(s) => s.click()")
    tap = page.locator(".af-ink span").nth(1).bounding_box()
    assert tap
    page.mouse.click(tap["x"] + 3, tap["y"] + 5)
    expect(page.locator(".af-here")).to_have_count(1)
    start = page.locator(".af-ink").evaluate(
        "(ink) => { let s = ''; for (const x of ink.children) { s += x.textContent;"
        " if (x.classList.contains('af-here')) return s; } }"
    )
    name = page.locator(".af-piece .af-next-word").first.text_content() or ""
    page.locator(".af-piece").first.click()
    expect(page.locator(FIELD)).to_have_value(start + name.replace("␣", " "))


def test_every_edit_is_shown_as_it_was_made(stage: Stage) -> None:
    page = stage.show(StoryFigure(story=["Tim saw a", [390, 266, 313], " and he", [259, 300]]))
    press_one = page.locator(".af-piece").first
    press_one.click()
    ready(page)
    rng = random.Random(3)
    for _ in range(150):
        text = story_of(page)
        start = rng.randrange(len(text) + 1)
        end = min(len(text), start + rng.choice([0, 0, 1, 3, 12, 60]))
        new = text[:start] + "".join(rng.choices(SIGNS, k=rng.choice([0, 1, 1, 4]))) + text[end:]
        page.locator(FIELD).evaluate(
            "(field, value) => { field.value = value; field.dispatchEvent(new Event('input')); }",
            new,
        )
        if rng.random() < 0.3:
            press_one.click()
        ready(page)


BAD = ["", "x" * 10_000, "😀" * 40, "中文故事", "\x00\x01\x1f", "<s></s>", "\ud83d lone", "\n\n\n"]


@pytest.mark.parametrize("typed", BAD, ids=range(len(BAD)))
def test_whatever_is_typed_the_figure_goes_on(typed: str, stage: Stage) -> None:
    page = stage.show(StoryFigure(), reduced_motion="reduce")
    page.locator(FIELD).evaluate(
        "(field, value) => { field.value = value; field.dispatchEvent(new Event('input')); }",
        typed.encode("utf-16", "surrogatepass").decode("utf-16", "replace"),
    )
    ready(page)
    note = page.locator(".af-note")
    if len(typed) > LONGEST:
        expect(note).to_have_text("The story is full: the model reads at most 512 pieces.")
        assert story_of(page) == CHILD
    else:
        assert note.text_content() == ""
    before = story_of(page)
    press(page, "Go on")
    assert story_of(page).startswith(before)
    assert page.locator(".af-now").text_content()


def test_who_types_stops_the_writing_and_ten_presses_end_as_they_began(stage: Stage) -> None:
    page = stage.show(StoryFigure())
    page.get_by_role("button", name="Go on").click()
    expect(page.locator(".af-hers")).not_to_have_count(0)
    page.locator(FIELD).press_sequentially("!")
    expect(page.get_by_role("button", name="Go on")).to_be_visible()
    ready(page)
    assert story_of(page).endswith("!")
    go = page.locator(".af-writing-row button").first
    for _ in range(10):
        go.click()
    expect(go).to_have_text("Go on")


@pytest.mark.parametrize("broken", ["missing", "not a model", "refused"])
def test_without_its_file_the_figure_says_so_keeps_its_picture_and_tries_again(
    broken: str, browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "figures.js").write_text(bundle(), encoding="utf-8")
    if broken == "not a model":
        (tmp_path / STORIES).write_text("attentionFigures.files.stories260k = {};")
    if broken == "refused":
        (tmp_path / STORIES).write_text(stories_file(), encoding="utf-8")
    stage = Stage(browser, tmp_path)
    no_memory = "<script>window.atob = () => { throw new RangeError('out of memory'); }</script>"
    page = stage.show(StoryFigure(), before=no_memory if broken == "refused" else "")
    opened = readings(page)
    page.locator(".af-piece").first.click()
    note = page.locator(".af-note")
    expect(note).to_have_text(
        re.compile(r"^The model cannot run here \(.+\), so the picture stays as it is\.$")
    )
    assert readings(page) == opened
    if broken == "missing":
        (tmp_path / STORIES).write_text(stories_file(), encoding="utf-8")
        page.locator(".af-piece").first.click()
        expect(page.locator(FIELD)).to_have_value(CHILD + " M")
        assert note.text_content() == ""
    missing = "net::ERR_FILE_NOT_FOUND"
    stage.shown[0].errors[:] = [error for error in stage.shown[0].errors if missing not in error]
    stage.close()


def test_the_heads_that_matter_come_first_and_one_of_them_takes_the_name(stage: Stage) -> None:
    page = stage.show(StoryFigure(), reduced_motion="reduce")
    sort_heads(page, "matters")
    expect(page.locator(".af-now")).to_have_text(
        re.compile(" Switched off alone, 1 of 40 heads change it.$")
    )
    [key] = page.locator(".af-key").all()
    number = key.evaluate("(tile) => getComputedStyle(tile, '::before').content")
    assert (key.get_attribute("data-key"), number) == ("head 4 4", '"4.4"')
    press(page, "Lily and Ben")
    first = page.locator(".af-key")
    keys = first.evaluate_all("(all) => all.map((one) => one.dataset.key)")
    assert keys == ["head 2 1", "head 3 5"]
    places = first.evaluate_all("(all) => all.map((one) => one.dataset.at)")
    assert sorted(places) == ["0,0", "0,1"]
    press(page, "a child, Max")
    tap_heads(page, (4, 4))
    figure = StoryFigure(story=CHILD, off=[(4, 4)])
    expect(page.locator(".af-now")).to_have_text(
        re.compile("^" + re.escape(figure._tell(figure.run())) + " One more off: 2 of 40")
    )
    expect(page.locator(".af-challenge")).to_have_text(re.compile("^Challenge met: "))
    before = page.locator(".af-former:visible")
    assert before.count() == 6


@pytest.mark.parametrize(("width", "height"), PHONES)
def test_on_a_phone_question_heads_and_pieces_share_a_screen_and_no_tap_moves_them(
    width: int, height: int, stage: Stage
) -> None:
    page = stage.phone(StoryFigure(), width, height)
    stays = one_screen(page, "label, button, summary")
    page.locator(".af-predict input").nth(1).check()
    stays()
    sort_heads(page, "matters")
    expect(page.locator(".af-verdict")).to_contain_text("You said: ")
    stays()
    tap_heads(page, (4, 4))
    expect(page.locator(".af-now")).to_contain_text("One more off: 2 of 40")
    stays()
    for piece in page.locator(".af-piece").all():
        word, value = (box_of(piece.locator(f".af-{name}")) for name in ("next-word", "value"))
        for bar in piece.locator(".af-next-bar, .af-former").all():
            assert word.right <= box_of(bar).x < box_of(bar).right <= value.x


def test_the_head_that_was_clicked_is_framed_whatever_the_page_says_of_buttons(
    stage: Stage,
) -> None:
    theme = "<style>button:focus:not(:focus-visible) { outline: 0 }</style>"
    page = stage.show(StoryFigure(), before=theme)
    tile = page.locator('[data-key="head 2 1"]')
    tile.click()
    page.mouse.move(1, 1)
    expect(tile).to_have_attribute("aria-pressed", "true")
    expect(tile).to_have_css("outline-style", "solid")


def test_a_story_that_is_written_scrolls_no_page(stage: Stage) -> None:
    before = "<p style='height: 30rem'></p>"
    page = stage.show(
        StoryFigure(story=BEGINNINGS["Lily and Ben"], small=True),
        before=before,
        viewport={"width": 360, "height": 640},
    )
    page.evaluate("scrollTo(0, 560)")
    page.get_by_role("button", name="Go on").click()
    page.wait_for_function("document.querySelectorAll('.af-hers').length > 80")
    assert page.evaluate("scrollY") == 560


def test_the_keyboard_reaches_heads_pieces_and_the_story(stage: Stage) -> None:
    page = stage.show(StoryFigure(), reduced_motion="reduce")
    page.locator(FIELD).focus()
    page.keyboard.press("End")
    page.keyboard.type(" t")
    ready(page)
    page.locator(".af-piece").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    ready(page)
    assert page.locator(".af-hers").count() == 1
    page.locator('[data-key="head 0 0"]').focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.key") == "head 1 1"
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(page.locator('[data-key="head 1 1"]')).to_have_class(re.compile("af-gone"))
    assert "head 1 of layer 1" in (page.locator(".af-opened").text_content() or "") or (
        "layer 1, head 1 is off" in (page.locator(".af-opened").text_content() or "")
    )


def test_the_story_travels_in_a_link(stage: Stage) -> None:
    page = stage.show(StoryFigure(), permissions=["clipboard-read", "clipboard-write"])
    for _ in range(3):
        page.locator(".af-piece").first.click()
        ready(page)
    page.locator(FIELD).press_sequentially(" said Zoë")
    ready(page)
    whole, model = story_of(page), page.locator(".af-hers").count()
    press(page, "Copy link")
    there = page.context.new_page()
    there.goto(page.url)
    there.locator(".af-form").wait_for()
    ready(there)
    assert story_of(there) == whole
    assert there.locator(".af-hers").count() == model == 3


def test_the_largest_chance_has_all_the_room_and_the_signs_are_explained(stage: Stage) -> None:
    page = stage.phone(StoryFigure(), *PHONES[0])
    ready(page)
    widths = page.locator(".af-piece .af-next-bar").evaluate_all(
        "(bars) => bars.map((bar) => bar.getBoundingClientRect().width)"
    )
    chances = [float(text) for text in page.locator(".af-piece .af-value").all_text_contents()]
    assert max(widths) > 60
    for width, chance in zip(widths, chances, strict=True):
        assert width / max(widths) == pytest.approx(chance / max(chances), abs=0.06)
    expect(page.get_by_role("button", name="write in the story")).to_have_text("✎ write")
    opened = page.locator(".af-opened > span").first
    expect(opened).to_contain_text("␣ is a space.")
    sort_heads(page, "matters")
    expect(opened).to_contain_text("Outlined: off, it changes the piece.")
