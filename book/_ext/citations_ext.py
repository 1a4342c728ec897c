"""Citations as papers write them, with round brackets: Vaswani et al. (2017)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from editions import N_
from pybtex.richtext import Tag, Text
from sphinx.application import Sphinx
from sphinx.locale import _
from sphinxcontrib.bibtex.plugin import register_plugin
from sphinxcontrib.bibtex.style.referencing import BracketStyle, PersonStyle
from sphinxcontrib.bibtex.style.referencing.author_year import AuthorYearReferenceStyle


def _round(left: str = N_("(")) -> BracketStyle:
    """Brackets and what parts the works in them, as the language of the edition writes them."""
    return BracketStyle(left=_(left), right=_(")"), sep=_("; "))


def _people() -> PersonStyle:
    """Names as the language of the edition joins them."""
    others = _(" et al.")
    latin = Text(" ", Tag("em", "et al."))
    return PersonStyle(sep2=_(" and "), other=latin if others == " et al." else others)


@dataclass
class RoundReferenceStyle(AuthorYearReferenceStyle):
    """Vaswani et al. (2017), as papers write it, instead of square brackets."""

    bracket_parenthetical: BracketStyle = field(default_factory=_round)
    bracket_textual: BracketStyle = field(default_factory=lambda: _round(N_(" (")))
    bracket_author: BracketStyle = field(default_factory=_round)
    bracket_label: BracketStyle = field(default_factory=_round)
    bracket_year: BracketStyle = field(default_factory=_round)
    person: PersonStyle = field(default_factory=_people)
    author_year_sep: str = field(default_factory=lambda: _(", "))
    text_reference_sep: str = ""  # the bracket holds the space, where there is one


def setup(app: Sphinx) -> dict[str, Any]:
    register_plugin(
        "sphinxcontrib.bibtex.style.referencing", "author_year_round", RoundReferenceStyle
    )
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
