"""Every figure on its page of the built book: alive without a kernel, and right at each stop."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise, permutations, product
from pathlib import Path
from typing import Any

import pytest
import torch
from browser import Served, Watched, built_book, chromium, serve
from bs4 import BeautifulSoup
from playwright.sync_api import Browser, Locator, Page
from torch import Tensor

from attention_book import (
    MultiHeadAttention,
    SelfAttentionBlock,
    additive_scores,
    bilinear_scores,
    distance_scores,
    dot_product_scores,
    figures,
    masked_softmax,
    scaled_dot_product_scores,
    sinusoidal_positions,
)
from attention_book.figures import MaskingFigure, ScaleFigure
from attention_book.figures import language_model as continues
from attention_book.figures.base import example
from attention_book.figures.block import toy_block
from attention_book.figures.live import run, unpacked
from attention_book.training import in_float64

#: The figures of chapters; tests/figures/test_walk_browser.py has those of the shape walk.
KINDS = [kind for name in figures.__all__ if (kind := getattr(figures, name).kind) != "walk"]
KIND = {getattr(figures, name).kind: getattr(figures, name) for name in figures.__all__}
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
    } else if (what === "press") {
      [...root.querySelectorAll("button")].find((node) => node.textContent === name).click();
    } else if (what === "carry") {
      const card = root.querySelectorAll(".af-card")[name];
      const key = (key) =>
        card.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
      const by = value - card.getAttribute("data-at").split(",")[1];
      key("Enter");
      for (let i = 0; i < Math.abs(by); i++) key(by < 0 ? "ArrowLeft" : "ArrowRight");
      key("Enter");
    } else if (what === "choose") {
      const node = root.querySelector(`[data-key="${name}"]`);
      node.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    } else if (root.querySelector(`select[name="${name}"]`)) {
      const menu = root.querySelector(`select[name="${name}"]`);
      menu.value = value;
      menu.dispatchEvent(new Event("change", { bubbles: true }));
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
    if (!node.getAttribute("aria-label")) throw new Error(node.outerHTML);
    return [node.getAttribute("data-key"), value];
  }).concat([["sentence", root.querySelector(".af-now").textContent]]));
  return moves.map((list) => { list.forEach(act); return read(); });
}"""


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
    traits: dict[str, Any]
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

    fills = ("-inf", "-1e6", "1e-6", "after")

    def stop(moves: list[Any], fill: str, lens: list[Any], turn: int) -> Stop:
        seen = weights(fill, lens)
        readings = named("weight", seen) | named("sum", seen.sum(-1))
        compare = ("none", *fills)[turn % 5]  # each pair of fills has several of the lengths
        if compare != "none":
            other = weights(compare, lens)
            readings |= named("other weight", other) | named("other sum", other.sum(-1))
        traits = {"fill": fill, "compare": compare, "valid_lens": lens}
        return Stop([*moves, ("pick", "compare", compare)], readings, traits)

    for fill in fills:
        for turn, lens in enumerate(product(range(keys + 1), repeat=batch)):
            moves = [("slide", f"example {b + 1}", n) for b, n in enumerate(lens)]
            yield stop([("pick", "fill", fill), *moves], fill, list(lens), turn)
        for turn, lens in enumerate(product(range(keys + 1), repeat=queries)):
            moves = [("slide", f"example 1, query {q + 1}", n) for q, n in enumerate(lens)]
            others = [
                ("slide", f"example {b + 1}, query {q + 1}", (b + q) % (keys + 1))
                for b, q in product(range(1, batch), range(queries))
            ]
            nested = [list(lens)] + [
                [(b + q) % (keys + 1) for q in range(queries)] for b in range(1, batch)
            ]
            yield stop([*moves, *others], fill, nested, turn)


def scale(data: dict[str, Any]) -> Iterator[Stop]:
    own = ScaleFigure().data
    assert {name: data[name] for name in own} == own  # the page's figure is the one recomputed here
    queries, keys = example(200, 1024, seed=1)[None], example(10, 1024, seed=2)[None]
    shown = data["query"]
    functions = {"plain": dot_product_scores, "scaled": scaled_dot_product_scores}
    jacobian = torch.func.vmap(torch.func.jacrev(lambda row: torch.softmax(row, dim=-1)))
    course: Readings = {}  # the curves, which grow with d_k
    for i, size in enumerate(data["stops"]):
        expected: Readings = {}
        for name, function in functions.items():
            scores = function(queries[..., :size], keys[..., :size])
            weights = masked_softmax(scores)
            edges = [-torch.inf, *data["edges"][1:-1], torch.inf]
            shares = tensor(
                [((scores >= a) & (scores < b)).double().mean() for a, b in pairwise(edges)]
            )
            expected |= named(f"{name} weight", weights[0, shown]) | named(f"{name} share", shares)
            responses = jacobian(scores[0])  # (queries, keys, keys)
            best = scores[0, shown].argmax()
            expected[f"{name} slope"] = responses[shown, best, best].item()
            course[f"{name} variance {i}"] = scores.var(correction=0).item()
            norms = responses.flatten(start_dim=1).norm(dim=-1)
            course[f"{name} gradient {i}"] = norms.mean().item()
        yield Stop([("slide", "d_k", i)], expected | course, {"d_k": size})


