"""The catalogue of mistakes: whole entries, labels that the book has, no sentence twice."""

from __future__ import annotations

import json
import re

import pytest
from browser import ROOT

from attention_book.mistakes import MISTAKES
from attention_book.mistakes.catalogue import _ALL

WRITTEN = sorted(ROOT.glob("coursework/mistakes/*/*.diff"))
HEAD = re.compile(r"^=== (?!right)(?:(\w+): )?(.+)$", re.MULTILINE)


def labels() -> set[str]:
    """The labels of all notebooks and pages."""
    found: set[str] = set()
    for path in ROOT.glob("notebooks/*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            found |= set(re.findall(r"^\(([\w-]+)\)=", "".join(cell["source"]), re.MULTILINE))
    return found


def test_each_mistake_has_a_name_of_its_own_and_a_sentence_of_its_own() -> None:
    sentences = [mistake.sentence for mistake in _ALL]
    for mistake in _ALL:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)+", mistake.name), f"catalogue.py: {mistake.name}"
        assert mistake.sentence.endswith("."), f"catalogue.py: {mistake.name} has no sentence"
        assert sentences.count(mistake.sentence) == 1, f"catalogue.py: {mistake.name} has a twin"
    assert len(MISTAKES) == len(_ALL), "catalogue.py: a name is given twice"


def test_each_exhibit_is_a_label_of_the_book() -> None:
    known = labels()
    for mistake in _ALL:
        assert not mistake.exhibit or mistake.exhibit in known, (
            f"catalogue.py: {mistake.name} has an exhibit {mistake.exhibit} that no notebook has"
        )


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_wrong_solution_does_not_write_a_sentence_of_the_catalogue_again(path) -> None:
    names = {mistake.sentence: mistake.name for mistake in _ALL}
    for name, said in HEAD.findall(path.read_text(encoding="utf-8")):
        assert said not in names, f"{path}, {name}: write “{names[said]}” in place of its sentence"
        if re.fullmatch(r"[a-z]+(-[a-z]+)+", said):
            assert said in MISTAKES, f"{path}, {name}: the catalogue has no mistake “{said}”"


def test_the_grader_is_given_the_sentences_of_the_catalogue() -> None:
    path = ROOT / "coursework" / "mistakes" / "sentences.json"
    said = {said for file in WRITTEN for _, said in HEAD.findall(file.read_text(encoding="utf-8"))}
    wanted = {name: one.sentence for name, one in MISTAKES.items() if name in said}
    assert json.loads(path.read_text(encoding="utf-8")) == wanted, f"{path}: run make coursework"
