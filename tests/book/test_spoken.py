"""What the cells of notebooks say in another language: found, replaced, compared with English."""

from __future__ import annotations

import ast
import copy
import json
from pathlib import Path

import nbformat
import pytest
import spoken
from nbformat.v4 import new_code_cell, new_notebook
from scripts import tool

from attention_book import plots

CHINESE = "zh_CN"
CHAPTERS = sorted(spoken.NOTEBOOKS.glob("*.ipynb"))
SOURCE = '''\
def mean(x):
    """The mean."""
    return x  # as it is


ways = {"two words": 1, "dtype": 2, "plain": 3}  # {0}
print(f"share {ways['two words']:5.2f} of \\"all\\" {{x}}", end=", ")
ax.set(title="left", loc="upper left", label=[f"$q_{{{1}}}$", "W_q"])
# A comment that
# goes on.
show(text, "softmax")
'''


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def messages(source: str, name: str = "") -> list[str]:
    notebook = new_notebook(cells=[new_code_cell(source)])
    return [message for _, message in spoken.messages_of(notebook, name)]


def test_what_readers_see_is_a_message_and_what_the_code_needs_is_not(monkeypatch):
    found = ["The mean.", "as it is", "two words", 'share {0} of "all" {x}']
    found += ["two words", "left", "A comment that goes on."]
    assert messages(SOURCE) == found
    monkeypatch.setitem(spoken.NAMES, "it", {"plain"})
    assert messages(SOURCE, "it") == [*found[:3], "plain", *found[3:]]
    assert messages(SOURCE + '\ncheck("1.1", ...)\n') == ["The mean.", "as it is", found[-1]]


def test_a_message_is_replaced_wherever_it_stands_and_nothing_else():
    words = {"The mean.": "平均。", "two words": "两词", "left": "左", "upper left": "？"}
    words |= {'share {0} of "all" {x}': '"全部" {x} 的 {0}', "A comment that goes on.": "一句话。"}
    assert (
        spoken.in_language(SOURCE, words)
        == '''\
def mean(x):
    """平均。"""
    return x  # as it is


ways = {"两词": 1, "dtype": 2, "plain": 3}  # {0}
print(f"\\"全部\\" {{x}} 的 {ways['两词']:5.2f}", end=", ")
ax.set(title="左", loc="upper left", label=[f"$q_{{{1}}}$", "W_q"])
# 一句话。
show(text, "softmax")
'''
    )


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_code_says_the_same_when_each_message_is_its_own_translation(path):
    notebook = read(path)
    words = {message: message for _, message in spoken.messages_of(notebook, path.stem)}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            said = spoken.in_language(cell.source, words, comments=False)
            plain = spoken.in_language(cell.source, {}, comments=False)
            assert ast.dump(ast.parse(said)) == ast.dump(ast.parse(plain)), cell.id


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_notebook_shows_in_chinese_what_it_shows_in_english(path):
    """Each picture is drawn, no written word is English, and the numbers are the same."""
    assert [*spoken.faults(read(path), path.stem, CHINESE)] == []


def test_what_is_missing_is_named_with_its_cell(monkeypatch, tmp_path):
    name = "02_scoring_functions"
    notebook, stored = read(spoken.NOTEBOOKS / f"{name}.ipynb"), tmp_path / "stored.json"
    made = json.loads(spoken.outputs_file(name, CHINESE).read_text(encoding="utf-8"))
    words = spoken.words_of(notebook, name, CHINESE)
    monkeypatch.setattr(spoken, "outputs_file", lambda *_: stored)

    def faults(outputs: dict, said: dict = words) -> list[str]:
        stored.write_text(json.dumps(outputs), encoding="utf-8")
        monkeypatch.setattr(spoken, "words_of", lambda *_: said)
        return [*spoken.faults(notebook, name, CHINESE)]

    assert faults(made) == []
    place = f"notebooks/{name}.ipynb, cell"
    without = {cell: what for cell, what in made.items() if cell != "cell-04"}
    [fault] = faults(without)
    assert fault.startswith(f"{place} cell-04: its picture is not drawn in zh_CN")

    other = copy.deepcopy(made)
    [output] = other["cell-17"]["outputs"]
    output["text"] = output["text"].replace("256", "257")
    [fault] = faults(other)
    assert fault == f"{place} cell-17: shows other numbers than in English: 257, 256"

    [output] = other["cell-17"]["outputs"] = copy.deepcopy(made["cell-17"]["outputs"])
    output["text"] += "bilinear\n"
    fewer = {english: chinese for english, chinese in words.items() if english != "bilinear"}
    found = faults(other, fewer)
    assert f"{place} cell-17, line 2: “bilinear” is English in “bilinear”" in found
    assert any(fault.startswith(f"{place} cell-08: changed since it ran") for fault in found)


def test_columns_of_numbers_keep_their_places_when_measured_numbers_are_put_in():
    with_numbers_of = tool("execute").with_numbers_of
    assert with_numbers_of("点积   1.0  10\n加性 168.7   2", "dot  2.5   7\nadd  3.0 12") == (
        "点积   2.5   7\n加性   3.0  12"
    )


def test_pictures_say_that_a_typeface_is_missing(monkeypatch, capsys):
    monkeypatch.setattr(plots, "typeface", lambda: "")
    assert tool("execute").main([str(CHAPTERS[0])]) == 2
    assert "tools/system.sh fonts" in capsys.readouterr().out