def regression(data: dict[str, Any]) -> Iterator[Stop]:
    keys, values = tensor(data["keys"]), [*data["values"]]

    def stop(i: int, j: int, *moves: tuple[str, str, Any]) -> Stop:
        query, width = data["queries"][i], data["widths"][j]
        scores = distance_scores(tensor([[[query / width]]]), keys[None, :, None] / width)
        weights = masked_softmax(scores)[0, 0]
        expected = named("weight", weights) | named("value", tensor(values))
        expected |= {"guess": (weights @ tensor(values)).item()}
        sliders = [("slide", "query", i), ("slide", "width w", j), *moves]
        return Stop(sliders, expected, {"query": query, "width": width, "values": [*values]})

    for i, j in product(range(len(data["queries"])), range(len(data["widths"]))):
        yield stop(i, j)
    order = keys.argsort().tolist()
    for turn in range(60):  # the third time, each point is where it was given
        place, lap = turn % len(keys), turn // len(keys)
        k = order[place]
        heights = sorted({*data["heights"], data["given"][k]})
        at = heights.index(data["given"][k]) if lap == 2 else (31 * turn + lap) % len(heights)
        values[k] = heights[at]
        slider = f"value at key {data['keys'][k]:.2f}"
        moves = [("choose", f"value {k}", ""), ("slide", slider, at)]
        yield stop(turn, turn % len(data["widths"]), *moves)
    assert values == data["given"]


def lookup(data: dict[str, Any]) -> Iterator[Stop]:
    keys, values = tensor(data["keys"]), tensor(data["values"])
    for i, query in enumerate(data["queries"]):
        scores = distance_scores(tensor([[[query]]]), keys[None, :, None])
        weights = masked_softmax(scores)[0, 0]
        expected = named("weight", weights) | named("product", weights * values)
        expected |= {"answer": (weights @ values).item()}
        yield Stop([("slide", "query", i)], expected, {"query": query})


def scoring(data: dict[str, Any]) -> Iterator[Stop]:
    keys, W, W_q, W_k, w_v = (tensor(data[name]) for name in ("keys", "W", "W_q", "W_k", "w_v"))

    def five(queries: Tensor) -> dict[str, Tensor]:
        pair = queries[None], keys[None]
        return {
            "distance": distance_scores(*pair),
            "dot": dot_product_scores(*pair),
            "scaled dot": scaled_dot_product_scores(*pair),
            "bilinear": bilinear_scores(*pair, W),
            "additive": additive_scores(*pair, W_q, W_k, w_v),
        }

    middles = [6 * (i + 0.5) / data["cells"] - 3 for i in range(data["cells"])]
    shares: Readings = {}
    for name, scores_of_places in five(tensor(list(product(middles, repeat=2)))).items():
        best = (scores_of_places[0] > scores_of_places[0].max(-1).values[:, None] - 1e-9).int()
        parts = best.argmax(-1).bincount(minlength=len(keys)) / len(best)
        shares |= {f"{name} region {k}": s for k, s in enumerate(parts.tolist()) if s > 0}
    for i, j in product(range(25), repeat=2):
        query = [-3 + i / 4, -3 + j / 4]
        expected = {**shares}
        for name, row in five(tensor([query])).items():
            weights = masked_softmax(row)[0, 0]
            expected |= named(f"{name} score", row[0, 0]) | named(f"{name} weight", weights)
            expected |= named(f"{name} key", weights) | {f"{name} sum": 1.0}
        moves = [("slide", "query, feature 1", i), ("slide", "query, feature 2", j)]
        yield Stop(moves, expected, {"query": query})


def matmul(data: dict[str, Any]) -> Iterator[Stop]:
    queries, keys = tensor(data["Q"]), tensor(data["K"])
    scores = dot_product_scores(queries, keys)
    for sheet, matrix in enumerate(scores):
        expected = named("entry", matrix) | named("q", queries[sheet]) | named("k", keys[sheet])
        for step in range(matrix.numel()):
            moves = [("slide", "sheet of the batch", sheet), ("slide", "entry", step)]
            yield Stop(moves, expected, {"sheet": sheet, "step": step})


