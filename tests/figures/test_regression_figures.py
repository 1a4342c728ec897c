"""The figures of chapter 1 in a browser: the soft lookup and the regression."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from playwright.sync_api import Page, expect
from stage import (
    TOUCH,
    UP,
    Stage,
    box_of,
    drag,
    in_middle,
    middle,
    readings,
    slide,
    swipe,
    value_of,
)

from attention_book.figures import (
    AdditiveFigure,
    LookupFigure,
    RegressionFigure,
)


@pytest.mark.parametrize(
    ("keys", "values"),
    [(None, None), (torch.tensor([2.0, 0.0, 1.0]), torch.tensor([-3.0, 5.0, 1.0]))],
    ids=["stored", "negative"],
)
def test_the_products_of_a_lookup_end_at_its_answer_and_its_sentence_is_true(
    keys: Any, values: Any, stage: Stage
) -> None:
    page = stage.show(LookupFigure(keys, values), reduced_motion="reduce")
    least, most = (0.0, 40.0) if keys is None else (-3.0, 5.0)
    for at in range(0, 91, 3):
        slide(page, "query", at)
        answer = value_of(page, "answer")
        places, end, box = page.locator(".af-plot").last.evaluate(
            """(plot) => [[...plot.querySelectorAll(".af-product")].map((rect) =>
                ["x", "width"].map((name) => Number(rect.getAttribute(name)))),
                Number(plot.querySelector(".af-end").getAttribute("transform").match(/[-.\\d]+/)[0]),
                [14, Number(plot.getAttribute("viewBox").split(" ")[2]) - 12]]"""
        )
        unit = (box[1] - box[0]) / (most - least)
        reached = box[0] - least * unit
        for k, (x, width) in enumerate(places):
            product = value_of(page, f"product {k}")
            assert min(reached, reached + product * unit) == pytest.approx(x, abs=0.02)
            assert width == pytest.approx(abs(product) * unit, abs=0.02)
            reached += product * unit
        assert reached == pytest.approx(end, abs=0.02)
        terms, said = re.fullmatch(
            r"The query \S+ gets (.*) ≈ (\S+)\.",
            str(page.locator(".af-now").text_content()).replace("−", "-"),
        ).groups()  # type: ignore[union-attr]
        total = 0.0
        for term in terms.split(" + "):
            weight, value = map(float, term.split("·"))
            total += weight * value
        assert total == pytest.approx(answer, abs=0.006)
        assert float(said) == pytest.approx(answer, abs=0.0051)


def values_of(page: Page) -> list[float]:
    return page.locator('[data-key^="value"]').evaluate_all(
        "(nodes) => nodes.map((node) => Number(node.dataset.value))"
    )


def test_the_pointer_moves_one_points_value_and_reset_brings_it_back(stage: Stage) -> None:
    keys, values = torch.arange(5.0), torch.tensor([1.0, 2.0, 0.0, 1.5, 0.5])
    page = stage.show(RegressionFigure(keys, values, width=0.5))
    opened = readings(page)
    query = page.get_by_role("slider", name="query", exact=True).input_value()
    x, y = middle(page.locator('[data-key="value 3"]'))
    page.mouse.click(x + 2, y)
    assert values_of(page) == values.tolist()  # a click chooses a point and does not move it
    slider = page.get_by_role("slider", name="value at key 3.00")
    assert slider.is_visible()
    drag(page, (x, y), (30, 25))
    moved = values_of(page)
    assert moved[3] < 1.2
    assert [*moved[:3], moved[4]] == [1.0, 2.0, 0.0, 0.5]
    assert middle(page.locator('[data-key="value 3"]'))[0] == pytest.approx(x, abs=0.1)
    assert page.get_by_role("slider", name="query", exact=True).input_value() == query
    expect(page.locator(".af-now")).to_have_text(re.compile("1 moved point changes"))
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert values_of(page)[3] > moved[3]
    page.get_by_role("button", name="Reset").click()
    assert readings(page) == opened


#: Where the arrow stands in the plot and on the screen, and the points of the bell.
BELL = """() => {
    const arrow = document.querySelector('[data-key="width"]');
    const plot = arrow.closest("svg");
    const middle = (node) => {
        const box = node.getBoundingClientRect();
        return [box.x + box.width / 2, box.y + box.height / 2];
    };
    const bell = plot.querySelector(".af-bell").getAttribute("d").slice(1).split(/L|H/)
        .map((point) => point.split(",").map(Number)).slice(0, 121);
    const [x, y] = arrow.parentNode.getAttribute("transform").match(/[-.\\d]+/g).map(Number);
    return { x, y, bell, screen: middle(arrow) };
}"""


def test_the_arrow_stays_on_the_bell_and_the_axis_of_weights_within_1(stage: Stage) -> None:
    page = stage.show(RegressionFigure(), reduced_motion="reduce")
    for width in range(12):
        for query in range(0, 61, 5):
            slide(page, "width w", width)
            slide(page, "query", query)
            now = page.evaluate(BELL)
            assert 52 < now["x"] <= 628  # clear of the axis and within the plot
            assert min(y for _, y in now["bell"]) == pytest.approx(12, abs=0.01)  # whole
            left, right = sorted(now["bell"], key=lambda point: (abs(point[0] - now["x"]), point))[
                :2
            ]
            low, high = sorted([left[1], right[1]])
            assert low - 2 <= now["y"] <= high + 2
            tallest = max(
                page.locator('.af-bar[data-key^="weight"]').evaluate_all(
                    "(bars) => bars.map((bar) => Number(bar.getAttribute('height')))"
                )
            )
            assert tallest <= 98.01  # the plot's height
            axis = page.locator(".af-plot").last.locator(".af-axes text[text-anchor=end]")
            assert 0 < float(axis.last.text_content() or "nan") <= 1


def test_the_arrow_is_dragged_from_where_it_stands(stage: Stage) -> None:
    for width, by, expected in (
        (10.0, -3, 10.0),
        (10.0, 3, 10.0),
        (10.0, -0.5, 5.0),  # at half its distance from the query, half the width
        (0.5, 3, 0.5),
        (0.5, 1.0, 1.0),
        (2.0, -0.5, 1.0),
        (0.05, -3, 0.05),
    ):
        page = stage.show(RegressionFigure(width=width), reduced_motion="reduce")
        x, y = page.evaluate(BELL)["screen"]
        distance = x - middle(page.locator('[data-key="guess"]'))[0]
        drag(page, (x + 1, y), (by * distance if isinstance(by, float) else by, 0))
        shown = page.locator('.af-slider:has-text("width w") .af-value').text_content()
        assert float(shown or "nan") == expected


def test_the_arrow_stays_under_the_pointer_and_then_goes_to_its_width(stage: Stage) -> None:
    page = stage.show(RegressionFigure(), reduced_motion="reduce")
    x, y = page.evaluate(BELL)["screen"]
    page.mouse.move(x, y)
    page.mouse.down()
    for by in (7, 60, 130, 200, 250, 40, -25):
        page.mouse.move(x + by, y)
        now = page.evaluate(BELL)
        assert now["screen"][0] == pytest.approx(x + by, abs=1.5)
        left, right = sorted(now["bell"], key=lambda point: abs(point[0] - now["x"]))[:2]
        low, high = sorted([left[1], right[1]])
        assert low - 2 <= now["y"] <= high + 2  # on the bell, too
    page.mouse.up()
    assert value_of(page, "width") in RegressionFigure().data["widths"]
    shown = page.evaluate(BELL)["x"]
    slide(page, "query", 3)
    slide(page, "query", RegressionFigure().data["queries"].index(RegressionFigure().query))
    assert page.evaluate(BELL)["x"] == pytest.approx(shown, abs=0.01)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_thin_lines_show_where_a_moved_point_was_and_what_was_predicted(
    theme: str, stage: Stage
) -> None:
    style = f"<script>document.documentElement.dataset.theme = '{theme}'</script>"
    page = stage.show(RegressionFigure(), before=style, reduced_motion="reduce")
    lines = page.locator(".af-former")
    assert not lines.get_attribute("d")
    drag(page, middle(page.locator('[data-key="value 9"]')), (0, -50))
    stroke, width = lines.evaluate(
        "(node) => [getComputedStyle(node).stroke, getComputedStyle(node).strokeWidth]"
    )
    assert stroke.startswith("rgb(")
    assert 0 < float(width.removesuffix("px")) < 2
    curve = page.locator(".af-curve").get_attribute("d")
    path = str(lines.get_attribute("d"))
    assert path.count("M") == 2  # the old curve, and from the old place of the point
    assert path.split("M")[1] != str(curve)[1:]


def test_a_tap_on_a_point_chooses_and_reads_that_point(stage: Stage) -> None:
    page = stage.show(RegressionFigure(), **TOUCH)
    in_middle(page.locator(".af-stage"))
    points = page.locator(".af-point")
    for k, key in enumerate(RegressionFigure().data["keys"]):
        x, y = middle(points.nth(k))
        page.touchscreen.tap(x, y)
        said = f"key {key:.2f}: value".replace("-", "−")
        expect(page.locator(".af-reading")).to_have_text(re.compile(f"^{re.escape(said)}"))
        chosen = page.locator('[data-key^="value"][aria-pressed="true"]')
        assert chosen.get_attribute("data-key") == f"value {k}"
    # A place between two points belongs to the nearer one.
    assert (
        page.evaluate(
            """() => {
            const middle = (node) => {
                const box = node.getBoundingClientRect();
                return [box.x + box.width / 2, box.y + box.height / 2];
            };
            const points = [...document.querySelectorAll(".af-point")].map(middle);
            const grips = [...document.querySelectorAll(".af-grip")];
            const spots = points.flatMap(([x, y]) => [0, 1, 2, 3, 4, 5].map((i) =>
                [x + 8 * Math.cos(i + 0.3), y + 8 * Math.sin(i + 0.3)]));
            return spots.filter((spot) => {
                const far = points.map(([x, y]) => Math.hypot(x - spot[0], y - spot[1]));
                const found = document.elementFromPoint(...spot);
                const k = Number(found.dataset?.key?.match(/^value (\\d+)$/)?.[1] ?? NaN);
                return grips.includes(found) && far[k] > Math.min(...far) + 0.7;
            }).length;
        }"""
        )
        == 0
    )


def test_the_numbers_in_the_regression_are_those_of_its_sentence(stage: Stage) -> None:
    page = stage.show(RegressionFigure(), reduced_motion="reduce")
    for width, query in ((0, 7), (4, 20), (11, 60), (2, 33)):
        slide(page, "width w", width)
        slide(page, "query", query)
        sentence = str(page.locator(".af-now").text_content())
        number, weight = page.locator(
            ".af-plot text[aria-hidden=true]:not(.af-mean-name)"
        ).all_text_contents()
        name, number = number.split()
        assert name == "prediction"
        assert f"the prediction is {number} and the largest weight is {weight}." in sentence
        assert page.locator(".af-scene").inner_text().count("prediction is") == 1
        assert page.locator(".af-fact").count() == 0


def test_the_curve_before_a_move_is_named_and_the_sentence_takes_its_two_lines(
    stage: Stage,
) -> None:
    page = stage.phone(RegressionFigure(), 360, 640)
    before = page.locator(".af-mean-name", has_text="before")
    expect(before).to_be_hidden()
    room = box_of(page.locator(".af-now")).height
    page.get_by_role("slider").nth(2).press("ArrowRight")
    expect(before).to_be_visible()
    expect(page.locator(".af-now")).to_contain_text("; 1 moved point changes it by ")
    assert box_of(page.locator(".af-now")).height == pytest.approx(room, abs=1)
    number = box_of(page.locator(".af-plot .af-fact-name").first)  # above all points
    assert number.bottom < min(box_of(one).y for one in page.locator(".af-point").all())


def test_no_bar_of_a_weight_is_wider_than_the_bell(stage: Stage) -> None:
    page = stage.show(RegressionFigure(width=0.05))
    widest = "(all) => Math.max(...all.map((one) => one.width.baseVal.value))"
    assert page.locator(".af-bar").evaluate_all(widest) < 6
    slide(page, "width w", 11)
    assert page.locator(".af-bar").evaluate_all(widest) == 6


def test_the_wanted_answers_are_bracketed_in_front_of_the_bar(stage: Stage) -> None:
    page = stage.show(LookupFigure())
    slide(page, "query", 90)
    band = page.locator(".af-band")
    assert page.locator(".af-band-name").text_content() == "33–37"
    assert band.evaluate(
        """(band) => [...document.querySelectorAll(".af-product")].every((product) =>
            product.compareDocumentPosition(band) & Node.DOCUMENT_POSITION_FOLLOWING)"""
    )
    for name in ("weight", "value"):
        assert page.get_by_text(name, exact=True).first.is_visible()


def test_a_step_glides_a_drag_does_not_and_nothing_moves_where_motion_is_unwelcome(
    stage: Stage,
) -> None:
    count = "document.getAnimations().filter((one) => one.playState === 'running').length"
    page = stage.show(RegressionFigure())
    assert page.evaluate(count) == 0  # it opens where it is
    page.get_by_role("slider", name="query", exact=True).focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate(count) > 3
    ends = page.evaluate("document.getAnimations().map((one) => one.effect.getTiming().duration)")
    assert {150 <= end <= 350 for end in ends} == {True}
    x, y = middle(page.locator('[data-key="guess"]'))
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y, steps=3)
    assert page.evaluate(count) == 0
    page.mouse.up()
    page = stage.show(RegressionFigure(), reduced_motion="reduce")
    page.get_by_role("slider", name="query", exact=True).focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate(count) == 0


def test_a_finger_brings_the_query_to_an_empty_place(stage: Stage) -> None:
    page = stage.show(LookupFigure(), **TOUCH)
    opened = readings(page)
    box = box_of(page.locator(".af-plot").first)
    page.touchscreen.tap(box.x + 30, box.bottom * 0.6)
    assert readings(page) != opened


def test_a_finger_that_scrolls_from_a_slider_moves_nothing(stage: Stage) -> None:
    page = stage.show(RegressionFigure(), **TOUCH | {"viewport": {"width": 390, "height": 500}})
    slider = page.get_by_role("slider", name="width w")
    slider.scroll_into_view_if_needed()
    before, top, box = slider.input_value(), page.evaluate("scrollY"), box_of(slider)
    rested = "new Promise((done) => addEventListener('scrollend', done, { once: true }))"
    page.evaluate(f"() => {{ window.rested = {rested}; }}")
    swipe(page, (box.x + 0.9 * box.width, box.middle[1]), *UP)
    page.evaluate("() => window.rested.then(() => true)")  # a tap in between would only halt it
    assert page.evaluate("scrollY") > top + 50
    assert slider.input_value() == before
    assert value_of(page, "width") == 0.5
    page.touchscreen.tap(*middle(slider))  # a tap moves it as ever
    assert slider.input_value() != before


def test_nothing_lies_on_what_is_dragged_or_pops_up_under_a_pointer_that_rests(
    stage: Stage,
) -> None:
    page = stage.show(RegressionFigure(), reduced_motion="reduce")
    said = page.locator(".af-reading")
    x, y = middle(page.locator('[data-key="guess"]'))
    page.mouse.move(x, y)
    assert said.is_visible()
    page.mouse.down()
    page.mouse.move(x + 40, y, steps=4)
    assert said.is_hidden()
    page.mouse.up()
    page.mouse.move(*middle(page.locator('[data-key="guess"]')))
    assert said.is_visible()
    page = stage.show(AdditiveFigure(), reduced_motion="reduce")
    said, more = page.locator(".af-reading"), page.get_by_role("button", name="add")
    x, y = middle(more)
    page.mouse.click(x, y)
    under = "([x, y]) => Boolean(document.elementFromPoint(x, y).closest('[data-at]'))"
    page.wait_for_function(under, arg=[x, y])  # the new unit is where the button was
    assert said.is_hidden()
    page.mouse.move(x + 3, y)
    assert said.is_visible()


def test_the_arrow_reaches_the_largest_width_and_says_where_it_does_not_fit(stage: Stage) -> None:
    page = stage.show(RegressionFigure(), reduced_motion="reduce")
    page.locator(".af-predict input").nth(1).check()
    drag(page, page.evaluate(BELL)["screen"], (300, 0), (600, 0))
    assert value_of(page, "width") == 10.0
    expect(page.locator(".af-verdict")).to_contain_text("That is right.")
    arrow = page.locator('[data-key="width"]')
    assert "farther from the query than the picture goes" in str(arrow.get_attribute("aria-label"))
    slide(page, "width w", 4)
    assert "at this distance from the query" in str(arrow.get_attribute("aria-label"))
