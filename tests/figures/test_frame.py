"""What all figures share in a browser: addresses, typed numbers, keys, playing, motion, fingers."""

from __future__ import annotations

import json
import re

import pytest
import torch
from browser import stop_the_clock
from playwright.sync_api import expect
from stage import (
    FIGURES,
    PHONE,
    TOUCH,
    UP,
    WIDE,
    Stage,
    box_of,
    in_middle,
    middle,
    readings,
    swipe,
    type_into,
    unfold,
    visit,
)

from attention_book.figures import (
    HeadsFigure,
    MaskingFigure,
    MatmulFigure,
    TilingFigure,
)

BROKEN = {
    "no such value": "#figure=masking&fill=%22after%22&valid_lens=[9,9]",
    "wrong type": "#figure=masking&valid_lens=%22many%22",
    "no such trait": "#figure=masking&fill=%22after%22&colour=1",
    "inherited name": "#figure=masking&constructor=1",
    "not JSON": "#figure=masking&fill=after",
    "endless": "#figure=masking&scores=" + "[" * 4000,
    "ragged scores": "#figure=masking&scores=[[[1,2,3,4],[1]],[[1,2,3,4],[1,2,3,4]]]",
    "huge scores": "#figure=masking&scores=[[[1e99,2,3,4],[1,2,3,4]],[[1,2,3,4],[1,2,3,4]]]",
    "null for numbers": "#figure=matmul&Q=[[[null]]]",
    "another figure": "#figure=tiling&tile=2",
    "markup": "#figure=%3Cimg%20src=x%20onerror=alert(1)%3E",
    "a head too many": "#figure=heads&num_heads=2&head=3",
    "a head below 0": "#figure=heads&num_heads=2&head=-1",
    "a head by another name": "#figure=heads&num_heads=2&head=%22none%22",
    "a head that is true": "#figure=heads&num_heads=2&head=true",
    "two words of five": "#figure=block&order=[0,1]",
    "a word twice": "#figure=block&order=[0,1,2,3,3]",
    "a word that is null": "#figure=block&order=[0,1,2,3,null]",
    "an order by name": "#figure=block&order=%22reversed%22",
    "an order of no list": "#figure=block&order={}",
    "values of other points": "#figure=regression&values=[1,2]",
    "one value": "#figure=regression&values=3",
    "a number for a word": "#figure=live&word=5",
    "two words": "#figure=live&word=%22a%20b%22",
    "a word cut short": "#figure=live&word=}",
    "a head that there is not": "#figure=live&off=[[%22cross%22,0,9]]",
    "a head of no layer": "#figure=language_model&off=[[9,9]]",
    "heads of no list": "#figure=language_model&off=5",
    "a prompt of no words": "#figure=language_model&prompt=5",
    "a prompt that is not known": "#figure=language_model&prompt=%22bring%20piano%22",
}


def kind_of(address: str) -> str:
    """The kind of figure that an address is about, or another where that has no such figure."""
    found = re.match(r"#figure=(\w+)&", address)
    return found[1] if found and found[1] != "tiling" else "masking"


@pytest.mark.parametrize("kind", sorted(set(map(kind_of, BROKEN.values()))))
def test_an_address_that_cannot_be_shown_gets_one_sentence_and_the_opening_state(
    kind: str, stage: Stage
) -> None:
    page = stage.show(FIGURES[kind](), reduced_motion="reduce")
    opened = readings(page)
    for wrong, at in BROKEN.items():
        if kind_of(at) == kind:
            visit(page, at)
            note = page.locator(".af-note").text_content() or ""
            assert re.fullmatch(r"The address .{10,200}\.", note), wrong
            assert readings(page) == opened, wrong
    page.reload()  # with the last of them
    expect(page.locator(".af-note")).to_have_text(note)
    assert readings(page) == opened


@pytest.mark.parametrize("at", ["", "#a-heading", "#figure", "#fill=%22after%22"])
def test_other_addresses_are_none_of_a_figures_business(at: str, stage: Stage) -> None:
    page = stage.show(MaskingFigure(), at=at)
    note = page.locator(".af-note")
    if at != "#figure":
        assert note.text_content() == ""