def additive(data: dict[str, Any]) -> Iterator[Stop]:
    grid = tensor(data["grid"])[None, :, None]
    queries = torch.cat([grid, torch.ones_like(grid)], dim=-1)
    W_q, W_k, w_v = (tensor(data[name]) for name in ("W_q", "W_k", "w_v"))
    for n, (j, factor) in product(range(1, len(w_v) + 1), enumerate(data["scales"])):
        scores = additive_scores(queries, grid, factor * W_q[:n], factor * W_k[:n], w_v[:n])[0]
        expected = named("score", scores)
        expected |= {"low": scores.min().item(), "high": scores.max().item()}
        # Every query of the slice in turn, over the settings of the other two.
        for at in range(n + j, len(data["grid"]), len(data["scales"])):
            moves = [
                ("slide", "hidden units", n - 1),
                ("slide", "scale of W_q, W_k", j),
                ("slide", "query of the curve", at),
            ]
            traits = {"hidden": n, "scale": factor, "query": data["grid"][at]}
            yield Stop(moves, expected | named("slice", scores[at]), traits)


def heads(data: dict[str, Any]) -> Iterator[Stop]:
    places = torch.eye(8, dtype=torch.float64).expand(32, -1, -1)
    x = torch.eye(32, dtype=torch.float64).reshape(32, 8, 4)
    wanted = torch.cat([x.roll(1, dims=1)[..., :2], x.roll(-1, dims=1)[..., 2:]], dim=-1)
    for i, n in enumerate(data["counts"]):
        weights, error = trained_anew(n, places, x, wanted)
        expected = named("weight", weights) | {"error": error}
        for query in range(8):
            moves = [("slide", "heads", i), ("slide", "query position", query)]
            arrows = named("arrow", weights[:, query])
            wide = {key: weight for key, weight in arrows.items() if weight > data["least"] + 1e-3}
            traits = {"num_heads": n, "query": query, "head": "all"}
            yield Stop(moves, expected | wide, traits, 5.1e-4)
        for head in range(n) if n > 1 else ():
            moves = [("slide", "query position", head), ("press", f"Head {head}", None)]
            alone = {
                key: value for key, value in expected.items() if key.startswith(f"weight {head} ")
            }
            yield Stop(moves, alone, {"num_heads": n, "query": head, "head": head}, 5.1e-4)


def trained_anew(num_heads: int, places: Tensor, x: Tensor, wanted: Tensor) -> tuple[Tensor, float]:
    """The ring trained a second time, through the framework's functions alone."""
    with torch.random.fork_rng(devices=[]), in_float64():
        torch.manual_seed(0)
        module = MultiHeadAttention(
            4, num_heads, d_k=16 // num_heads, d_v=16 // num_heads, query_size=8, key_size=8
        )
    parameters = [module.W_q.weight, module.W_k.weight, module.W_v.weight, module.W_o.weight]
    optimiser = torch.optim.Adam(parameters, lr=0.03)

    def split(y: Tensor) -> Tensor:
        return y.unflatten(-1, (num_heads, -1)).transpose(1, 2)

    for _ in range(150):
        queries, keys, values = (
            split(torch.nn.functional.linear(y, w))
            for y, w in zip((places, places, x), parameters[:3], strict=True)
        )
        weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, dim=-1)
        merged = (weights @ values).transpose(1, 2).flatten(start_dim=2)
        error = (torch.nn.functional.linear(merged, parameters[3]) - wanted).square().sum() / 32
        optimiser.zero_grad()
        error.backward()
        optimiser.step()
    return weights[0].detach(), error.item()


