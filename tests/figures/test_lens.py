"""The lens: what it measures, what it stores, what it refuses, and how it is pointed at."""

from __future__ import annotations

import base64
import json
import re
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from browser import Watched
from playwright.sync_api import expect
from stage import PHONE, PHONES, Stage, box_of, one_screen, pick, readings, slide
from torch import Tensor

from attention_book import MultiHeadAttention, capture
from attention_book.figures import AttentionLens
from attention_book.figures.base import kit
from attention_book.figures.lens import story

WORDS = [f"w{i % 23}" for i in range(256)]


def drawn(*shape: int, causal: bool = True) -> Tensor:
    """Weights of random scores, some sharp and some flat."""
    generator = torch.Generator().manual_seed(0)
    scores = 3 * torch.randn(*shape, generator=generator)
    if causal:
        scores = scores.masked_fill(torch.ones(shape[-2:]).triu(1).bool(), -torch.inf)
    return scores.softmax(-1)


#: Layers of 32 heads over 256 places that share their numbers, so that making them takes no time.
LARGE = [drawn(1, 32, 256, 256)] * 48


@cache
def large() -> AttentionLens:
    """The largest lens, at a head whose map is not stored."""
    return AttentionLens(LARGE, WORDS, layer=30, head=5, query=200)


def test_the_descriptions_of_a_map_that_was_counted_by_hand() -> None:
    half = torch.tensor([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0.25, 0.75, 0], [0, 0.5, 0.25, 0.25]])
    lens = AttentionLens(half[None, None], ["a", "b", "a", "b"])
    found = {name: each[0] for name, each in lens.data["measures"].items()}
    assert found["previous"] == pytest.approx((0.5 + 0.25 + 0.25) / 3, abs=1e-4)
    assert found["first"] == pytest.approx((0.5 + 0 + 0) / 3, abs=1e-4)
    assert found["same"] == pytest.approx((1 + 0.5 + 0.75 + 0.75) / 4, abs=1e-4)
    # "a" at 2 follows an "a" at 0, after which there was 1; "b" at 3 a "b" at 1, and then 2.
    assert found["after"] == pytest.approx((0.25 + 0.25) / 2, abs=1e-4)
    assert found["entropy"] == pytest.approx((0.693147 + 0.562335 + 1.039721) / 4, abs=1e-4)


def test_the_lens_opens_at_the_last_place_and_the_head_that_looks_most_at_the_place_before() -> (
    None
):
    maps = drawn(2, 3, 12, 12)
    lens = AttentionLens(maps, WORDS[:12])
    before = torch.tensor(lens.data["measures"]["previous"])
    assert divmod(int(before.argmax()), 3) == (lens.layer, lens.head)
    assert lens.query == AttentionLens(maps, WORDS[:12], layer=1, head=2).query == 11
    assert AttentionLens(maps, WORDS[:12], query=5).query == 5
    assert AttentionLens(torch.ones(1, 1, 1, 1), ["a"]).query == 0


def test_the_challenge_is_met_at_one_head_and_absent_where_no_other_can_be_found(
    stage: Stage,
) -> None:
    lens = AttentionLens(*story())
    page = stage.show(lens)
    goal = page.locator(".af-challenge")
    expect(goal).to_have_text("Challenge: find the head with the largest share on the first place.")
    first = torch.tensor(lens.data["measures"]["first"])
    layer, head = divmod(int(first.argmax()), lens.data["heads"])
    slide(page, "layer", layer)
    expect(goal).to_contain_text("Challenge: ")
    slide(page, "head", head)
    expect(goal).to_contain_text("Challenge met: ")
    for alone in (torch.ones(1, 1, 1, 1), drawn(1, 1, 4, 4)):
        page = stage.show(AttentionLens(alone, WORDS[: alone.shape[-1]]))
        expect(page.locator(".af-challenge")).to_have_text("")