def test_an_address_reaches_the_second_figure_of_a_kind_alone_and_follows_links(
    stage: Stage,
) -> None:
    page = stage.show(MaskingFigure(), MaskingFigure(), at="#figure=masking-2&fill=%22after%22")
    chosen = page.locator("input[name=fill]:checked")
    assert [chosen.nth(i).input_value() for i in range(2)] == ["-inf", "after"]
    page.evaluate("location.hash = '#figure=masking&fill=%221e-6%22'")
    expect(chosen.first).to_have_value("1e-6")


@pytest.mark.parametrize(
    ("typed", "shown"), [("5", "5"), ("−2,5", "−2.5"), (" 0 ", "0"), ("1.23456", "1.235")]
)
def test_a_typed_number_takes_part(typed: str, shown: str, stage: Stage) -> None:
    page = stage.show(MatmulFigure())
    type_into(page, "q 1 1", typed)
    cell = page.locator('[data-key="q 1 1"]')
    expect(cell).to_have_text(shown)
    expect(cell).to_be_focused()
    number = float(shown.replace("−", "-"))
    entry = page.locator('[data-key="entry 1 1"]')
    assert float(entry.get_attribute("data-value") or "nan") == pytest.approx(number + 2)


@pytest.mark.parametrize("typed", ["", "abc", "1e9", "NaN", "<b>1</b>", "9" * 400])
def test_what_is_not_a_number_leaves_the_old_one_and_says_so(typed: str, stage: Stage) -> None:
    page = stage.show(MatmulFigure())
    opened = readings(page)
    type_into(page, "q 1 1", typed)
    assert readings(page) == opened
    note = page.locator(".af-note").text_content() or ""
    assert re.fullmatch(
        r"“.{0,21}” is not a number from −1000 to 1000; the old number stays\.", note
    )


def test_escape_leaves_a_number_as_it_was_and_the_keyboard_can_type(stage: Stage) -> None:
    page = stage.show(MaskingFigure())
    opened = readings(page)
    cell = page.locator('[data-key="score 0 0 0"]')
    cell.focus()
    page.keyboard.press("Enter")
    page.keyboard.type("7")
    page.keyboard.press("ArrowRight")  # within the field
    page.keyboard.press("Escape")
    assert readings(page) == opened
    expect(cell).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.type("7")
    page.keyboard.press("Enter")
    expect(cell).to_have_text("7.0")


def test_home_end_and_arrows_walk_a_grid(stage: Stage) -> None:
    page = stage.show(MaskingFigure())
    page.locator('[data-key="score 0 0 1"]').focus()
    focused = page.locator(":focus")
    for press, key in [
        ("End", "score 0 0 3"),
        ("Home", "score 0 0 0"),
        ("ArrowDown", "score 0 1 0"),
        ("Control+End", "score 0 1 3"),
        ("ArrowRight", "score 0 1 3"),
        ("Control+Home", "score 0 0 0"),
    ]:
        page.keyboard.press(press)
        assert focused.get_attribute("data-key") == key


def test_hints_speak_of_what_the_reader_points_with(stage: Stage) -> None:
    for options, is_touch in ((TOUCH, True), ({}, False)):
        page = stage.show(FIGURES["language_model"](), **options)
        summary = page.locator(".af-vocabulary summary").first
        expect(summary).to_have_text(re.compile("^Tap words" if is_touch else "^Click words"))
        hops = page.locator(".af-hops")
        expect(hops).to_have_text(re.compile("^Tap a word" if is_touch else "^Point at a word"))


def test_what_folds_away_has_no_border_of_another_figure(stage: Stage) -> None:
    page = stage.show(FIGURES["language_model"]())
    unfold(page)
    into = page.locator(".af-choosing")
    assert into.evaluate("(node) => getComputedStyle(node).borderTopStyle") == "none"
    assert box_of(into.locator(".af-slider").last).bottom <= box_of(into).bottom + 1