def block(data: dict[str, Any]) -> Iterator[Stop]:
    x, draws = example(5, 8, seed=7), tensor(data["draws"])
    layer: SelfAttentionBlock = toy_block(8)
    code = sinusoidal_positions(5, 8).double()
    drawn = 0  # which draw of dropout the figure is at

    def run(order: list[int], on: bool, rate: float) -> tuple[Tensor, Tensor]:
        """Weights after dropout and outputs, with the block's parts put together here."""
        z = x[order] + on * code
        scores = scaled_dot_product_scores(layer.query(z)[None], layer.key(z)[None])
        kept = masked_softmax(scores)[0] * (draws[drawn] >= rate) / (1 - rate)
        return kept, layer.layer_norm(z + layer.dense(kept @ layer.value(z)))

    def stop(moves: list[Any], order: list[int], on: bool, rate: float) -> Stop:
        kept, outputs = run(order, on, rate)
        _, before = run(data["orders"]["as written"], on, 0.0)
        if not rate:
            assert torch.allclose(outputs, layer((x[order] + on * code)[None])[0], atol=1e-12)
        change = (outputs - before[order]).norm(dim=-1)
        readings = named("weight", kept) | named("sum", kept.sum(dim=-1))
        readings |= named("output", outputs) | named("change", change)
        traits = {"order": order, "dropout": rate, "positions": on, "draw": drawn}
        return Stop(moves, readings, traits)

    for (name, order), on in product(data["orders"].items(), (False, True)):
        chosen = [("pick", "order", name), ("pick", "positions", str(on).lower())]
        for j, rate in enumerate(data["rates"]):
            yield stop([*chosen, ("slide", "dropout rate", j)], order, on, rate)
            for _ in draws if rate else ():
                drawn = (drawn + 1) % len(draws)
                yield stop([("press", "Draw again", None)], order, on, rate)
    for turn, order in enumerate(map(list, permutations(range(len(x))))):
        moves = [("carry", token, place) for place, token in enumerate(order)]
        j = turn % len(data["rates"])
        settled = [("pick", "positions", str(turn % 3 > 0).lower()), ("slide", "dropout rate", j)]
        yield stop([*moves, *settled], order, turn % 3 > 0, data["rates"][j])


def live_model(data: dict[str, Any]) -> Iterator[Stop]:
    model = unpacked(data)
    total = len(run(model, data["word"]).written)
    for number in range(total + 1):
        expected: Readings = {}
        for (use, layer, head), weights in run(model, data["word"], num_shown=number).maps.items():
            if number or use == "encoder":
                expected |= named(f"{use} {layer} {head}", weights)
        traits = {"word": data["word"], "written": number}
        yield Stop([("slide", "tokens written", number)], expected, traits)


def language_model(data: dict[str, Any]) -> Iterator[Stop]:
    model = continues.unpacked(data)
    prompt = [data["vocabulary"].index(word) for word in data["prompt"].split()]
    sliders = {
        "written": ("words written", [*range(data["longest"] - len(prompt) + 1)]),
        "temperature": ("temperature", continues.TEMPERATURES),
        "top_k": ("top-k", [*range(1, len(data["vocabulary"]) + 1)]),
        "top_p": ("top-p", continues.SHARES),
        "seed": ("seed", [*range(10)]),
    }
    start = {"written": 4, "temperature": 1.0, "top_k": 35, "top_p": 1.0, "seed": 0}
    for name, (_, values) in sliders.items():
        for value in values:
            traits = start | {name: value}
            moves = [
                ("slide", label, stops.index(traits[trait]))
                for trait, (label, stops) in sliders.items()
            ]
            settings = {trait: traits[trait] for trait in traits if trait != "written"}
            now = continues.run(model, prompt, num_written=traits["written"], **settings)
            text = tensor([*prompt, *now.written]).long()
            losses = torch.nn.functional.cross_entropy(now.logits[:-1], text[1:], reduction="none")
            expected = named("looks", now.weights[:, :, -1].amax(dim=-1))
            expected |= {f"word {i}": loss for i, loss in enumerate(losses.tolist(), start=1)}
            best = int(now.chances.argmax())
            expected[f"next {best}"] = now.chances[best].item()
            yield Stop(moves, expected, traits)


def tiling(data: dict[str, Any]) -> Iterator[Stop]:
    scores, values = tensor(data["scores"]), tensor(data["values"])
    length = len(scores)
    for i, tile in enumerate(data["tiles"]):
        strips = length // tile
        for step in range(strips**2 + 1):
            held = (tile**2, tile**2 + 3 * tile) if step else (0, 0)  # before the first tile
            expected = {"held 0": held[0], "held 1": held[1], "held 2": length**2}
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
                    if seen > tile:
                        old = scores[row, : seen - tile].max()
                        expected[f"factor {row}"] = (old - part.max()).exp().item()
            power = 10 + step % 8
            scores_of_tile, carried = 128 * 128, 128 * (1 + 1 + 64)
            expected |= {"memory 0": 4 * 4**power, "memory 1": 4 * (scores_of_tile + carried)}
            moves = [("slide", "tile size", i), ("slide", "tiles read", step)]
            moves.append(("slide", "positions n", power - 10))
            yield Stop(moves, expected, {"tile": tile, "step": step, "n": 2**power})


