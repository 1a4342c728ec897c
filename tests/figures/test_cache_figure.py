"""The cache step by step: what may be kept, what is forgotten, and all of it on one screen."""

from __future__ import annotations

import re
from itertools import product

import pytest
import torch
from playwright.sync_api import Page, expect
from stage import Stage, pick, slide

from attention_book.figures import CacheFigure
from attention_book.figures.kv_cache import KV_HEADS, WINDOW, WORDS, read

SETTINGS = [*product(KV_HEADS, (False, True))]


def fates(page: Page, panel: int, part: int) -> str:
    """What became of each word's key or value in one panel: the first letters of its class."""
    classes = (
        page.locator(".af-panel")
        .nth(panel)
        .evaluate(
            """(panel, part) => [...panel.querySelectorAll(".af-block")]
            .filter((node) => !node.closest("[hidden]"))
            .filter((node, i) => i % 4 === part).map((node) => node.getAttribute("class"))""",
            part,
        )
    )
    return "".join(name.partition("af-is-")[2][0] for name in classes)


def keys(page: Page, name: str, layer: int) -> list[str]:
    """The numbers of the chosen word's key, as they are written in a panel."""
    return page.locator(f'[data-key^="{name} key {layer} "]:not([hidden])').all_text_contents()


# --- Why a cache is right -------------------------------------------------------------------------


@pytest.mark.parametrize(("kv_heads", "window"), SETTINGS)
def test_a_later_word_changes_no_key_under_the_mask_and_seen_ones_of_layer_1_without(
    kv_heads: int, window: bool
) -> None:
    for step in range(2, len(WORDS) + 1):
        for causal in (True, False):
            (old, _), (new, _) = (
                read(kv_heads, n, window=window, causal=causal) for n in (step - 1, step)
            )
            gaps = [(new[i][:-1] - old[i]).abs().amax(dim=-1) for i in range(2)]
            assert gaps[0].max() < 1e-12
            is_near = torch.arange(step - 1) >= (step - WINDOW if window else 0)
            # The page writes two decimals, and must show that something is another number.
            assert (gaps[1] > 0.005).equal(is_near & (not causal)), (step, causal)
            assert (gaps[1] < 1e-12).equal(~is_near | causal), (step, causal)


def test_both_steps_show_the_same_key_until_the_mask_is_off(stage: Stage) -> None:
    page = stage.show(CacheFigure(step=7), reduced_motion="reduce")
    for word in range(6):
        page.locator(f'[data-key="now weight {word}"]').click()
        for layer in (0, 1):
            assert len(keys(page, "now", layer)) == 4
            assert keys(page, "now", layer) == keys(page, "before", layer)
    assert page.locator("text.af-is-stale").count() == 0
    page.get_by_role("checkbox", name="causal mask").uncheck()
    for word in range(6):
        page.locator(f'[data-key="now weight {word}"]').click()
        assert keys(page, "now", 0) == keys(page, "before", 0)
        assert keys(page, "now", 1) != keys(page, "before", 1)
        assert page.locator("text.af-is-stale:not([hidden])").count() == (8 if word < 5 else 4)
    assert [fates(page, 1, part) for part in range(4)] == ["aaaaaan"] * 2 + ["ssssssn"] * 2


def test_blocks_say_what_is_new_kept_gone_or_computed_again(stage: Stage) -> None:
    page = stage.show(CacheFigure(), reduced_motion="reduce")
    said, legend = page.locator(".af-now"), page.locator(".af-fates > :not([hidden])")
    assert (fates(page, 0, 0), fates(page, 1, 3)) == ("kkkkn", "kkkkkn")
    assert legend.all_text_contents() == ["new", "kept", "step before"]
    slide(page, "step", 5)
    expect(said).to_have_text(
        "Step 7: 1 new key per head, 6 read back. Kept: 3,584 bytes, 512 more than before. "
        "Without the cache: 7 keys per head."
    )
    page.get_by_role("checkbox", name="window of 4").check()
    assert (fates(page, 0, 2), fates(page, 1, 2)) == ("ggkkkn", "gggkkkn")
    expect(said).to_have_text(
        "Step 7: 1 new key per head, 3 read back, and the oldest left. The window caps the cache "
        "at 2,048 bytes."
    )
    assert keys(page, "before", 1) != []
    assert keys(page, "now", 1) == []  # the third word is forgotten
    page.get_by_role("checkbox", name="cache", exact=True).uncheck()
    assert (fates(page, 0, 0), fates(page, 1, 3)) == ("aaaaan", "aaaaaan")
    expect(said).to_have_text(
        "Step 7: nothing was kept, so each head computes 7 keys, although the query sees 4."
    )
    page.get_by_role("checkbox", name="causal mask").uncheck()
    assert fates(page, 1, 2) == "aaasssn"
    expect(said).to_have_text(
        "Step 7: word 7 changed 3 of 6 old keys in layer 1. They may not be kept, so each head "
        "of layer 1 computes 7 keys."
    )


def test_a_block_is_as_wide_as_its_heads(stage: Stage) -> None:
    page = stage.show(CacheFigure(), reduced_motion="reduce")
    amount, room = (page.locator(f".af-block .af-{part}").first for part in ("amount", "room"))
    for heads in KV_HEADS:
        pick(page, "kv_heads", str(heads))
        width = amount.evaluate("(path) => path.getTotalLength()")
        assert width == pytest.approx(float(room.get_attribute("width")) * heads / 8, abs=0.01)


def test_the_keyboard_chooses_a_word(stage: Stage) -> None:
    page = stage.show(CacheFigure(), reduced_motion="reduce")
    page.locator('[data-key="now word 0"]').focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    pressed = page.locator('[aria-pressed="true"]:focus')
    expect(pressed).to_have_attribute(
        "aria-label", re.compile(r"^old: key of layer 1, kept; the query gives it the weight 0\.")
    )
    assert keys(page, "now", 0) == [
        f"{x:.2f}".replace("-", "−")
        for x in read(8, 6, window=False, causal=True)[0][0][1].tolist()
    ]