def test_play_steps_to_the_end_stops_and_starts_again(stage: Stage) -> None:
    page = stage.show(TilingFigure())
    stop_the_clock(page)
    page.locator(".af-form").wait_for()
    read = page.locator('.af-slider:has-text("tiles read") .af-value')
    expect(read).to_have_text("2 of 4")
    page.clock.run_for(10_000)
    expect(read).to_have_text("2 of 4")  # nothing plays by itself
    button = page.get_by_role("button", name="Play")
    button.click()
    expect(read).to_have_text("3 of 4")
    page.clock.run_for(900)
    expect(read).to_have_text("4 of 4")
    expect(button).to_be_visible()  # not "Pause": at the end it has stopped
    button.click()  # and begins again
    expect(read).to_have_text("0 of 4")
    page.get_by_role("button", name="Pause").click()
    page.clock.run_for(10_000)
    expect(read).to_have_text("0 of 4")


def test_where_motion_is_unwelcome_each_press_is_one_step(stage: Stage) -> None:
    page = stage.show(TilingFigure(tile=2, step=3), reduced_motion="reduce")
    stop_the_clock(page)
    read = page.locator('.af-slider:has-text("tiles read") .af-value')
    page.get_by_role("button", name="Next step").click()
    page.clock.run_for(10_000)
    expect(read).to_have_text("4 of 16")


def test_a_slider_with_one_stop_is_not_shown(stage: Stage) -> None:
    page = stage.show(HeadsFigure(torch.full((2, 3, 3), 1 / 3)))
    assert page.locator(".af-slider:visible > span:first-child").all_text_contents() == [
        "query position"
    ]
    assert page.locator(".af-predict").count() == 0  # nothing is asked about a reader's own maps


@pytest.mark.parametrize(
    ("kind", "size"), [("matmul", WIDE), ("matmul", PHONE), ("masking", WIDE), ("masking", PHONE)]
)
def test_no_explanation_covers_a_title_or_the_name_of_a_column(
    kind: str, size: dict[str, int], stage: Stage
) -> None:
    page = stage.show(FIGURES[kind](), viewport=size)
    covered = page.evaluate(
        """() => [...document.querySelectorAll(".af-stage [data-at]")].filter((mark) => {
            if (mark.closest("[hidden]")) return false;
            mark.scrollIntoView({ block: "center" });
            mark.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
            const bubble = document.querySelector(".af-reading").getBoundingClientRect();
            return [...document.querySelectorAll(".af-title, .af-head")].some((title) => {
                const at = title.getBoundingClientRect();
                return at.width && bubble.left < at.right && at.left < bubble.right
                    && bubble.top < at.bottom - 4 && at.top < bubble.bottom;
            });
        }).map((mark) => mark.dataset.key)"""
    )
    assert not covered, covered


def test_what_was_tapped_is_explained_until_the_next_tap_or_scroll(stage: Stage) -> None:
    page = stage.show(MatmulFigure(), **TOUCH)
    bubble = page.locator(".af-reading")
    entry = page.locator('[data-key="entry 1 1"]')
    entry.tap()
    expect(bubble).to_be_visible()
    page.evaluate("scrollBy(0, 60)")
    expect(bubble).to_be_hidden()
    entry.tap()
    expect(bubble).to_be_visible()
    page.get_by_role("button", name="Reset").tap()
    expect(bubble).to_be_hidden()


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        (kind, size)
        for kind in ["lookup", "regression", "scoring", "masking", "matmul", "additive"]
        for size in (WIDE, PHONE)
        if (kind, size) != ("matmul", PHONE)  # which has a corner for it: test_phone.py
    ],
)
def test_a_mark_is_explained_beside_it_within_the_figure(
    kind: str, size: dict[str, int], stage: Stage
) -> None:
    page = stage.show(FIGURES[kind](), viewport=size)
    found = page.evaluate(
        """() => [...document.querySelectorAll(".af-stage [data-at]")].filter((mark) => {
            const box = mark.getBoundingClientRect();
            return box.width && box.width < 90 && box.height < 90 && !mark.closest("[hidden]");
        }).map((mark) => {
            mark.scrollIntoView({ block: "center" });
            mark.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
            const bubble = document.querySelector(".af-reading");
            const [at, on] = [bubble, mark].map((node) => node.getBoundingClientRect());
            const all = document.querySelector(".af-form").getBoundingClientRect();
            const apart = (a, b) => Math.max(b.left - a.right, a.left - b.right,
                b.top - a.bottom, a.top - b.bottom);
            return [mark.dataset.key, !bubble.hidden && bubble.textContent.length > 5,
                mark.getAttribute("aria-label").includes(bubble.textContent),
                apart(at, on) > -1, apart(at, on) < 80,
                at.left >= all.left - 1 && at.right <= all.right + 1
                && at.top >= all.top - 1 && at.bottom <= all.bottom + 1];
        })"""
    )
    assert len(found) > 3
    assert [one for one in found if not all(one[1:])] == []
    page.keyboard.press("Escape")
    assert page.locator("[role=status], [aria-live]").count() == 1


