"""Every figure on its page of the built book: alive without a kernel, and right at each stop."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
import torch
from browser import Served, Watched, built_book, chromium, serve
from bs4 import BeautifulSoup
from playwright.sync_api import Browser, Locator, Page
from torch import Tensor

from attention_book import (
    SelfAttentionBlock,
    additive_scores,
    bilinear_scores,
    distance_scores,
    dot_product_scores,
    figures,
    masked_softmax,
    scaled_dot_product_scores,
    sinusoidal_positions,
    split_heads,
)
from attention_book.figures import MaskingFigure, ScaleFigure
from attention_book.figures.base import example
from attention_book.figures.block import toy_block

KINDS = [getattr(figures, name).kind for name in figures.__all__]
Readings = dict[str, float]

# What a reader does and sees, run in the page: `moves` is a list of lists of moves, and the answer
# holds what can be read after each list. A number's text is checked against its value on the spot.
SWEEP = """(root, moves) => {
  const act = ([what, name, value]) => {
    if (what === "slide") {
      const label = [...root.querySelectorAll(".af-slider")]
        .find((node) => !node.hidden && node.firstChild.textContent === name);
      const input = label.querySelector("input");
      input.value = value;
      if (input.value !== String(value)) throw new Error(`${name} has no stop ${value}`);
      input.dispatchEvent(new Event("input", { bubbles: true }));
    } else {
      root.querySelector(`input[name="${name}"][value="${value}"]`).click();
    }
  };
  const read = () => Object.fromEntries([...root.querySelectorAll("[data-key]")]
    .filter((node) => !node.closest("[hidden]")).map((node) => {
    const value = node.getAttribute("data-value");
    const text = node.textContent.replace("−", "-");
    if (/^-?[0-9]+[.][0-9]+$/.test(text)) {
      const half = 0.5 * 10 ** -text.split(".")[1].length + 1e-9;
      if (!(Math.abs(text - value) <= half)) throw new Error(`${text} for ${value}`);
    }
    if (!node.getAttribute("aria-label") && !node.closest("p")) throw new Error(node.outerHTML);
    return [node.getAttribute("data-key"), value];
  }));
  return moves.map((list) => { list.forEach(act); return read(); });
}"""

MOVE_AND_PAINT = """([kind, i]) => new Promise((done) => {
  const figure = document.querySelector(`attention-figure[kind="${kind}"]`);
  const input = figure.querySelector(".af-slider:not([hidden]) input");
  input.value = i % (Number(input.max) + 1);
  input.dispatchEvent(new Event("input", { bubbles: true }));
  requestAnimationFrame(() => {
    const after = new MessageChannel(); // its message comes when the frame is painted
    after.port1.onmessage = () => done();
    after.port2.postMessage(0);
  });
})"""


def tensor(numbers: Any) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def named(name: str, numbers: Tensor) -> Readings:
    """The numbers of a tensor under the names that a figure gives them: name, then the indices."""
    places = product(*map(range, numbers.shape))
    return {" ".join([name, *map(str, at)]): numbers[at].item() for at in places}


@dataclass
class Stop:
    """Where the controls are put, and what the book's package computes there."""

    moves: list[tuple[str, str, Any]]
    expected: Readings
    bound: float = 1e-6


def masking(data: dict[str, Any]) -> Iterator[Stop]:
    scores = tensor(data["scores"])
    batch, queries, keys = scores.shape

    def weights(fill: str, lens: list[Any]) -> Tensor:
        allowed = torch.ones(batch, queries, keys, dtype=torch.bool)
        for b, q, k in product(range(batch), range(queries), range(keys)):
            allowed[b, q, k] = k < (lens[b][q] if isinstance(lens[b], list) else lens[b])
        if fill == "-inf":
            return masked_softmax(scores, torch.tensor(lens))
        if fill == "after":
            return torch.softmax(scores, dim=-1) * allowed
        return torch.softmax(torch.where(allowed, scores, float(fill)), dim=-1)

    def stop(moves: list[Any], fill: str, lens: list[Any]) -> Stop:
        seen = weights(fill, lens)
        return Stop(moves, named("weight", seen) | named("sum", seen.sum(-1)))

    for fill in ("-inf", "-1e6", "1e-6", "after"):
        for lens in product(range(keys + 1), repeat=batch):
            moves = [("slide", f"example {b + 1}", n) for b, n in enumerate(lens)]
            chosen = [("pick", "mode", "one"), ("pick", "fill", fill)]
            yield stop([*chosen, *moves], fill, list(lens))
        for lens in product(range(keys + 1), repeat=queries):
            moves = [("slide", f"example 1, query {q + 1}", n) for q, n in enumerate(lens)]
            others = [
                ("slide", f"example {b + 1}, query {q + 1}", (b + q) % (keys + 1))
                for b, q in product(range(1, batch), range(queries))
            ]
            nested = [list(lens)] + [
                [(b + q) % (keys + 1) for q in range(queries)] for b in range(1, batch)
            ]
            yield stop([("pick", "mode", "each"), *moves, *others], fill, nested)