STOPS: dict[str, Callable[[dict[str, Any]], Iterator[Stop]]] = {
    kind: globals()["live_model" if kind == "live" else kind] for kind in KINDS
}


def without_key(name: str) -> str:
    """The name of a slider that says which key it belongs to, without that key."""
    return name.partition(" at key")[0]


def ends_alike(description: str, sentence: str) -> bool:
    """Whether the one ends in the other, where a last digit may be rounded the other way."""
    number = r"−?\d+(?:\.\d+)?"
    pattern = "".join(
        f"({number})" if i % 2 else re.escape(part)
        for i, part in enumerate(re.split(f"({number})", sentence))
    )
    found = re.search(pattern + "$", description)
    if not found or not sentence:
        return False

    def value(text: str) -> float:
        return float(text.replace("−", "-"))

    return all(
        abs(value(a) - value(b)) <= 1.001 * 10.0 ** -len(a.partition(".")[2]) * ("." in a)
        for a, b in zip(found.groups(), re.findall(number, sentence), strict=True)
    )


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
    assert sorted(pages.keys() - {"walk"}) == sorted(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_slider_at_every_stop_shows_what_the_package_computes(
    kind: str, browser: Browser, host: Served, book: Path, pages: dict[str, str]
) -> None:
    stops: list[Stop] = []
    seen = []
    for home in (host.address, book.as_uri()):
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        watched = Watched(context, home)
        watched.page.goto(f"{home}/{pages[kind]}")
        figure = live(watched.page, kind)
        state = json.loads(figure.locator("script").text_content() or "")
        data = state["data"] | {name: value for name, value in state.items() if name != "data"}
        stops = stops or list(STOPS[kind](data))
        seen.append(sweep(figure, [stop.moves for stop in stops]))
        sliders = figure.locator(".af-slider:visible > span:first-child").all_text_contents()
        moved = [name for stop in stops for what, name, _ in stop.moves if what == "slide"]
        assert {*map(without_key, sliders)} == {*map(without_key, moved)}
        assert watched.errors == []
        assert watched.outside == []
        context.close()
    from_a_server, from_a_disk = seen
    assert from_a_server == from_a_disk
    assert len(from_a_disk) == len(stops) > 1
    twin = KIND[kind]()
    twin.data = state["data"]
    for stop, readings in zip(stops, from_a_disk, strict=True):
        wrong = {
            key: (readings.get(key), value)
            for key, value in stop.expected.items()
            if not abs(float(readings.get(key, "nan")) - value) <= stop.bound
        }
        assert not wrong, f"{stop.moves}: shown, expected: {wrong}"
        for name, value in stop.traits.items():
            setattr(twin, name, value)
        assert ends_alike(twin.describe(), readings["sentence"]), stop.moves


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

    reading = figure.locator(".af-reading")
    tab_to("[data-at]")
    assert "query 1, It: score" in reading.inner_text()
    page.keyboard.press("ArrowRight")
    assert "query 1, rains: score" in reading.inner_text()
    page.keyboard.press("ArrowDown")
    assert "query 2, rains: score" in reading.inner_text()
    tab_to("input[type=range]")
    page.keyboard.press("Home")
    assert figure.locator(".af-value").first.inner_text() == "0 of 4 keys"
    page.keyboard.press("ArrowRight")
    assert focused.get_attribute("aria-valuetext") == "1 of 4 keys"
    tab_to("select[name=fill]")
    page.keyboard.press("ArrowDown")
    assert focused.input_value() == "-1e6"
    tab_to(".af-reset")
    page.keyboard.press("Enter")
    assert figure.locator(".af-value").first.inner_text() == "2 of 4 keys"
    context.close()


def test_the_pointer_drags_the_query_and_reads_numbers(
    browser: Browser, book: Path, pages: dict[str, str]
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(f"{book.as_uri()}/{pages['scoring']}")
    figure = live(page, "scoring")
    tip = figure.locator(".af-tip").first
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
    assert figure.locator('[data-key="bilinear query"]').get_attribute("data-value") == str(
        tip.get_attribute("data-value")
    )
    figure.get_by_text("The numbers: scores and weights").click()
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
    assert second.locator("select[name=fill]").input_value() == "-inf"
    assert second.locator(".af-predict input:checked").count() == 0
    page.close()


def test_a_figure_that_fails_leaves_its_picture_and_says_so(
    browser: Browser, two_figures: str
) -> None:
    page = browser.new_page()
    page.goto(two_figures)
    broken = page.locator('attention-figure[kind="missing"]')
    assert "is not interactive here" in broken.get_by_role("note").inner_text()
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
