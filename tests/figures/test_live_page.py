"""The live figure on its page: what is typed, played, switched and pointed at."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from browser import stop_the_clock
from playwright.sync_api import Locator, Page, expect
from scripts import tool
from stage import PHONES, TOUCH, Stage, box_of, slide, tab_to
from torch import Tensor

from attention_book import Transformer
from attention_book.figures import LiveTransformer
from attention_book.figures.live import run, shipped, unpacked


@pytest.fixture(scope="module")
def model() -> Transformer:
    return unpacked(shipped())


@pytest.fixture
def figure(stage: Stage) -> Locator:
    """The moving part of a page that holds the figure alone, for a reader who wants no motion; see
    `moving`."""
    return stage.show(LiveTransformer(), reduced_motion="reduce").locator("attention-figure")


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
    tab_to(page, ".af-word")
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.type("regal")
    assert written(figure) == "regallager"
    tab_to(page, "input[type=range]")
    page.keyboard.press("Home")
    now = figure.locator(".af-now")
    assert now.inner_text() == "The encoder has read “regal”. Nothing is written yet."
    page.keyboard.press("ArrowRight")
    assert ", token 1 of 6, the model looked most at “" in now.inner_text()
    tab_to(page, "summary")
    page.keyboard.press("Enter")
    assert "1 written and 5 read positions, 1,536 bytes" in figure.locator(".af-cache").inner_text()
    tab_to(page, "input[type=range]", "Shift+Tab")
    page.keyboard.press("End")
    tab_to(page, "input[name=positions]")
    page.keyboard.press("Space")
    same = re.compile(
        "reads “regal” and writes “(.+)” instead .* positions “lager” gives “\\1” too"
    )
    assert same.search(now.inner_text())
    page.keyboard.press("Space")
    tab_to(page, "input[name=causal]")
    page.keyboard.press("Space")
    assert written(figure) == "regallager"
    assert "predict another token" in now.inner_text()
    page.keyboard.press("Space")
    tab_to(page, "[data-key='token 0']", "Shift+Tab")
    reading = figure.locator(".af-reading")
    assert "Position 0: after start it writes l; it looks most at l (4)" in reading.inner_text()
    page.keyboard.press("ArrowRight")
    assert "Position 1: after l it writes a" in reading.inner_text()
    tab_to(page, "[data-key='letter 0']", "Shift+Tab")
    page.keyboard.press("End")
    assert "l (4): l (0) looks at it most, weight 0." in reading.inner_text()
    tab_to(page, "[data-key^='encoder']")
    page.keyboard.press("ArrowDown")
    assert "head 0: e (1) gives r (0) the weight 0." in reading.inner_text()
    assert figure.locator(".af-followed").get_attribute("d")


def test_play_writes_token_by_token_and_without_motion_it_steps(figure):
    page = moving(figure)
    expect(figure.locator("[data-key^='token ']")).to_have_count(0)  # the word writes itself first
    page.clock.run_for(5 * 350)
    figure.get_by_role("button", name="Play").click()
    now, fresh = figure.locator(".af-now"), figure.locator(".af-box.af-fresh")
    assert "Nothing is written yet." in now.inner_text()
    for number in range(1, 4):
        page.clock.run_for(350)
        assert f", token {number} of 5, " in now.inner_text()
        assert fresh.get_attribute("data-key") == f"token {number - 1}"
    figure.get_by_role("button", name="Pause").click()
    page.clock.run_for(2000)
    assert ", token 3 of 5, " in now.inner_text()
    page.emulate_media(reduced_motion="reduce")
    page.reload()
    step = figure.get_by_role("button", name="Next step")
    step.click()
    step.click()
    assert ", token 1 of 5, " in figure.locator(".af-now").first.inner_text()


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
        assert number == 0 or f", token {number} of 5, " in now.inner_text()
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
    assert ", token 3 of 5, " in figure.locator(".af-now").inner_text()
    page.clock.run_for(700)
    assert ", token 3 of 5, " in figure.locator(".af-now").inner_text()


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


@pytest.mark.parametrize(("width", "height"), PHONES)
def test_a_longer_word_moves_nothing_below_it_and_a_word_s_box_holds_it(width, height, stage):
    page = stage.phone(LiveTransformer(), width, height)
    controls = page.locator(".af-controls")
    before = box_of(controls).y
    page.get_by_label("causal mask").uncheck()
    label = page.locator(".af-row-name").filter(has_text="in one")
    for word in ("evil", "attention", "transformers"):
        page.get_by_label("your word").fill(word)
        assert box_of(controls).y == before
        assert box_of(page.locator(".af-other:not(:empty)").first).x - box_of(label).right >= 2
    for word, last in (("attention", 9), ("hippopotamus", 10)):
        page.get_by_label("your word").fill(word)
        end = page.locator(f"[data-key='token {last}']")
        box, text = (box_of(end.locator(part)) for part in ("rect", ".af-sign"))
        assert box.x + 2 <= text.x
        assert text.right <= box.right - 2


def test_the_tokens_that_are_wrong_are_marked_and_say_what_is_right(figure):
    assert figure.locator(".af-amiss").count() == 0
    figure.get_by_label("positions").uncheck()
    wrong = figure.locator(".af-amiss")
    keys = wrong.evaluate_all("(all) => all.map((one) => one.dataset.key)")
    assert keys == [f"token {q}" for q in (0, 1, 3, 4, 5)]  # it writes “ieiviv” for “evil”
    reading = wrong.first.evaluate("(one) => one.reading")
    assert reading.endswith("Right would be e.")


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
    assert verdict.inner_text().startswith("✓ You said: ")


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
    figure.get_by_role("button", name="evil").click()  # begins anew while another is written
    assert value.inner_text() == "0 of 5"
    page.clock.run_for(350)
    assert value.inner_text() == "1 of 5"


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
    figure.get_by_role("button", name="evil").click()
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


def test_a_finger_hits_the_cells_of_a_map_on_a_phone(stage):
    page = stage.show(LiveTransformer(), **TOUCH | {"viewport": {"width": 390, "height": 844}})
    figure = page.locator("attention-figure")
    look_inside(figure)
    for word, smallest in (("live", 24), ("transformer", 18)):
        figure.get_by_label("your word").fill(word)
        boxes = [box_of(cell) for cell in figure.locator(".af-small .af-cell").all()[::7]]
        assert all(min(box.width, box.height) >= smallest for box in boxes), word
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


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


def test_the_page_holds_what_the_package_makes_now(monkeypatch):
    monkeypatch.setenv("ATTENTION_BOOK_LANGUAGE", "")  # is put back
    figures = tool("figures")

    def checked(path: Path, text: str) -> str:
        """All, but of other languages no picture, for which this machine may have no typeface."""
        whole = path.parent == figures.FOLDER
        return text if whole else re.sub(r'src="data:[^"]+"', "", text)

    stored = {path: path.read_text("utf-8") for path in figures.FOLDER.rglob("*.html")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        made = figures.made()
    assert {p: checked(p, t) for p, t in stored.items()} == {
        p: checked(p, t) for p, t in made.items()
    }


def test_what_the_dashes_mean_stands_beside_them_while_there_are_some(stage: Stage) -> None:
    page = stage.phone(LiveTransformer(), *PHONES[0])
    wrong = page.locator(".af-wrong-name")
    slide(page, "tokens written", 3)
    expect(wrong).to_be_hidden()
    page.get_by_label("positions").uncheck()
    slide(page, "tokens written", 4)
    assert page.locator(".af-amiss").count() > 0
    expect(wrong).to_be_visible()
    writes = page.locator(".af-row-name").filter(has_text="writes")
    for word in ("evil", "hippopotamus"):  # the longer is drawn smaller
        page.get_by_label("your word").fill(word)
        assert box_of(wrong).right < box_of(page.locator(".af-amiss").first).x
        assert box_of(wrong).bottom <= box_of(writes).y + 3  # their letters do not touch