def scale(data: dict[str, Any]) -> Iterator[Stop]:
    assert data == ScaleFigure().data  # the page's figure is the one recomputed here
    queries, keys = example(200, 1024, seed=1)[None], example(10, 1024, seed=2)[None]
    functions = {"plain": dot_product_scores, "scaled": scaled_dot_product_scores}
    jacobian = torch.func.vmap(torch.func.jacrev(lambda row: torch.softmax(row, dim=-1)))
    edges = [-torch.inf, *data["edges"][1:-1], torch.inf]
    for i, size in enumerate(data["stops"]):
        expected: Readings = {}
        for name, function in functions.items():
            scores = function(queries[..., :size], keys[..., :size])
            weights = masked_softmax(scores)
            shares = tensor(
                [((scores >= a) & (scores < b)).double().mean() for a, b in pairwise(edges)]
            )
            expected |= named(f"{name} weight", weights[0, 0]) | named(f"{name} share", shares)
            expected[f"{name} variance"] = scores.var(correction=0).item()
            norms = jacobian(scores[0]).flatten(start_dim=1).norm(dim=-1)
            expected[f"{name} gradient"] = norms.mean().item()
        yield Stop([("slide", "d_k", i)], expected)


def regression(data: dict[str, Any]) -> Iterator[Stop]:
    keys, values = tensor(data["keys"]), tensor(data["values"])
    for (i, query), (j, width) in product(enumerate(data["queries"]), enumerate(data["widths"])):
        scores = distance_scores(tensor([[[query / width]]]), keys[None, :, None] / width)
        weights = masked_softmax(scores)[0, 0]
        expected = named("weight", weights) | {"largest": weights.max().item()}
        expected |= dict.fromkeys(("prediction", "guess"), (weights @ values).item())
        yield Stop([("slide", "query", i), ("slide", "width w", j)], expected)


def scoring(data: dict[str, Any]) -> Iterator[Stop]:
    keys, W, W_q, W_k, w_v = (tensor(data[name]) for name in ("keys", "W", "W_q", "W_k", "w_v"))
    for i, j in product(range(25), repeat=2):
        pair = tensor([[[-3 + i / 4, -3 + j / 4]]]), keys[None]
        scores = {
            "distance": distance_scores(*pair),
            "dot": dot_product_scores(*pair),
            "scaled dot": scaled_dot_product_scores(*pair),
            "bilinear": bilinear_scores(*pair, W),
            "additive": additive_scores(*pair, W_q, W_k, w_v),
        }
        expected: Readings = {}
        for name, row in scores.items():
            expected |= named(f"{name} score", row[0, 0])
            expected |= named(f"{name} weight", masked_softmax(row)[0, 0]) | {f"{name} sum": 1.0}
        moves = [("slide", "query, feature 1", i), ("slide", "query, feature 2", j)]
        yield Stop(moves, expected)


def matmul(data: dict[str, Any]) -> Iterator[Stop]:
    queries, keys = tensor(data["queries"]), tensor(data["keys"])
    scores = dot_product_scores(queries[None], keys[None])[0]
    for step, total in enumerate(scores.flatten().tolist()):
        expected = named("entry", scores) | named("q", queries) | named("k", keys)
        yield Stop([("slide", "entry", step)], expected | {"sum": total})


def additive(data: dict[str, Any]) -> Iterator[Stop]:
    grid = tensor(data["grid"])[None, :, None]
    queries = torch.cat([grid, torch.ones_like(grid)], dim=-1)
    W_q, W_k, w_v = (tensor(data[name]) for name in ("W_q", "W_k", "w_v"))
    for n, (j, factor) in product(range(1, len(w_v) + 1), enumerate(data["scales"])):
        scores = additive_scores(queries, grid, factor * W_q[:n], factor * W_k[:n], w_v[:n])[0]
        expected = named("score", scores)
        expected |= {"low": scores.min().item(), "high": scores.max().item()}
        yield Stop([("slide", "hidden units", n - 1), ("slide", "scale of W_q, W_k", j)], expected)


