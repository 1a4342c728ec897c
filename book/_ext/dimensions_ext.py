"""The colours of the dimensions, from the package: on the notation page and in docstrings."""

from __future__ import annotations

import html
import re
from pathlib import Path
from textwrap import dedent
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from editions import translations
from sphinx.application import Sphinx
from sphinx.locale import _

from attention_book.shapes import DIMENSIONS


class DimensionTable(Directive):
    """Every dimension name of the book with its colour and its meaning, from the package."""

    def run(self) -> list[nodes.Node]:
        words = translations(self.state.document.settings.env.config.language, "figures")
        rows = [
            f'<tr><td><span class="swatch dim-{name}" aria-hidden="true"></span></td>'
            f'<td><span class="dim dim-{name}">{name}</span></td>'
            f"<td>{words.get(dimension.meaning, dimension.meaning)}</td></tr>"
            for name, dimension in DIMENSIONS.items()
        ]
        titles = _("colour"), _("name"), _("counts")
        head = "".join(f'<th scope="col">{title}</th>' for title in titles)
        table = (
            '<div class="pst-scrollable-table-container"><table class="table dimensions">'
            f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        )
        return [nodes.raw("", table, format="html")]


def _write_dimension_colours(app: Sphinx) -> None:
    rules = [
        f":root {{ --dim-{name}: {dimension.colour}; }}\n"
        f".dim-{name} {{ --dim: var(--dim-{name}); }}\n"
        for name, dimension in DIMENSIONS.items()
    ]
    static = Path(app.outdir) / "_static"
    static.mkdir(parents=True, exist_ok=True)
    (static / "dimensions.css").write_text("".join(rules), encoding="utf-8")


def _mark_up_docstring(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Set each `Shapes:` table as it is written, its dimensions in their colours."""
    marked: list[str] = []
    table: list[str] | None = None
    for line in [*lines, "end"]:
        if table is not None and (line.startswith(" ") or not line):
            table.append(line)
            continue
        if table is not None:
            rows = dedent("\n".join(table)).strip()
            coloured = re.sub(r"\([^)]*\)", _colour_dimensions, html.escape(rows))
            pre = f'<div class="highlight"><pre class="shapes">{coloured}</pre></div>'
            marked += ["**Shapes**", "", ".. raw:: html", ""]
            marked += [f"   {row}" for row in pre.splitlines()] + [""]
            table = None
        if line == "Shapes:":
            table = []
        else:
            marked.append(re.sub(r"^Source:", "**Source:**", line))
    lines[:] = marked[:-1]


def _colour_dimensions(written: re.Match[str]) -> str:
    def colour(name: re.Match[str]) -> str:
        known = name[0] in DIMENSIONS
        return f'<span class="dim dim-{name[0]}">{name[0]}</span>' if known else name[0]

    return re.sub(r"\w+", colour, written[0])


def setup(app: Sphinx) -> dict[str, Any]:
    app.setup_extension("sphinx.ext.autodoc")  # whose docstrings it marks up
    app.add_css_file("dimensions.css")
    app.add_directive("dimensions", DimensionTable)
    app.connect("builder-inited", _write_dimension_colours)
    app.connect("autodoc-process-docstring", _mark_up_docstring, priority=400)  # then napoleon
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
