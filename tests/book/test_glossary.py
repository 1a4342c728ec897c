"""One glossary for the Chinese edition: a term has there the name that the glossary gives it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator

import pytest
from browser import ROOT, built_book, chromium
from editions import EDITIONS
from scripts import tool
from terms_ext import homes

#: Terms that some messages use in another sense, or as the name of an axis, an argument or a label
#: of a picture, which stay English: how many do.
OTHER_SENSES = {
    "dropout": 14,  # the argument `dropout` in docstrings; the verb, in columns of cells
    "batch": 10,  # the axis in shapes
    "value": 10,  # any number; "valuable"
    "mask": 9,  # the verb; an argument
    "key": 6,  # the axis; left out of a label of a cell
    "variance": 3,  # inside a formula of an exercise
    "score": 6,  # the tensor
    "attention": 4,  # in formulas, in a title of others, in FlashAttention's second spelling
    "transpose": 4,  # the function
    "padding": 1,
    "embedding": 1,  # "rotary embedding", which has a name of its own
    "head": 1,  # a line of code
    "post-norm": 1,  # in a column
    "pre-norm": 1,
}


def terms() -> Iterator[tuple[str, list[str]]]:
    """Each English term with its Chinese names."""
    glossary = (ROOT / "book" / "glossary.md").read_text(encoding="utf-8").split("|---|")[-1]
    for english, chinese in re.findall(
        r"^\| ([^|]+) \| ([^|]*[\u4e00-\u9fff][^|]*) \|", glossary, re.M
    ):
        names = [re.sub(r"\s*\(.*?\)", "", name) for name in english.split(", ")]
        said = chinese.split("，")
        for place, name in enumerate(names):
            yield name, said if len(names) == 1 else [said[place]]


def test_every_row_of_the_glossary_has_five_cells() -> None:
    """A damaged row shows its cells one column off, and its term has no anchor and no tooltip."""
    glossary = (ROOT / "book" / "glossary.md").read_text(encoding="utf-8")
    rows = glossary.split("|---|")[-1].partition("\n")[2].split("\n\n")[0].splitlines()
    assert len(rows) > 80
    for row in rows:
        assert re.fullmatch(r"\|( [^|]+ \|){5}", row), row


def words(message: str) -> str:
    """A message without code, formulas, link targets and shapes."""
    return re.sub(r"\(\w+(?:, [\w*+ ]+)*\)|`[^`]*`|\$[^$]*\$|\]\([^)]*\)", " ", message)


def test_terms_have_the_names_of_the_glossary() -> None:
    translations = tool("translations")
    known = sorted(terms(), key=lambda term: -len(term[0]))
    assert len(known) > 70
    agree = 0
    differ: Counter[str] = Counter()
    for path in translations.CATALOGUES.rglob("*.po"):
        if path.stem == "glossary":
            continue
        for message, translation in translations.messages(translations.read(path)).items():
            if not translation:  # open: the page shows the English
                continue
            rest = words(message)
            for english, chinese in known:
                named = re.compile(rf"(?<![\w-]){re.escape(english)}(?:s|es)?(?![\w-])", re.I)
                if named.search(rest):
                    rest = named.sub(" ", rest)  # "attention" in "self-attention" is no term
                    if any(name.lower() in translation.lower() for name in chinese):
                        agree += 1
                    else:
                        differ[english] += 1
    assert not differ - Counter(OTHER_SENSES)
    assert agree > 3_500


@pytest.mark.parametrize("language", EDITIONS)
def test_a_search_by_any_name_of_a_term_begins_with_the_chapter_that_explains_it(language):
    book = built_book()
    known = {name: page for name, (page, _) in json.loads(homes(language)).items()}
    assert {"打分函数", "scoring function", "layernorm", "yanma"} <= known.keys()
    with chromium() as browser:
        page = browser.new_page()
        page.goto(f"{(book / EDITIONS[language].folder).as_uri()}/search.html?q=softmax")
        page.wait_for_selector("#search-results li a")
        first = "name => Search._performSearch(...Search._parseQuery(name)).at(-1)?.[0]"
        found = page.evaluate(f"names => names.map({first})", [*known])
    places = zip(known.items(), found, strict=True)
    glossary = "book/glossary"
    assert not {name: place for (name, home), place in places if place not in (home, glossary)}