@pytest.mark.parametrize("narrow", [True, False])
def test_what_the_colours_stand_for_is_on_the_screen(narrow: bool, stage: Stage) -> None:
    lens = AttentionLens(*story())
    page = stage.phone(lens, *PHONES[0]) if narrow else stage.show(lens)
    key = page.locator(".af-lens-key")
    word = lens.data["tokens"][lens.query].strip()
    seen = f"what “{word}” reads" if narrow else "all its weights"  # larger fields show whole maps
    expect(key).to_contain_text(f"in a head: {seen}")
    expect(key).to_contain_text("share on the place before, relative to the largest")
    pick(page, "measure", "same")
    expect(key).to_contain_text("share on the same token, relative to the largest")
    drawing = box_of(page.locator(".af-lens-detail > .af-sheet"))
    assert drawing.width == pytest.approx(drawing.height, abs=1)  # places are as wide as high
    if not narrow:  # what is pointed at is named below the pointer, and covers no menu
        page.locator(".af-lens-grid > .af-sheet").hover(position={"x": 40, "y": 25})
        menus = box_of(page.locator(".af-lens-grid .af-lens-bar"))
        assert box_of(page.locator(".af-loupe").first).y >= menus.bottom


def test_what_no_place_has_is_not_described() -> None:
    alone = AttentionLens(torch.ones(1, 1, 1, 1), ["a"])
    assert [name for name, each in alone.data["measures"].items() if each] == ["same", "entropy"]
    assert "NaN" not in alone.to_html()


@pytest.mark.parametrize("causal", [True, False])
def test_each_weight_is_stored_in_8_bits_and_a_causal_map_as_its_triangle(causal: bool) -> None:
    weights = drawn(5, 8, 40, 40, causal=causal)
    lens = AttentionLens(weights, WORDS[:40])
    codes = torch.frombuffer(bytearray(base64.b64decode(lens.data["maps"])), dtype=torch.uint8)
    kept = torch.ones(40, 40).tril().bool() if causal else torch.ones(40, 40).bool()
    exact = weights[..., kept].flatten()
    assert codes.shape == exact.shape
    assert ((codes / 255).square() - exact).abs().max() < 1 / 255
    size = len(json.dumps(lens.state(), separators=(",", ":")))
    assert size <= (50 if causal else 90) * 1024


def test_the_largest_lens_fits_a_page_says_what_it_leaves_out_and_sends_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    lens = large()
    assert len(lens.to_html()) <= 4_000_000
    assert len(lens.data["whole"]) >= 20
    n = 30 * 32 + 5
    assert n not in lens.data["whole"]
    page = stage.show(lens)
    expect(page.locator(".af-small-print")).to_contain_text("Of 1,536 maps this page has")
    row = LARGE[0][0, 5, 200]
    largest = row.topk(lens.data["kept"])
    for weight, key in zip(largest.values.tolist(), largest.indices.tolist(), strict=True):
        shown = page.locator(f'[data-key="weight {key}"]').get_attribute("data-value")
        assert float(shown or "nan") == pytest.approx(weight, abs=0.004)
    unknown = next(k for k in range(200) if k not in largest.indices)
    assert "not stored" in str(
        page.locator(f'[data-key="weight {unknown}"]').get_attribute("aria-label")
    )
    assert lens.describe().endswith(str(page.locator(".af-now").text_content()))

    sent: list[Any] = []
    monkeypatch.setattr(lens, "send", lambda *message: sent.append(message))
    for asked in (n, -1, 1536, True, None):
        lens._answer(lens, {"head": asked}, [])
    [(content, [codes])] = sent
    assert content == {"head": n}
    place = 200 * 201 // 2
    found = torch.frombuffer(bytearray(codes), dtype=torch.uint8)[place : place + 201]
    assert ((found / 255).square() - row[:201]).abs().max() < 1 / 255