@pytest.mark.parametrize(
    "kind",
    [
        *["lookup", "regression", "scoring", "masking", "matmul", "additive"],
        *["scale", "heads", "block", "rotation", "kv_cache", "tiling"],
    ],
)
@pytest.mark.parametrize(("width", "height"), [(677, 664), (390, 788)], ids=["wide", "phone"])
def test_stage_and_controls_are_seen_together(
    kind: str, width: int, height: int, stage: Stage
) -> None:
    # The text column of a screen of 1280 × 720 and a phone of 390 × 844, less the page's header.
    page = stage.show(FIGURES[kind](), viewport={"width": width, "height": height})
    top, bottom = (box_of(page.locator(part).first) for part in (".af-stage", ".af-controls"))
    assert bottom.bottom - top.y <= height


@pytest.mark.parametrize(
    ("kind", "held"), [("scoring", "disc"), ("regression", "disc"), ("regression", "grip")]
)
def test_a_finger_drags_the_point_and_scrolls_the_page_beside_it(
    kind: str, held: str, stage: Stage
) -> None:
    page = stage.show(FIGURES[kind](), **TOUCH)
    plot = box_of(in_middle(page.locator(".af-plot").first))
    opened, top = readings(page), page.evaluate("scrollY")
    swipe(page, (plot.right - 30, plot.bottom - 60), *UP)
    page.wait_for_function("(top) => scrollY > top + 60", arg=top)
    assert readings(page) == opened
    page = stage.show(FIGURES[kind](), **TOUCH)
    disc = box_of(in_middle(page.locator(f".af-{held}").last))
    # The points of a line are too close for large discs; a slider moves them as well.
    assert min(disc.width, disc.height) >= (44 if held == "disc" else 16)
    top, (x, y), aside = page.evaluate("scrollY"), disc.middle, disc.width / 4
    swipe(page, (x + aside, y + aside), (40, -40), (60, -60))
    assert readings(page) != opened
    assert page.evaluate("scrollY") == top


@pytest.mark.parametrize(
    ("kind", "key", "starts"),
    [
        ("lookup", "weight 0", "key "),
        ("lookup", "product 2", "weight "),
        ("scoring", "distance key 3", "k4 at "),
        ("scoring", "distance key 1", "k2 at "),  # near the query, whose disc it lies in
        ("additive", "score 3 4", "query −1.875, key −1.50: score "),
    ],
)
def test_a_finger_reads_a_mark_where_it_is_and_a_mouse_moves_what_comes(
    kind: str, key: str, starts: str, stage: Stage
) -> None:
    page = stage.show(FIGURES[kind](), **TOUCH)
    mark = page.locator(f'[data-key="{key}"]')
    in_middle(mark)
    opened = readings(page)
    page.touchscreen.tap(*middle(mark))
    expect(page.locator(".af-reading")).to_be_visible()
    assert str(page.locator(".af-reading").text_content()).startswith(starts)
    assert readings(page) == opened
    page.get_by_role("button", name="Reset").click()
    assert readings(page) == opened
    in_middle(mark)
    page.mouse.click(*middle(mark))
    assert (readings(page) == opened) is (kind == "lookup" and key.startswith("product"))


def test_the_state_that_python_stores_is_the_one_that_a_link_names() -> None:
    state = MaskingFigure().state()
    assert json.loads(json.dumps(state["scores"])) == state["scores"]
    assert set(state) == {"compare", "data", "fill", "scores", "valid_lens"}
