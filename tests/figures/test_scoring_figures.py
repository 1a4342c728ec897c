"""The figures of scores in a browser: five functions, additive scores, and the scale."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import pytest
import torch
from playwright.sync_api import Locator, Page, expect
from stage import (
    FIGURES,
    PHONE,
    PHONES,
    TOUCH,
    UP,
    WIDE,
    Stage,
    box_of,
    in_middle,
    middle,
    one_screen,
    pick,
    readings,
    slide,
    swipe,
)
from torch import Tensor

from attention_book.figures import (
    AdditiveFigure,
    ScaleFigure,
    ScoringFigure,
)
from attention_book.figures.additive import surface
from attention_book.figures.base import example
from attention_book.figures.scoring import five_scores


def best_scores(size: int, name: str, query: int) -> tuple[Tensor, int]:
    """The scores of one query of the example figure, and its best key."""
    q, k = example(200, 1024, seed=1)[:, :size], example(10, 1024, seed=2)[:, :size]
    row = k @ q[query] / (size**0.5 if name == "scaled" else 1)
    return row, int(row.argmax())


def test_the_curve_of_the_scale_figure_is_the_weight_of_the_best_key(stage: Stage) -> None:
    figure = ScaleFigure()
    curve = stage.show(figure).locator(".af-sigmoid").get_attribute("d") or ""
    points = [[*map(float, point.split(","))] for point in curve[1:].split("L")]
    x, y = torch.tensor(points, dtype=torch.float64).T
    for size, name in ((4, "plain"), (64, "plain"), (1024, "scaled")):
        scores, best = best_scores(size, name, figure.data["query"])
        others = torch.cat([scores[:best], scores[best + 1 :]])
        leads = torch.linspace(-8, 8, 161, dtype=torch.float64)
        assert torch.allclose((x - x[0]) / (x[-1] - x[0]), (leads + 8) / 16, atol=1e-4)
        rows = others.repeat(161, 1)  # the other keys keep their scores
        raised = torch.cat([leads[:, None] + others.logsumexp(dim=0), rows], dim=1)
        weights = torch.softmax(raised, dim=-1)[:, 0]
        height = (y[0] - y) / (y[0] - y[-1]) * (weights[-1] - weights[0]) + weights[0]
        assert torch.allclose(height, weights, atol=2e-4)


@pytest.mark.parametrize(("width", "box"), [(1000, (40, 468, 192)), (390, (40, 186, 148))])
def test_the_dots_on_the_curve_are_as_high_as_their_weights(
    width: int, box: tuple[int, int, int], stage: Stage
) -> None:
    figure = ScaleFigure()
    page = stage.show(figure, viewport={"width": width, "height": 900})
    page.locator("summary").first.click()
    left, right, bottom = box  # of the curve's axes, whose weight 1 is a tenth below their top
    tall = (bottom - 12) / 1.1
    for i, size in enumerate(figure.data["stops"]):
        slide(page, "d_k", i)
        for name in ("plain", "scaled"):
            scores, best = best_scores(size, name, figure.data["query"])
            weight = torch.softmax(scores, dim=-1)[best].item()
            near = page.locator(f'[data-key="{name} slope"]')
            cell = page.locator(f'[data-key="{name} weight {best}"]')
            assert near.get_attribute("data-pair") == cell.get_attribute("data-pair")
            dot = page.locator(f".af-best .af-dot.af-{name}")
            x, y = (float(dot.get_attribute(part) or "nan") for part in ("cx", "cy"))
            assert (bottom - y) / tall == pytest.approx(weight, abs=1e-5)
            lead = torch.logit(torch.tensor(weight, dtype=torch.float64)).clamp(-8, 8).item()
            assert x == pytest.approx(left + (lead + 8) / 16 * (right - left), abs=1e-2)
            named = page.locator(".af-best .af-name", has_text=name).text_content()
            assert named == (f"{name}, further out" if abs(lead) == 8 else name)
            stroke = page.locator(f".af-tangent.af-{name}").get_attribute("d") or ""
            (x_1, y_1), (x_2, y_2) = (map(float, end.split(",")) for end in stroke[1:].split("L"))
            assert x_1 < x <= x_2 <= right
            rise = (y_1 - y_2) / tall / ((x_2 - x_1) / (right - left) * 16)
            assert rise == pytest.approx(weight * (1 - weight), abs=2e-3)
    cell.hover()
    linked = page.locator(".af-linked[data-key]").evaluate_all(
        "(all) => all.map((one) => one.dataset.key)"
    )
    assert sorted(linked) == ["scaled slope", f"scaled weight {best}"]


@pytest.mark.parametrize("d_k", [1, 64, 1024])
def test_both_histograms_and_both_gradients_are_drawn_on_one_axis(d_k: int, stage: Stage) -> None:
    figure = ScaleFigure(d_k=d_k)
    page = stage.show(figure)
    outline = page.locator("path.af-outline").get_attribute("d") or ""
    heights = [132 - float(y) for y in re.findall(r"V([\d.]+)H", outline)]
    bars = page.locator(".af-spread [data-at] > .af-bar.af-scaled")
    own = bars.evaluate_all("(all) => all.map((bar) => Number(bar.getAttribute('height')))")
    at = figure.data["stops"].index(d_k)
    for name, found in (("plain", heights), ("scaled", own)):  # 120 units are a share of ½
        assert found == pytest.approx([240 * x for x in figure.data[name][at]["shares"]], abs=1e-3)
    tall = "(all) => all.map((bar) => bar.getBBox().height)"
    plain, scaled = page.locator(".af-graded .af-bar").evaluate_all(tall)
    seen = [figure.data[name][at]["gradient"] for name in ("plain", "scaled")]
    assert plain / scaled == pytest.approx(seen[0] / seen[1], abs=1e-4)
    line = page.locator(".af-graded .af-mean").evaluate("(line) => line.getBBox().y")
    assert (192 - line) / scaled == pytest.approx(1 / 4, abs=1e-4)
    numbers = page.locator(".af-graded .af-over:not(.af-of-line)")
    assert numbers.all_text_contents() == [f"{number:.3f}" for number in seen]
    for number, bar in zip(numbers.all(), page.locator(".af-graded .af-bar").all(), strict=True):
        foot, top = (float(part.get_attribute("y") or "nan") for part in (number, bar))
        crosses = line - 3 < top < line + 20  # where the line would cross it, it stands above that
        assert foot == pytest.approx((line if crosses else top) - 5, abs=1e-3)
    assert crosses_none(page)


def crosses_none(page: Page) -> bool:
    """Whether the line of a quarter crosses neither a number nor its own name."""
    line = box_of(page.locator(".af-graded .af-mean")).y
    texts = [box_of(text) for text in page.locator(".af-graded .af-over").all()]
    # Around its letters a text has an edge in the colour of the paper.
    return all(not text.y + 6 < line < text.bottom - 6 for text in texts)


@pytest.mark.parametrize("place", range(11))
def test_on_a_phone_the_line_of_a_quarter_is_named_beside_it_and_crosses_no_number(
    place: int, stage: Stage
) -> None:
    page = stage.phone(ScaleFigure(d_k=2**place), *PHONES[0])
    assert crosses_none(page)
    number, _, name = (box_of(text) for text in page.locator(".af-graded .af-over").all())
    line = box_of(page.locator(".af-graded .af-mean")).y
    assert -4 <= name.y - line <= 4  # with the edge around its letters
    edges = 8  # of both, around their letters
    assert (
        number.right - edges <= name.x or number.bottom - edges <= name.y or name.bottom <= number.y
    )


def test_no_reading_covers_the_rise_of_the_curve(stage: Stage) -> None:
    for size in (WIDE, PHONE):
        page = stage.show(ScaleFigure(), viewport=size)
        for i, name in ((2, "plain"), (2, "scaled"), (10, "plain"), (10, "scaled")):
            slide(page, "d_k", i)
            page.locator(f'[data-key="{name} slope"]').hover()
            reading = box_of(page.locator(".af-reading"))
            curve = box_of(page.locator(".af-sigmoid"))
            assert reading.y >= curve.bottom


def test_the_scale_figure_says_how_few_numbers_its_variance_is_of(stage: Stage) -> None:
    for figure, sample in (
        (ScaleFigure(), "200 queries and 10 keys"),
        (ScaleFigure(torch.randn(6, 8), torch.randn(3, 8)), "6 queries and 3 keys"),
    ):
        note = stage.show(figure).locator(".af-small-print").last
        expect(note).to_have_text(re.compile(f"^The variance is measured on {sample}[.]"))


def test_keys_that_score_the_same_are_all_named(stage: Stage) -> None:
    figure = FIGURES["additive"]
    for settings, named, best in [
        ({"hidden": 6, "query": 3.0}, "3.00", "at keys −3.00 and 3.00, which score the same."),
        ({"hidden": 2, "query": 1.5}, "1.50", "at key 1.50."),
        (
            {"hidden": 1, "scale": 8.0, "query": 1.875},
            "1.875",
            "at 13 keys from −3.00 to 1.50, which",
        ),
    ]:
        made = figure(**settings)
        page = stage.show(made)
        sentence = page.locator(".af-now").text_content() or ""
        query = f"Query {named} scores highest "
        assert query in sentence
        assert best in sentence
        assert made.describe().endswith(sentence)


def test_the_focus_stays_in_the_figure_when_the_last_unit_was_added(stage: Stage) -> None:
    page = stage.show(FIGURES["additive"](hidden=5))
    page.get_by_role("button", name="Add a unit").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("slider", name="hidden units")).to_be_focused()


@pytest.mark.parametrize("part", [".af-slider-knob", ".af-cursor"])
@pytest.mark.parametrize("side", [3, None])
def test_the_frame_of_a_query_is_dragged_while_the_pointer_moves(
    part: str, side: int | None, stage: Stage
) -> None:
    page = stage.show(FIGURES["additive"]())
    value = page.get_by_role("slider", name="query of the curve")
    box = box_of(page.locator(part))
    x = box.x + (side or box.width / 2)
    page.mouse.move(x, box.y + box.height / 2)
    page.mouse.down()
    page.mouse.move(x + 48, box.y + 20, steps=4)
    moved = float(value.get_attribute("aria-valuetext") or "nan")
    assert moved >= 0.75  # before the button is let go
    page.mouse.up()
    assert float(value.get_attribute("aria-valuetext") or "nan") == moved


@pytest.mark.parametrize(
    ("part", "aside"), [(".af-slider-reach", 0), (".af-cursor", 0), (".af-cursor", -16)]
)
def test_a_finger_drags_the_frame_of_a_query(part: str, aside: int, stage: Stage) -> None:
    page = stage.show(FIGURES["additive"](), **TOUCH)
    box, top = box_of(in_middle(page.locator(part))), page.evaluate("scrollY")
    if part == ".af-slider-reach":
        assert min(box.width, box.height) >= 24
    x, y = box.middle
    swipe(page, (x + aside, y), (30, 0), (60, -20))
    value = page.get_by_role("slider", name="query of the curve")
    assert float(value.get_attribute("aria-valuetext") or "nan") >= 0.75
    assert page.evaluate("scrollY") == top


def test_a_finger_that_moves_upright_from_the_frame_scrolls_the_page(stage: Stage) -> None:
    page = stage.show(FIGURES["additive"](), **TOUCH)
    frame = in_middle(page.locator(".af-cursor"))
    opened, top = readings(page), page.evaluate("scrollY")
    swipe(page, middle(frame), *UP)
    page.wait_for_function("(top) => scrollY > top + 60", arg=top)
    assert readings(page) == opened


def test_a_unit_has_the_colours_of_the_sum(stage: Stage) -> None:
    page = stage.show(FIGURES["additive"]())  # one unit: the sum is that unit
    ends = page.locator(".af-tile stop").evaluate_all(
        """(stops) => [stops[0], stops[24]].map((stop) => {
            const { stopColor, stopOpacity } = stop.style;
            return [stopColor, Number(stopOpacity)];
        })"""
    )
    squares = page.locator(".af-square").evaluate_all(
        """(squares) => squares.map((square) => [Number(square.dataset.value),
            square.classList.contains("af-below"), Number(square.getAttribute("fill-opacity"))])"""
    )
    for (colour, opacity), (score, is_below, shade) in zip(
        ends, (min(squares), max(squares)), strict=True
    ):
        assert abs(score) == pytest.approx(0.5, abs=1e-3)
        assert colour == ("var(--af-warm)" if is_below else "var(--af-strong)")
        assert opacity == pytest.approx(shade, abs=0.006)
        # Of the largest that two units reach: adding the second changes no colour.
        assert shade == pytest.approx(abs(score), abs=0.004)


def test_a_query_is_the_same_number_in_its_slider_its_sentence_and_its_readings(
    stage: Stage,
) -> None:
    for query, shown in ((-1.125, "−1.125"), (0.75, "0.75"), (0.0, "0.00")):
        page = stage.show(FIGURES["additive"](query=query))
        slider = page.get_by_role("slider", name="query of the curve")
        assert slider.get_attribute("aria-valuetext") == shown
        assert f"Query {shown} scores" in str(page.locator(".af-now").text_content())
        slice_ = page.locator('[data-key="slice 0"]').get_attribute("aria-label")
        assert str(slice_).startswith(f"query {shown}, key −3.00: ")


def test_the_formula_of_a_unit_has_its_signs_between_its_terms(stage: Stage) -> None:
    page = stage.show(FIGURES["additive"](hidden=6))
    said = page.locator(".af-map").evaluate_all("(maps) => maps.map((map) => map.reading)")
    assert said[1] == "unit 2: −0.50 · tanh(2.00 q − 2.00 k − 2.00)"
    assert said[2] == "unit 3: 0.50 · tanh(2.00 q + 2.00 k + 2.00)"
    assert not any("+ −" in text for text in said)


def test_a_unit_and_its_curve_have_one_colour_and_light_up_together(stage: Stage) -> None:
    page = stage.show(FIGURES["additive"](hidden=6))
    hues = "(nodes) => nodes.map((node) => node.style.getPropertyValue('--hue'))"
    names = page.locator(".af-unit-name").evaluate_all(hues)
    assert page.locator(".af-unit").evaluate_all(hues) == names
    assert len(set(names)) == 6
    page.locator('[data-key="unit 3"]').hover()
    linked = page.locator(".af-unit").evaluate_all(
        "(nodes) => nodes.map((node) => node.classList.contains('af-linked'))"
    )
    assert linked == [j == 3 for j in range(6)]


def test_the_ridge_is_flat_from_the_scale_at_which_three_keys_score_0_99(stage: Stage) -> None:
    scores = AdditiveFigure(hidden=2)
    at = scores.data["grid"].index(scores.query)
    page = stage.show(AdditiveFigure(), reduced_motion="reduce")
    slide(page, "hidden units", 1)
    for i, scale in enumerate(scores.data["scales"]):
        slide(page, "scale of W_q, W_k", i)
        flat = int((surface(scores.data, 2, scale)[at] >= 0.99).sum())
        assert (flat == 3) == (scale >= 4)
        met = "Challenge met: " if flat == 3 else "Challenge: "
        expect(page.locator(".af-challenge")).to_have_text(re.compile(f"^{met}"))


def test_colours_and_curve_end_at_what_the_units_reach_and_only_adding_a_unit_changes_it(
    stage: Stage,
) -> None:
    scores = AdditiveFigure()
    page = stage.show(scores, viewport={"width": 677, "height": 900})
    legend, ends = page.locator(".af-legend").first, page.locator(".af-axes text")
    for units in range(1, 5):
        most = max(
            surface(scores.data, max(units, 2), scale).abs().max().item()
            for scale in scores.data["scales"]
        )
        end = f"{math.ceil(10 * most - 1e-9) / 10:.1f}"
        for moves in ([], [("scale of W_q, W_k", 6)], [("query of the curve", 3)]):
            for move in moves:
                slide(page, *move)
            assert legend.text_content() == f"score −{end}{end}units: ±1.0"
            shown = ends.all_text_contents()
            assert f"−{end}" in shown
            assert end in shown
        page.get_by_role("button", name="Add a unit").click()
    page.locator('[data-key="unit 2"]').hover()
    bubble = box_of(page.locator(".af-reading"))
    title = box_of(page.get_by_text("Their sum, all pairs"))
    assert bubble.bottom <= title.y


@pytest.mark.parametrize("narrow", [True, False])
def test_the_curve_of_a_query_is_level_with_its_squares(narrow: bool, stage: Stage) -> None:
    figure = FIGURES["additive"](hidden=5)
    page = stage.phone(figure, 360, 640) if narrow else stage.show(figure)
    column = figure.data["grid"].index(0.75)
    key, plot = (
        box_of(page.locator(f".af-summing {part}")) for part in (".af-thick", ".af-axes >> nth=1")
    )
    assert key.y - plot.bottom < 60  # what is thin and what is thick stands by the curves
    for row in (0, 8, 16):
        square = box_of(page.locator(f'[data-key="score {column} {row}"]')).middle
        dot = box_of(page.locator(f'[data-key="slice {row}"]')).middle
        assert dot[1] == pytest.approx(square[1], abs=1)


@pytest.mark.parametrize("name", ["distance", "dot", "scaled dot", "bilinear", "additive"])
@pytest.mark.parametrize("number", [0, 8])
def test_each_place_lies_in_the_region_of_the_key_that_wins_there(
    name: str, number: int, stage: Stage
) -> None:
    figure = ScoringFigure(example(8, 2, seed=5).clamp(-2.9, 2.9) if number else None, by=name)
    page = stage.show(figure)
    plane = page.locator(".af-plane")
    middles = (6 * (torch.arange(50, dtype=torch.float64) + 0.5) / 50 - 3)[1::2]
    places = torch.cartesian_prod(middles, middles)
    scores = five_scores(places, torch.tensor(figure.data["keys"], dtype=torch.float64))[name][0]
    won = plane.evaluate(
        """(plot, places) => {
            const regions = [...plot.querySelectorAll(".af-region")];
            return places.map(([x, y]) => regions.flatMap((region, k) => {
                const at = new DOMPoint(12 + 46 * (x + 3), 288 - 46 * (y + 3));
                return !region.hasAttribute("hidden") && region.isPointInFill(at) ? [k] : [];
            }));
        }""",
        places.tolist(),
    )
    assert all(len(keys) == 1 for keys in won)  # every place has one colour
    reached = scores.gather(1, torch.tensor(won))[:, 0]
    assert (scores.max(dim=1).values - reached).max() < 1e-8
    # Each region has its key in it, or its name, and a border around it.
    visible = plane.locator(".af-region:visible").evaluate_all("(all) => all.length")
    names = plane.locator(".af-winner:visible").all_text_contents()
    assert visible == len({keys[0] for keys in won})
    homes = five_scores(
        torch.tensor(figure.data["keys"], dtype=torch.float64),
        torch.tensor(figure.data["keys"], dtype=torch.float64),
    )[name][0]
    at_home = {f"k{k + 1}" for k, row in enumerate(homes) if row[k] > row.max() - 1e-9}
    assert {f"k{keys[0] + 1}" for keys in won} <= at_home | {*names}
    assert plane.locator(".af-border").get_attribute("d")


def test_the_borders_run_where_two_keys_score_the_same_and_names_stand_clear(stage: Stage) -> None:
    page = stage.show(ScoringFigure(query=[2.0, 2.0]), reduced_motion="reduce")
    keys = torch.tensor(ScoringFigure().data["keys"], dtype=torch.float64)
    for name in ("distance", "dot", "scaled dot", "bilinear", "additive"):
        pick(page, "by", name)
        plane = page.locator(".af-plane")
        path = str(plane.locator(".af-border").get_attribute("d"))
        points = torch.tensor(
            [
                [float(n) for n in point.split(",")]
                for point in re.findall(r"[-\d.]+,[-\d.]+", path)
            ],
            dtype=torch.float64,
        )
        places = torch.stack([points[:, 0] - 12, 288 - points[:, 1]], 1) / 46 - 3
        best = five_scores(places, keys)[name][0].topk(2).values
        assert (best[:, 0] - best[:, 1]).max() < 0.05, name
        assert len(points) > 20
        for title in plane.locator(".af-winner:visible").all():
            box = [float(title.get_attribute(side) or "nan") for side in ("x", "y")]
            gaps = (points - torch.tensor([box[0], box[1] - 5])).norm(dim=1)
            assert gaps.min() > 9
        # Names are drawn after all that could cover them.
        order = plane.locator(".af-name, .af-winner, .af-thread, .af-point, .af-tip").evaluate_all(
            "(all) => all.map((node) => /af-(name|winner)/.test(node.getAttribute('class')))"
        )
        assert order == sorted(order)


@pytest.mark.parametrize("query", [[0.0, 0.0], [1.0, 1.0], [-2.5, 0.75]])
def test_bars_stand_in_the_order_of_the_scores_and_the_sentence_names_no_key_in_a_tie(
    query: list[float], stage: Stage
) -> None:
    figure = ScoringFigure(query=query)
    page = stage.show(figure, reduced_motion="reduce")
    keys = torch.tensor(figure.data["keys"], dtype=torch.float64)
    scores = five_scores(torch.tensor(query, dtype=torch.float64), keys)
    said = page.locator(".af-now")
    for name, row in scores.items():
        figure.by = name
        pick(page, "by", name)
        sentence = str(said.text_content())
        assert figure.alt.endswith(sentence)
        found = row.flatten().tolist()
        rank = sentence.rpartition(" ranks ")[2]
        signs = re.findall(r"[>=]", rank)
        order = [int(k) - 1 for k in re.findall(r"\d+", rank)]
        assert sorted(order) == [0, 1, 2, 3, 4]
        gaps = [found[a] - found[b] for a, b in pairwise(order)]
        assert signs == ["=" if abs(gap) < 1e-9 else ">" for gap in gaps]
        assert min(gaps) > -1e-9
        bars = [box_of(page.locator(f'[data-key="bar {k}"]')).x for k in order]
        assert bars == sorted(bars)
        between = page.locator(".af-strip > g:last-child text").all_text_contents()
        assert between == [*signs, "weights"]
        ties = found.count(max(found)) if signs[0] == "=" else 1
        best = " = ".join(f"k{k + 1}" for k in order[:ties])
        thumb = page.locator(f'label:has([name="by"][value="{name}"]) .af-thumb text')
        assert thumb.text_content() == best  # which each small plane says, too


def test_the_areas_glide_from_one_function_to_the_next(stage: Stage) -> None:
    page = stage.show(ScoringFigure())
    area = page.locator('.af-plane .af-region[style*="--hue: 0"]')
    ends = [area.get_attribute("d")]
    page.evaluate(
        """() => {
            window.areas = [];
            new MutationObserver((all) => all.forEach(({ target }) =>
                window.areas.push(target.getAttribute("d")))).observe(
                document.querySelector('.af-plane .af-region'), { attributeFilter: ["d"] });
        }"""
    )
    pick(page, "by", "dot")
    dot = page.locator('.af-thumb .af-region[style*="--hue: 0"]').nth(1).get_attribute("d")
    expect(area).to_have_attribute("d", str(dot))
    on_the_way = page.evaluate("areas")
    assert len({*on_the_way, *ends}) > 2  # more than where it came from and where it ends
    assert on_the_way[-1] == dot


THEMES = {  # background, ink, quiet ink of the book's pages
    "light": ("#ffffff", "#222832", "#48566b"),
    "dark": ("#14181e", "#ced6dd", "#9ca4af"),
}


@pytest.mark.parametrize("theme", THEMES)
def test_marks_on_a_coloured_plane_keep_their_contrast(theme: str, stage: Stage) -> None:
    paper, ink, quiet = THEMES[theme]
    style = (
        f"<style>:root {{ --pst-color-background: {paper}; --pst-color-text-base: {ink};"
        f" --pst-color-text-muted: {quiet} }}</style>"
        f"<script>document.documentElement.dataset.theme = '{theme}'</script>"
    )
    page = stage.show(ScoringFigure(example(8, 2, seed=5).clamp(-2.9, 2.9)), before=style)
    colours = page.locator(".af-stage").evaluate(
        """(plot) => {
            const context = document.createElement("canvas").getContext("2d");
            const rgb = (colour) => {
                context.fillStyle = colour;
                context.fillRect(0, 0, 1, 1);
                return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
            };
            const of = (query, what) => [...plot.querySelectorAll(query)]
                .map((node) => rgb(getComputedStyle(node)[what]));
            return { regions: of(".af-region", "fill"), tip: of(".af-tip", "fill"),
                arrow: of(".af-arrow", "stroke"), point: of(".af-point", "stroke"),
                border: of(".af-border", "stroke"), winner: of(".af-winner", "fill"),
                name: of(".af-name", "fill") };
        }"""
    )

    def light(colour: list[int]) -> float:
        parts = [
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
            for c in (part / 255 for part in colour)
        ]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    regions = colours.pop("regions")
    assert len({tuple(region) for region in regions}) == 8
    for name, found in colours.items():
        assert found, name
        for one in found:
            for region in regions:
                low, high = sorted([light(one), light(region)])
                bound = 4.5 if name in ("winner", "name") else 3
                assert (high + 0.05) / (low + 0.05) >= bound, (name, one, region)


@pytest.mark.parametrize(("width", "height"), PHONES)
@pytest.mark.parametrize("kind", ["scale", "scoring"])
def test_on_a_phone_all_is_in_one_screen_and_no_tap_moves_it(
    kind: str, width: int, height: int, stage: Stage
) -> None:
    page = stage.phone(FIGURES[kind](), width, height)
    # Bins, and keys close to the query, answer to the point of the plot that is nearest.
    stays = one_screen(page, "label, summary, .af-disc, :is(.af-best, .af-strip) .af-near, button")
    page.locator(".af-predict input").first.check()
    stays()
    if kind == "scale":
        slide(page, "d_k", 10)
        expect(page.locator(".af-now")).to_contain_text("At d_k = 1024")
    else:
        expect(page.get_by_role("slider")).to_have_count(0)  # folded, where a finger drags
        unit = box_of(page.locator(".af-plane")).width / 300 * 46
        swipe(page, middle(page.locator(".af-plane .af-tip")), (unit, -unit), (2 * unit, -2 * unit))
        expect(page.locator(".af-now")).to_contain_text("the query at (3.00, 3.00) ranks k1 >")
    expect(page.locator(".af-judged.af-answer")).to_have_count(1)
    stays()
    if kind == "scoring":
        plane = box_of(page.locator(".af-plane"))
        page.touchscreen.tap(plane.x + 150 / 46 * unit - 2 * unit, plane.y + 150 / 46 * unit + unit)
        expect(page.locator(".af-now")).to_contain_text("the query at (−2.00, −1.00) ranks")
        stays()
        for name in ("dot", "additive"):
            page.get_by_role("radio", name=name, exact=True).last.check(force=True)
            stays()
        page.get_by_text("Move it by sliders").tap()
        expect(page.get_by_role("slider", name="query, feature 2")).to_be_visible()


def test_with_forced_colours_the_labels_take_the_systems_ink(stage: Stage) -> None:
    page = stage.show(FIGURES["scoring"](), forced_colors="active", color_scheme="dark")
    ink = "(node) => getComputedStyle(node).fill"
    system = page.evaluate(
        "() => { const p = document.body.appendChild(document.createElement('p'));"
        " p.style.color = 'CanvasText'; return getComputedStyle(p).color; }"
    )
    labels: Locator = page.locator(".af-plot text")
    assert labels.count() > 10
    assert {labels.nth(i).evaluate(ink) for i in range(labels.count())} == {system}


@pytest.mark.parametrize(
    ("passing", "longer"),
    [
        ([(-0.5, -1.0)], (-1.0, -2.0)),  # the example of chapter 2's text
        ([(1.0, 1.25), (0.5, 0.5)], (3.0, 3.0)),
        ([(1.0, 1.25)], (2.75, 2.75)),  # anywhere on the ray
    ],
)
def test_any_longer_query_in_a_direction_that_changes_an_order_is_judged(
    passing: list[tuple[float, float]], longer: tuple[float, float], stage: Stage
) -> None:
    page = stage.show(ScoringFigure(), reduced_motion="reduce")
    page.locator(".af-predict input").nth(2).check()
    verdict = page.locator(".af-verdict")
    stops = [-3 + i / 4 for i in range(25)]
    for query in (*passing, longer):
        expect(verdict).to_contain_text("Noted.")
        for axis, value in enumerate(query):
            slide(page, f"query, feature {axis + 1}", stops.index(value))
    expect(verdict).to_contain_text("That is right.")


def test_the_answer_is_shown_by_distance_alone_and_a_query_says_that_it_can_be_dragged(
    stage: Stage,
) -> None:
    page = stage.show(FIGURES["scoring"](by="additive"))
    name = page.locator(".af-plane > g > .af-name", has_text="q")
    assert name.text_content() == "drag q"
    page.locator(".af-predict input").last.check()
    for feature in (1, 2):
        slide(page, f"query, feature {feature}", 20)
    assert name.text_content() == "q"
    verdict = page.locator(".af-verdict")
    expect(verdict).to_have_text(re.compile(r"^Noted\. Now by distance, move the query"))
    page.get_by_role("radio", name="distance", exact=True).last.check(force=True)
    expect(verdict).to_have_text(re.compile("^✓ You said: distance"))
    title = page.locator(".af-strip > g:last-child text", has_text="weights")
    assert box_of(title).x < box_of(page.locator('[data-key^="bar"]').first).middle[0]