def test_heads_can_be_chosen_for_their_whole_maps() -> None:
    chosen = [(47, 31), (0, 3), (0, 3)]
    assert AttentionLens(LARGE, WORDS, whole=chosen).data["whole"] == [3, 1535]
    with pytest.raises(ValueError, match=r"of 90 whole maps with 256 places \d\d fit"):
        AttentionLens(LARGE, WORDS, whole=[divmod(n, 32) for n in range(90)])
    with pytest.raises(IndexError, match="layer 5, head 0, but there are 5 layers of 2 heads"):
        AttentionLens(drawn(5, 2, 3, 3), WORDS[:3], whole=[(5, 0)])
    with pytest.raises(TypeError, match="pairs of a layer and a head, but has 7"):
        AttentionLens(drawn(5, 2, 3, 3), WORDS[:3], whole=[7])


ONE, LIST = drawn(1, 2, 3, 3), [drawn(2, 2, 3, 3)] * 2
BAD: dict[str, tuple[Any, Any, dict[str, Any], type[Exception], str]] = {
    "None": (None, "abc", {}, ValueError, "weights is None.*with capture"),
    "fused": ((None, None), [*"abc"], {}, ValueError, "layer 0 are None.*capture.*eager"),
    "nothing": ([], [*"abc"], {}, ValueError, "no layers; run the model within `capture`"),
    "a text": ("maps", [*"abc"], {}, TypeError, "a list or tuple with one per layer, but is str"),
    "3 axes": (ONE[0], [*"abc"], {}, ValueError, r"4 axes.*but has 3: \(2, 3, 3\)"),
    "layer of 3": ([ONE[0]], [*"abc"], {}, ValueError, "layer 0 must be a tensor.*unsqueeze"),
    "number": ([1.0], [*"abc"], {}, ValueError, "layer 0 must be a tensor.*but are float"),
    "unequal": ([ONE, drawn(1, 4, 3, 3)], [*"abc"], {}, ValueError, "layer 1 has weights.*layer 0"),
    "cache": (ONE[:, :, 2:], [*"abc"], {}, ValueError, "1 queries and 3 keys.*without a cache"),
    "empty": (ONE[:, :0], [*"abc"], {}, ValueError, r"nothing to show in weights \(1, 0, 3, 3\)"),
    "long": (
        [torch.ones(()).expand(1, 4, 10_000, 10_000)] * 60,
        [*"abc"],
        {},
        ValueError,
        r"60 layers × 4 heads × 10,000 places .* leave out layers with weights\[:48\] and places",
    ),
    "heads": (
        torch.full((1, 40, 3, 3), 1 / 3),
        [*"abc"],
        {},
        ValueError,
        r"leave out heads with weights\[..., :32, :, :\]$",
    ),
    "tokens": (ONE, [*"ab"], {}, ValueError, "2 tokens for 3 positions"),
    "one text": (ONE, "abc", {}, TypeError, "tokens must be a list.*one text"),
    "no text": (ONE, [], {}, ValueError, "there are no tokens; pass the 3 pieces"),
    "no tokens": (ONE, None, {}, ValueError, "there are no tokens; pass the 3 pieces"),
    "NaN": (ONE * torch.nan, [*"abc"], {}, ValueError, "layer 0 holds NaN or infinity"),
    "scores": (ONE - 1, [*"abc"], {}, ValueError, "layer 0 must hold weights from 0 to 1"),
    "dropout": (ONE * 2, [*"abc"], {}, ValueError, r"has 2; .*model.eval\(\)"),
    "boolean": (ONE > 0, [*"abc"], {}, TypeError, "layer 0 must hold real numbers"),
    "example": (LIST, [*"abc"], {"example": 2}, IndexError, "from 0 to 1.*batch has 2, but is 2"),
    "negative": (LIST, [*"abc"], {"example": -1}, IndexError, "example must be from 0 to 1"),
    "true": (LIST, [*"abc"], {"example": True}, IndexError, "example must be from 0 to 1"),
    "argument": (ONE, [*"abc"], {"heads": 2}, TypeError, "no argument 'heads'"),
}


