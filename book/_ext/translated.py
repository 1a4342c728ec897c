"""Markdown with translations in the place of its messages.

Sphinx takes a page apart into one message for each inline text: a paragraph, a heading, an item,
a table cell, the title of a fold. Here the same texts are found in the source and replaced
there, so that marks around them, such as those of a list or a table, stay as they are.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from itertools import accumulate
from pathlib import Path

import yaml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser

ROOT = Path(__file__).resolve().parents[2]
_SETTINGS = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
#: What the pages are read with.
PARSER = create_md_parser(
    MdParserConfig(enable_extensions=set(_SETTINGS["parse"]["myst_enable_extensions"])),
    RendererHTML,
)


def _messages(token: Token) -> Iterator[tuple[str, str]]:
    """Each message of a block, with a pattern that finds it in the source."""
    if token.type == "html_block":
        for title in re.findall("<summary>(.*?)</summary>", token.content, re.DOTALL):
            yield html.unescape(title), f"(?<=<summary>){re.escape(title)}"
    elif token.type == "inline":
        lines = [re.escape(line.strip()) for line in token.content.split("\n")]
        # Between the lines may stand what indents or quotes them; a cell may escape its bars.
        pattern = r"[ \t]*\n[ \t>]*".join(lines).replace(r"\|", r"\\?\|")
        yield token.content.replace("\n", " ").strip(), pattern


def translated(text: str, words: Mapping[str, str]) -> str:
    """A Markdown text in another language; what has no translation stays as it is."""
    starts = [0, *accumulate(len(line) for line in text.splitlines(keepends=True))]
    said, end, in_table = [], 0, False
    for token in PARSER.parse(text) if words else ():
        in_table = {"table_open": True, "table_close": False}.get(token.type, in_table)
        for message, pattern in _messages(token):
            found = re.compile(pattern).search(text, max(end, starts[token.map[0]]))
            assert found is not None, f"{message!r} is not in its own source"
            translation = words.get(message, "").replace("\n", " ")
            if in_table:
                translation = re.sub(r"(?<!\\)\|", r"\\|", translation)
            elif token.type == "html_block":
                translation = html.escape(translation, quote=False)
            said += [text[end : found.start()], translation or found[0]]
            end = found.end()
    return "".join([*said, text[end:]])