def heads(data: dict[str, Any]) -> Iterator[Stop]:
    queries, keys = 1.5 * example(6, 8, seed=5)[None], 1.5 * example(6, 8, seed=6)[None]
    for i, n in enumerate(data["counts"]):
        pair = split_heads(queries, n), split_heads(keys, n)
        weights = masked_softmax(scaled_dot_product_scores(*pair))[0]
        tops = named("top", weights.flatten(start_dim=1).max(dim=-1).values)
        for head in range(n):
            expected = named("weight", weights[head]) | named("sum", weights[head].sum(-1)) | tops
            yield Stop([("slide", "heads", i), ("slide", "head shown", head)], expected, 5e-6)


def block(data: dict[str, Any]) -> Iterator[Stop]:
    x = example(5, 8, seed=7)[None]
    layer: SelfAttentionBlock = toy_block(8)
    code = {"false": torch.zeros_like(x), "true": sinusoidal_positions(5, 8).double()}
    orders = list(data["orders"].values())
    for (i, order), (j, rate), on in product(enumerate(orders), enumerate(data["rates"]), code):
        moves = [("slide", "order", i), ("slide", "dropout rate", j), ("pick", "positions", on)]
        if rate:  # a random draw has no second opinion; the numbers stored are the ones shown
            seen = data["seen"]["on" if on == "true" else "off"][str(rate)][list(data["orders"])[i]]
            expected = named("weight", tensor(seen["weights"]))
            yield Stop(moves, expected | named("change", tensor(seen["change"])))
            continue
        before = layer(x + code[on])[:, order]
        change = (layer(x[:, order] + code[on]) - before).norm(dim=-1)[0]
        assert layer.attention_weights is not None
        weights = layer.attention_weights[0, 0]
        yield Stop(moves, named("weight", weights) | named("change", change.detach()))


def decoding(data: dict[str, Any]) -> Iterator[Stop]:
    maps = {name: tensor(data[name]) for name in ("encoder", "decoder", "cross")}
    layers, count, steps, _ = maps["cross"].shape
    for weights in maps.values():  # a trained model's weights may come rounded to hundredths
        assert (weights.sum(-1) - 1).abs().max() <= 0.005 * weights.shape[-1] + 1e-9
    assert maps["decoder"].triu(diagonal=1).abs().max() == 0
    for layer, head, step in product(range(layers), range(count), range(steps)):
        expected = {}
        for name, weights in maps.items():
            expected |= named(name, weights[layer, head])
        expected["best"] = maps["cross"][layer, head, step].argmax().item()
        moves = [("slide", "layer", layer), ("slide", "head", head)]
        yield Stop([*moves, ("slide", "step of decoding", step)], expected)


def tiling(data: dict[str, Any]) -> Iterator[Stop]:
    scores, values = tensor(data["scores"]), tensor(data["values"])
    length = len(scores)
    for i, tile in enumerate(data["tiles"]):
        strips = length // tile
        for step in range(strips**2 + 1):
            expected = {"held 0": tile**2, "held 1": tile**2 + 3 * tile, "held 2": length**2}
            for row in range(length):
                strip, across = divmod(step - 1, strips)
                own = row // tile
                seen = length if own < strip else (across + 1) * tile if own == strip else 0
                if step and seen:
                    part = scores[row, :seen]
                    weights = masked_softmax(part[None, None])[0, 0]
                    expected[f"m {row}"] = part.max().item()
                    expected[f"l {row}"] = (part - part.max()).exp().sum().item()
                    expected[f"o {row}"] = (weights @ values[:seen]).item()
            yield Stop([("slide", "tile size", i), ("slide", "tiles read", step)], expected)


STOPS: dict[str, Callable[[dict[str, Any]], Iterator[Stop]]] = {
    kind: globals()[kind] for kind in KINDS
}


# --- The pages ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def book() -> Path:
    return built_book()


@pytest.fixture(scope="module")
def pages(book: Path) -> dict[str, str]:
    """The page of the book that holds each figure."""
    found: dict[str, str] = {}
    for file in sorted(book.rglob("*.html")):
        for kind in re.findall(r'<attention-figure kind="(\w+)"', file.read_text(encoding="utf-8")):
            found.setdefault(kind, str(file.relative_to(book)))
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def host(book: Path) -> Iterator[Served]:
    with serve(book) as served:
        yield served


