"""The rotation: the package's own at every stop, and what is dragged, on a phone too."""

from __future__ import annotations

import json
import math
from itertools import product

import pytest
import torch
from playwright.sync_api import Page, expect
from stage import PHONES, Stage, box_of, drag, one_screen, pick, readings, swipe, value_of
from sweep import SWEEP

from attention_book import rotary_embedding
from attention_book.figures import RotationFigure
from attention_book.figures.rotation import scaling


def places(page: Page) -> list[int]:
    """Where query and key are."""
    inputs = page.locator('input:is([name="query"], [name="key"])')
    return [int(inputs.nth(i).input_value()) for i in range(2)]


def pitch(page: Page) -> float:
    """Pixels from one position to the next."""
    first, last = (box_of(page.locator(".af-position").nth(i)) for i in (0, 11))
    return (last.x - first.x) / 11


def test_the_score_of_every_two_positions_is_that_of_the_package_in_every_setting(
    stage: Stage,
) -> None:
    page = stage.show(RotationFigure(), reduced_motion="reduce")
    stops = [*product(range(12), range(12), range(3), ["all", "slow"])]
    moves = [
        [["set", "query", q, q], ["set", "key", k, k], ["set", "stretch", i, [1, 2, 4][i]],
         ["set", "pairs", 0, pairs]]
        for q, k, i, pairs in stops
    ]  # fmt: skip
    seen = page.locator("attention-figure").evaluate(SWEEP, json.loads(json.dumps(moves)))
    x = torch.tensor([1.0, 1, 0, 0], dtype=torch.float64).expand(1, 12, 4)
    for (q, k, i, pairs), found in zip(stops, seen, strict=True):
        turned = rotary_embedding(x, base=100.0, scaling=scaling([1, 2, 4][i], pairs))[0]
        shown = float(found["numbers"][f"score {abs(q - k)}"])
        assert shown == pytest.approx((turned[q] @ turned[k]).item(), abs=1e-6)


def test_the_bracket_spins_both_arrows_and_leaves_wedges_and_score(stage: Stage) -> None:
    page = stage.show(RotationFigure(), reduced_motion="reduce")
    still = """() => [".af-opening", ".af-now-dot"].flatMap((name) =>
        [...document.querySelectorAll(name)].map((node) =>
            ["d", "cx", "cy", "data-value"].map((about) => node.getAttribute(about)).join()))"""
    spin = """() => [...document.querySelectorAll(".af-hand")].map((node) =>
        node.style.transform)"""
    before, turned = page.evaluate(still), page.evaluate(spin)
    drag(page, box_of(page.locator(".af-both")).middle, (5 * pitch(page), 0))
    assert places(page) == [9, 6]
    assert page.evaluate(still) == before
    assert all(a != b for a, b in zip(turned, page.evaluate(spin), strict=True))
    drag(page, box_of(page.locator(".af-both")).middle, (9 * pitch(page), 0))
    assert places(page) == [11, 8]  # the pair stops at the end and keeps its distance


def test_grips_go_where_they_are_dragged_and_the_nearer_one_comes_to_a_tile(stage: Stage) -> None:
    page = stage.show(RotationFigure(), reduced_motion="reduce")
    drag(page, box_of(page.locator(".af-carries.af-key")).middle, (3 * pitch(page), 0))
    assert places(page) == [4, 4]
    assert value_of(page, "angle 0") == value_of(page, "angle 1") == 0
    query, key = (
        box_of(page.locator(f".af-carries.af-{name} .af-disc")) for name in ("query", "key")
    )
    assert key.middle[0] - query.middle[0] >= 24  # both can be taken at one position
    drag(page, query.middle, (4 * pitch(page), 0))
    assert places(page) == [8, 4]
    page.locator(".af-position").nth(11).click()
    page.locator(".af-position").nth(1).click()
    assert places(page) == [11, 1]


def test_a_longer_distance_is_new_to_the_slow_pair_until_its_turns_are_slowed(
    stage: Stage,
) -> None:
    page = stage.show(RotationFigure(query=8, key=0), reduced_motion="reduce")
    dials, said = page.locator("g:has(> .af-rim)"), page.locator(".af-now")
    expect(said).to_have_text("Query at 8, key at 0: fast 98° apart, slow 46°; score 0.55.")
    assert page.locator(".af-new").count() == 0
    page.locator('input[name="query"]').press("ArrowRight")
    assert page.locator(".af-new").count() == 1
    expect(dials.nth(1)).to_have_class("af-new")
    expect(said).to_contain_text("In training, the slow arrows were never this far apart.")
    page.locator('input[name="stretch"][value="2"]').check()
    assert page.locator(".af-new").count() == 0
    expect(dials.nth(0)).to_have_class("af-slower")
    expect(said).to_contain_text("neighbours are 29° apart; in training it was 57°.")
    page.locator('input[name="pairs"][value="slow"]').check()
    assert page.locator(":is(.af-new, .af-slower)").count() == 0
    assert value_of(page, "angle 1") == pytest.approx(9 * 0.05 * 180 / torch.pi)