@pytest.mark.parametrize(("weights", "tokens", "more", "error", "words"), BAD.values(), ids=BAD)
def test_what_cannot_be_shown_gets_one_sentence(weights, tokens, more, error, words) -> None:
    with pytest.raises(error, match=words) as caught:
        AttentionLens(weights, tokens, **more)
    message = str(caught.value)
    assert message.startswith("AttentionLens: ")
    assert "\n" not in message


def hugging_face(kind: str) -> tuple[Any, Tensor]:
    """A small model of that kind with random parameters, and a batch of two texts."""
    sizes = {"num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 32}
    config = getattr(transformers, f"{kind}Config")(vocab_size=50, **sizes)
    torch.manual_seed(0)
    return getattr(transformers, f"{kind}Model")(config).eval(), torch.arange(18).reshape(2, 9)


@pytest.mark.parametrize("kind", ["GPT2", "Bert", "Llama"])
def test_models_of_hugging_face_are_seen_captured_or_by_their_own_attentions(kind: str) -> None:
    model, ids = hugging_face(kind)
    tokens = [f"t{i}" for i in ids[1].tolist()]
    with torch.no_grad(), capture(model) as maps:
        model(ids)
    captured = AttentionLens(maps, tokens, 1)
    assert captured.data["causal"] is (kind != "Bert")
    model.set_attn_implementation("eager")
    own = model(ids, output_attentions=True).attentions  # with gradients
    assert AttentionLens(own, tokens, example=1).state() == captured.state()
    stacked = np.stack([layer[1].detach().numpy() for layer in own])
    assert AttentionLens(stacked, tokens).state() == captured.state()
    assert AttentionLens(torch.stack(maps), tokens, 1).state() == captured.state()


def test_the_books_modules_half_precision_rows_that_sum_to_less_and_odd_tokens() -> None:
    attention = MultiHeadAttention(8, 2).eval()
    attention(*torch.rand(3, 4, 5, 8).unbind())
    odd = ["\n", "", " ", "$a", "</script>" * 9]
    lens = AttentionLens([attention.attention_weights], odd, 3)
    assert lens.data["tokens"] == ["⏎", "∅", "␣", "$a", "</script></scri…"]
    printed = re.findall(r">([01]\.\d\d)<", lens.still())
    weights = lens._map().flatten().tolist()
    assert printed == [f"{weight:.2f}" for weight in weights]  # not their roots, which shade it
    assert AttentionLens([attention.attention_weights.half()], odd).data["uneven"] == 0
    assert AttentionLens([attention.attention_weights * 0.5], odd).data["uneven"] == 10


def test_a_page_of_its_own_needs_no_other_script_also_twice_and_in_a_frame(stage: Stage) -> None:
    lens = AttentionLens(drawn(2, 2, 5, 5), [*"abcde"])
    html = lens.to_html(alone=True)
    assert html.startswith('<meta charset="utf-8">')
    stage.shown.append(Watched(stage.browser.new_context(offline=True), "about:"))
    page = stage.shown[-1].page
    page.set_content(f'{html}{html}<iframe sandbox="allow-scripts"></iframe>')
    page.locator("iframe").evaluate("(frame, html) => { frame.srcdoc = html; }", html)
    expect(page.locator(".af-form")).to_have_count(2)
    inside = page.frame_locator("iframe")
    inside.locator('[data-key="weight 1"]').click()
    expect(inside.locator(".af-now")).to_contain_text("“b” at place 1")


def test_a_touch_on_small_tiles_shows_a_loupe_and_chooses_the_head_it_holds(stage: Stage) -> None:
    page = stage.show(large(), viewport=PHONE, has_touch=True)
    grid, glass = page.locator(".af-lens-grid > .af-sheet"), page.locator(".af-loupe").first
    box = grid.bounding_box()
    assert box
    wire = page.context.new_cdp_session(page)
    opened = readings(page)

    def touch(kind: str, *at: tuple[int, int]) -> None:
        points = [{"x": box["x"] + x, "y": box["y"] + y} for x, y in at]
        wire.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    first = str(page.locator(".af-now").text_content())
    tile = (int((box["width"] - 28) // 32), int((box["height"] - 20) // 48))
    last = f"layer {int((140 - 18) // tile[1])}, head {int((140 - 26) // tile[0])}"
    touch("touchStart", (60, 60))
    expect(glass).to_be_visible()
    for step in range(1, 9):
        touch("touchMove", (60 + 10 * step, 60 + 10 * step))
    page.wait_for_function(
        """([opened, name]) => {
            const now = document.querySelector(".af-now").textContent.split(":")[0].toLowerCase();
            const held = document.querySelector(".af-loupe").textContent.split(":")[0];
            return now === held && now !== opened && held === name;
        }""",
        arg=[first.partition(":")[0].lower(), last],
    )
    above = glass.bounding_box()
    assert above
    assert above["y"] + above["height"] < box["y"] + 140  # nothing is under the finger
    assert page.evaluate("scrollY") == 0
    touch("touchEnd")
    expect(glass).to_be_hidden()
    assert readings(page) != opened


@pytest.mark.parametrize("make", [AttentionLens, large])
def test_on_a_phone_text_map_and_heads_share_a_screen_and_the_rest_is_folded(
    make: Any, stage: Stage
) -> None:
    page = stage.phone(make(), *PHONES[0])
    one_screen(page, "label, select, summary, [data-at]")
    assert page.get_by_role("slider").count() == 0
    page.locator(".af-lens-grid > .af-sheet").tap(position={"x": 30, "y": 19})
    expect(page.locator(".af-now")).to_contain_text("Layer 0, head 0")
    page.locator("summary").first.tap()
    expect(page.get_by_role("slider")).to_have_count(3)


def test_the_keyboard_chooses_a_token_and_a_head_and_a_click_on_the_map_a_place(
    stage: Stage,
) -> None:
    page = stage.show(AttentionLens())
    page.locator('[data-key="weight 0"]').focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator(".af-now")).to_contain_text("“Once” at place 1")
    page.locator("summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".af-now")).to_contain_text("Layer 1, head 3")
    drawing = page.locator(".af-lens-detail > .af-sheet")
    box = drawing.bounding_box()
    assert box
    drawing.click(position={"x": 5, "y": box["height"] * 20.5 / 35})
    assert page.get_by_role("slider", name="place").input_value() == "20"


def test_the_drawing_follows_the_colours_and_the_width_of_the_page(stage: Stage) -> None:
    page = stage.show(AttentionLens())
    drawing = "document.querySelector('.af-lens-grid > .af-sheet')"
    light = page.evaluate(f"{drawing}.toDataURL()")
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.wait_for_function(f"(light) => {drawing}.toDataURL() !== light", arg=light)
    before = page.evaluate(f"{drawing}.clientWidth")
    page.set_viewport_size({"width": 400, "height": 800})
    page.wait_for_function(f"(before) => {drawing}.clientWidth < before", arg=before)
    assert page.evaluate("document.documentElement.scrollWidth") == 400


#: A kernel in the page: it answers each question with a map whose weights are all 1.
KERNEL = """async ({ source, state }) => {
  const { default: figure } = await import(
    URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  const listeners = {};
  const model = {
    get: (name) => state[name],
    set: (name, value) => { state[name] = value; },
    on: (event, listener) => { listeners[event] = listener; },
    off: () => {},
    save_changes: () => {},
    send: ({ head }) => queueMicrotask(() => listeners["msg:custom"]({ head },
      [new DataView(new Uint8Array(256 * 257 / 2).fill(255).buffer)])),
  };
  const el = document.body.appendChild(document.createElement("div"));
  figure.render({ model, el });
}"""


def test_beside_a_kernel_the_page_asks_for_what_it_does_not_have(stage: Stage) -> None:
    lens = large()
    page = stage.show(AttentionLens())
    state = {**lens.state(), "caption": ""}
    page.evaluate(KERNEL, {"source": kit() + AttentionLens.module(), "state": state})
    first = page.locator(".af-form").last.locator('[data-key="weight 0"]')
    expect(first).to_have_attribute("data-value", "1")