def live(page: Page, kind: str) -> Locator:
    """The moving part of the first figure of that kind, once it has come to life."""
    figure = page.locator(f'attention-figure[kind="{kind}"]').first
    figure.locator(".af-form").wait_for()
    return figure


def sweep(figure: Locator, moves: list[Any]) -> list[dict[str, str]]:
    return figure.evaluate(SWEEP, moves)


def test_every_figure_has_a_page(pages: dict[str, str]) -> None:
    assert sorted(pages) == sorted(KINDS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheme", ["http", "file"])
def test_every_slider_at_every_stop_shows_what_the_package_computes(
    scheme: str, kind: str, browser: Browser, host: Served, book: Path, pages: dict[str, str]
) -> None:
    home = host.address if scheme == "http" else book.as_uri()
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    watched = Watched(context, home)
    watched.page.goto(f"{home}/{pages[kind]}")
    figure = live(watched.page, kind)
    data = json.loads(figure.locator("script").text_content() or "")["data"]
    stops = list(STOPS[kind](data))
    seen = sweep(figure, [stop.moves for stop in stops])
    assert len(seen) == len(stops) > 1
    for stop, readings in zip(stops, seen, strict=True):
        wrong = {
            key: (readings.get(key), value)
            for key, value in stop.expected.items()
            if not abs(float(readings.get(key, "nan")) - value) <= stop.bound
        }
        assert not wrong, f"{stop.moves}: shown, expected: {wrong}"
    sliders = set(figure.locator(".af-slider > span").all_text_contents())
    assert sliders == {name for stop in stops for what, name, _ in stop.moves if what == "slide"}
    assert watched.errors == []
    assert watched.outside == []
    context.close()


@pytest.mark.parametrize("kind", KINDS)
def test_reset_puts_everything_back_and_a_prediction_is_answered_after_a_move(
    kind: str, browser: Browser, book: Path, pages: dict[str, str]
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(f"{book.as_uri()}/{pages[kind]}")
    figure = live(page, kind)
    [before] = sweep(figure, [[]])
    stage = figure.locator(".af-stage")
    words = stage.get_attribute("aria-label")
    assert words == figure.locator("figure img").get_attribute("alt")
    verdict = figure.locator(".af-verdict")
    figure.locator(".af-predict input").nth(1).check()
    assert "Noted" in verdict.inner_text()
    sliders = figure.locator(".af-slider:visible input")
    for i in range(sliders.count()):
        sliders.nth(i).press("Home")
        sliders.nth(i).press("End")
    assert re.match(r"You saw it coming\.|It comes out otherwise\.", verdict.inner_text())
    assert sweep(figure, [[]]) != [before]
    assert stage.get_attribute("aria-label") == figure.locator("figcaption").text_content()
    figure.get_by_role("button", name="Reset").click()
    assert sweep(figure, [[]]) == [before]
    assert stage.get_attribute("aria-label") == words
    assert verdict.inner_text() == ""
    assert figure.locator(".af-predict input:checked").count() == 0
    context.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_move_is_drawn_within_a_frame(
    kind: str, browser: Browser, book: Path, pages: dict[str, str]
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(f"{book.as_uri()}/{pages[kind]}")
    live(page, kind).scroll_into_view_if_needed()
    session = context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> float:
        """Milliseconds of the page's main thread, not counting those it waited for others."""
        metrics = session.send("Performance.getMetrics")["metrics"]
        return 1000 * next(each["value"] for each in metrics if each["name"] == "TaskDuration")

    times = []
    for i in range(50):
        before = spent()
        page.evaluate(MOVE_AND_PAINT, [kind, i])
        times.append(spent() - before)
    assert statistics.median(times) < 16.7
    context.close()


def test_the_keyboard_alone_predicts_moves_reads_and_resets(
    browser: Browser, book: Path, pages: dict[str, str]
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(f"{book.as_uri()}/{pages['masking']}")
    figure = live(page, "masking")
    focused = page.locator(":focus")
    figure.locator("input").first.focus()
    page.keyboard.press("Space")
    assert figure.locator(".af-predict input:checked").count() == 1

    def tab_to(selector: str) -> None:
        for _ in range(20):
            page.keyboard.press("Tab")
            if focused.evaluate("(node, selector) => node.matches(selector)", selector):
                return
        raise AssertionError(f"Tab does not reach {selector}")

    tab_to("input[name=fill]")
    page.keyboard.press("ArrowRight")
    assert focused.get_attribute("value") == "-1e6"
    tab_to("input[type=range]")
    page.keyboard.press("Home")
    assert figure.locator("output").first.inner_text() == "0 of 4 keys"
    page.keyboard.press("ArrowRight")
    assert focused.get_attribute("aria-valuetext") == "1 of 4 keys"
    reading = figure.locator(".af-reading")
    tab_to("[data-at]")
    assert "query 1, key 1: score" in reading.inner_text()
    page.keyboard.press("ArrowRight")
    assert "query 1, key 2: score" in reading.inner_text()
    page.keyboard.press("ArrowDown")
    assert "query 2, key 2: score" in reading.inner_text()
    tab_to(".af-reset")
    page.keyboard.press("Enter")
    assert figure.locator("output").first.inner_text() == "2 of 4 keys"
    context.close()


def test_the_pointer_drags_the_query_and_reads_numbers(
    browser: Browser, book: Path, pages: dict[str, str]
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(f"{book.as_uri()}/{pages['scoring']}")
    figure = live(page, "scoring")
    tip = figure.locator(".af-tip")
    tip.scroll_into_view_if_needed()
    box = tip.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] - 60, box["y"] + 40, steps=5)
    page.mouse.up()
    moved = [float(number) for number in str(tip.get_attribute("data-value")).split()]
    assert moved[0] < 1.0
    assert moved[1] < 1.0
    figure.locator('[data-key="dot weight 0"]').hover()
    assert "dot: weight of k1" in figure.locator(".af-reading").inner_text()
    context.close()


@pytest.fixture
def two_figures(book: Path, tmp_path: Path) -> str:
    """A page of two figures of one kind and one that has no module, with the book's script."""
    script = (book / "_static" / "attention-figures.js").read_text(encoding="utf-8")
    (tmp_path / "figures.js").write_text(script, encoding="utf-8")
    figure = MaskingFigure().to_html()
    body = figure + figure + figure.replace('kind="masking"', 'kind="missing"')
    page = f'<!doctype html><meta charset="utf-8"><script defer src="figures.js"></script>{body}'
    (tmp_path / "two.html").write_text(page, encoding="utf-8")
    return (tmp_path / "two.html").as_uri()


def test_two_figures_on_a_page_do_not_disturb_each_other(
    browser: Browser, two_figures: str
) -> None:
    page = browser.new_page()
    page.goto(two_figures)
    first, second = page.locator('attention-figure[kind="masking"]').all()
    first.locator(".af-form").wait_for()
    second.locator(".af-form").wait_for()
    [before] = sweep(second, [[]])
    moves = [("pick", "fill", "after"), ("slide", "example 1", 0), ("pick", "prediction", "0")]
    [after] = sweep(first, [moves])
    assert after != before
    assert sweep(second, [[]]) == [before]
    assert second.locator("input[name=fill]:checked").get_attribute("value") == "-inf"
    assert second.locator(".af-predict input:checked").count() == 0
    page.close()


def test_a_figure_that_fails_leaves_its_picture_and_says_so(
    browser: Browser, two_figures: str
) -> None:
    page = browser.new_page()
    page.goto(two_figures)
    broken = page.locator('attention-figure[kind="missing"]')
    assert "cannot move here" in broken.get_by_role("note").inner_text()
    assert broken.locator("img").is_visible()
    page.close()


@pytest.mark.parametrize("kind", KINDS)
def test_without_scripts_and_on_paper_there_is_a_picture_with_an_alternative(
    kind: str, browser: Browser, book: Path, pages: dict[str, str]
) -> None:
    address = f"{book.as_uri()}/{pages[kind]}"
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    markup = BeautifulSoup((book / pages[kind]).read_text(encoding="utf-8"), "html.parser")
    alternative = markup.select_one(f'attention-figure[kind="{kind}"] img')["alt"]
    picture = page.get_by_role("img", name=alternative, exact=True).first
    box = picture.bounding_box()
    assert box
    assert box["width"] > 200
    assert box["height"] > 100
    context.close()

    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    figure = live(page, kind)
    assert not figure.locator("figure img").is_visible()
    page.emulate_media(media="print")
    assert figure.locator("figure img").is_visible()
    assert not figure.locator(".af-form").is_visible()
    assert figure.locator("img").evaluate(
        "(image) => image.decode().then(() => image.naturalWidth)"
    )
    context.close()
