"""The published model that comes with the package: its text, its logits, and its tokens."""

import shutil
from pathlib import Path

import pytest
import torch
from cases import refuses
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from transformers import LlamaForCausalLM

from attention_book import LanguageModel, data
from attention_book.data import STORIES, stories

FOLDER, ENCODE, DECODE = stories()
THEIRS = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
MODEL = LanguageModel.from_pretrained(FOLDER).eval()
#: What the model writes by itself, greedily: https://github.com/karpathy/llama2.c, stories260K.md.
PUBLISHED = (
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park."
    " One day, she saw a big, red ball. She wanted to play with it, but it was too high.\n"
    "Lily's mom said, \"Lily, let's go to the park.\" Lily was sad and didn't know what to do. She"
    ' said, "I want to play with your ball, but I can\'t find it."\n'
    "Lily was sad and didn't know what to do. She said, \"I'm sorry, Lily. I didn't know what to"
    ' do."\n'
    "Lily didn't want to help her mom, so she said, \"I'm sorry, mom. I didn't know what to do.\""
    " Her mom said, \"Don't worry, Lily. We can help you."
)


def test_writes_the_published_text():
    assert DECODE(MODEL.generate(torch.tensor([[1]]), 256)[0]) == PUBLISHED


def test_logits_are_those_of_hugging_face():
    theirs = LlamaForCausalLM.from_pretrained(FOLDER)
    tokens = torch.tensor([ENCODE(PUBLISHED)])
    with torch.no_grad():
        assert (MODEL(tokens) - theirs(tokens).logits).abs().max() < 1e-4


#: Words that merge, spaces, bytes, and what looks like a token.
PARTS = [
    "the",
    " ",
    "  ",
    "Lily",
    "oo",
    "aaa",
    " upon",
    "\x00",
    "\n",
    "é",
    "中文",
    "😀",
    "▁",
    "<s>",
]


@pytest.mark.parametrize(
    "text",
    ["", " ", "<s>", "</s><unk>", "<0x41>", "\x00\x01\x7f", "👩‍👧", "从前有", "\r\n\t"],
)
def test_special_texts_are_text(text: str):
    assert ENCODE(text) == THEIRS.encode(text).ids
    assert DECODE(ENCODE(text)) == text
    assert max(ENCODE(text)[1:], default=3) >= 3
    assert ENCODE(text) == [1, *ENCODE(text, begin=False)]


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), st.lists(st.sampled_from(PARTS), max_size=30).map("".join)))
def test_tokens_are_those_of_the_library(text: str):
    assert ENCODE(text) == THEIRS.encode(text).ids
    assert DECODE(ENCODE(text)) == text


def test_a_long_text():
    text = "Lily and the cat " * 600
    assert ENCODE(text) == THEIRS.encode(text).ids


def test_bytes_that_are_no_text_are_shown():
    assert DECODE([1, 3 + 0xE4, *ENCODE("a", begin=False)]) == "� a"


@pytest.mark.parametrize("token", [-1, 512])
def test_refuses_what_is_not_a_token(token: int):
    with refuses(ValueError, f"{token} is not a token"):
        DECODE([1, token])


def test_refuses_what_is_not_text():
    with refuses(TypeError, "text must be a string, but is int"):
        ENCODE(3)
    with pytest.raises(TypeError):
        DECODE([1.5])


@pytest.mark.parametrize("name", STORIES)
def test_refuses_files_that_are_missing_cut_or_altered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    folder = Path(shutil.copytree(FOLDER, tmp_path / "copy"))
    monkeypatch.setattr(data, "STORIES_FOLDER", folder)
    stories()
    content = (folder / name).read_bytes()
    for spoilt in (content[:-1], bytes([content[0] ^ 1]) + content[1:]):
        (folder / name).write_bytes(spoilt)
        with refuses(ValueError, f"{name} is not the published file"):
            stories()
    (folder / name).unlink()
    with refuses(FileNotFoundError, f"{name} is missing"):
        stories()