def test_the_pair_moves_by_keyboard_and_is_said_to_be_somewhere(stage: Stage) -> None:
    page = stage.show(RotationFigure())
    both = page.get_by_role("slider", name="both, from", exact=True)
    page.locator(".af-predict input").nth(2).check()
    verdict = page.locator(".af-verdict")
    both.focus()
    for _ in range(3):
        expect(verdict).to_have_text("Noted. Now drag the bracket on by three.")
        page.keyboard.press("ArrowRight")
    expect(verdict).to_contain_text("That is right.")
    assert places(page) == [7, 4]
    expect(both).to_have_attribute("aria-valuetext", "4 to 7")
    page.keyboard.press("End")
    assert places(page) == [11, 8]


@pytest.mark.parametrize(("width", "height"), PHONES)
def test_on_a_phone_all_is_in_one_screen_and_no_tap_moves_it(
    width: int, height: int, stage: Stage
) -> None:
    page = stage.phone(RotationFigure(), width, height)
    targets = ".af-both rect, .af-carries .af-disc, .af-position rect, .af-near, .af-form label"
    stays = one_screen(page, targets)
    page.locator(".af-predict input").nth(1).check()
    stays()
    swipe(page, box_of(page.locator(".af-both")).middle, (30, 0), (5 * pitch(page), 0))
    assert places(page) == [9, 6]
    expect(page.locator(".af-judged.af-answer")).to_have_count(1)
    swipe(page, box_of(page.locator(".af-carries.af-key")).middle, (-40, 0), (-300, 0))
    page.locator('input[name="stretch"][value="4"]').tap()
    stays()


def test_on_a_phone_the_sliders_are_folded_and_a_finger_beside_the_grips_scrolls(
    stage: Stage,
) -> None:
    page = stage.phone(RotationFigure(), 360, 640)
    slider = page.get_by_role("slider", name="query at")
    expect(slider).to_be_hidden()
    page.locator("summary").first.tap()
    expect(slider).to_be_visible()
    page.evaluate("scrollTo(0, 0)")
    opened = readings(page)
    swipe(
        page,
        box_of(page.locator(".af-opening").first).middle,
        *[(0, -12 * i) for i in range(1, 11)],
    )
    page.wait_for_function("scrollY > 60")
    assert readings(page) == opened


def test_the_shade_is_named_between_the_dials_and_touches_neither(stage: Stage) -> None:
    page = stage.phone(RotationFigure(query=11, key=0), 360, 640)
    for line in page.locator(".af-shade-name text").all():
        name = box_of(line)
        for other in page.locator(".af-rim, .af-apart").all():
            rim = box_of(other)
            x = min(max(rim.middle[0], name.x), name.right)
            y = min(max(rim.middle[1], name.y + 3), name.bottom - 3)  # its letters
            is_round = other.evaluate("(node) => node.matches('circle')")
            if is_round:
                assert math.dist((x, y), rim.middle) > rim.width / 2 + 2
            else:
                assert name.x >= rim.right or name.right <= rim.x or name.bottom - 3 <= rim.y + 3


@pytest.mark.parametrize("narrow", [True, False])
def test_each_curve_is_named_beside_itself_and_over_no_other(narrow: bool, stage: Stage) -> None:
    page = stage.phone(RotationFigure(), 360, 640) if narrow else stage.show(RotationFigure())
    page.emulate_media(reduced_motion="reduce")
    for stretch, pairs in product("124", ("all", "slow")):
        page.locator(f'input[name="stretch"][value="{stretch}"]').check()
        page.locator(f'input[name="pairs"][value="{pairs}"]').check()
        ways = page.locator(".af-curve").evaluate_all(
            """(curves) => [...document.querySelectorAll(".af-name")].map((name) => {
                const { x, y, width, height } = name.getBBox();
                const middle = y + height / 2;
                return curves.map((curve) => Math.min(...Array.from({ length: 800 }, (_, i) =>
                    curve.getPointAtLength((i / 799) * curve.getTotalLength()))
                    .filter((point) => point.x >= x && point.x <= x + width)
                    .map((point) => Math.abs(point.y - middle))));
            })"""
        )
        for own, way in enumerate(ways):
            assert way[own] == min(way) <= 18
            assert min(way) >= 6  # half the height of its letters


def test_ticks_that_would_fuse_are_thinned_out(stage: Stage) -> None:
    page = stage.show(RotationFigure())
    drawn = page.locator(".af-tick:not([hidden])")
    assert drawn.count() == 24  # 12 on each dial
    pick(page, "stretch", "4")
    assert drawn.count() == 12 + 3  # every fourth on the slow one
