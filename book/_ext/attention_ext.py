"""What the book asks of Sphinx beyond Jupyter Book, in one place.

Formulas are turned into HTML and MathML while the book is built, so that a page needs no script
for them. `{measured}` puts a number into prose that a notebook's cell measured. The colours of the
dimensions come from the package. The rest mends the theme: scripts that no page needs are dropped,
the parts of the contents fold.
"""

from __future__ import annotations

import ast
import atexit
import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent, shorten
from typing import Any, NamedTuple

from bs4 import BeautifulSoup
from docutils import nodes
from docutils.parsers.rst import Directive
from PIL import Image
from py_mini_racer import JSEvalException, MiniRacer
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole
from sphinx.util.math import get_node_equation_number
from sphinx.util.nodes import make_refnode
from sphinxcontrib.bibtex.plugin import register_plugin
from sphinxcontrib.bibtex.style.referencing import BracketStyle
from sphinxcontrib.bibtex.style.referencing.author_year import AuthorYearReferenceStyle

from attention_book.shapes import DIMENSIONS

logger = logging.getLogger(__name__)
HERE = Path(__file__).parent
VENDOR = HERE.parent / "_vendor"

# --- Formulas ---------------------------------------------------------------------------------

#: `\class{dim-keys}{n}` underlines n in the colour of the keys; JupyterLab's MathJax knows it too.
_KATEX = {"trust": True, "strict": False, "macros": {r"\class": r"\htmlClass{dim #1}{#2}"}}
_racer: MiniRacer | None = None


def _katex(tex: str, *, display: bool) -> str:
    global _racer
    if _racer is None:
        _racer = MiniRacer()
        # Its thread must end while Python still runs: from 3.13 on, the exit would wait for ever.
        atexit.register(_racer.close)
        _racer.eval((VENDOR / "katex" / "katex.min.js").read_text(encoding="utf-8"))
    options = {**_KATEX, "displayMode": display}
    return str(_racer.call("katex.renderToString", tex, options))


def _formula(translator: Any, node: nodes.Element, *, display: bool) -> str:
    tex = node.astext().strip()
    try:
        return _katex(tex, display=display)
    except JSEvalException as error:
        reason = re.search(r"KaTeX parse error: (.*)", str(error))
        message = reason[1] if reason else str(error).splitlines()[0]
        logger.warning("formula %r: %s", tex, message, location=node)
        return translator.encode(tex)


def _visit_math(translator: Any, node: nodes.math) -> None:
    translator.body.append(f'<span class="math">{_formula(translator, node, display=False)}</span>')
    raise nodes.SkipNode


def _visit_math_block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(translator.starttag(node, "div", CLASS="math scrolls"))
    if node["number"]:
        number = get_node_equation_number(translator, node)
        translator.body.append(f'<span class="eqno">({number})</span>')
    translator.body.append(_formula(translator, node, display=True) + "</div>\n")
    raise nodes.SkipNode


# --- Numbers that cells measured --------------------------------------------------------------

_GLUE = "application/papermill.record/text/plain"


class Measured(NamedTuple):
    """One glued value: its text, the page that measured it, and its cell there."""

    text: str
    page: str
    cell: str


def _glued(notebook: Path, root: Path) -> Iterator[tuple[str, Measured]]:
    page = notebook.relative_to(root).with_suffix("").as_posix()
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", []):
            record = output.get("data", {}).get(_GLUE)
            if record is not None:
                text = str(ast.literal_eval("".join(record)))
                name = output["metadata"]["scrapbook"]["name"]
                yield name, Measured(text, page, f"cell-{cell['id']}")


def _read_measurements(app: Sphinx) -> None:
    found: dict[str, Measured] = {}
    root = Path(app.srcdir)
    for notebook in sorted(root.glob("notebooks/*.ipynb")):
        for name, measured in _glued(notebook, root):
            if name in found:
                logger.warning(
                    "'%s' is measured twice: in %s and in %s", name, found[name].page, measured.page
                )
            found[name] = measured
    app.measured = found  # type: ignore[attr-defined]


class MeasuredRole(SphinxRole):
    """``{measured}`06-variance-64` ``: the number a cell glued, linked to that cell."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        measured = self.env.app.measured.get(self.text)  # type: ignore[attr-defined]
        self.env.note_dependency(HERE.parent.parent / "notebooks")
        if measured is None:
            logger.warning("no cell measures '%s'", self.text, location=self.get_location())
            return [nodes.Text(f"?{self.text}?")], []
        self.env.note_dependency(f"{HERE.parent.parent / measured.page}.ipynb")
        text = nodes.inline(measured.text, measured.text, classes=["measured"])
        if measured.page == self.env.docname:
            return [text], []
        link = addnodes.pending_xref("", text, reftype="measured", reftarget=self.text)
        return [link], []


def _resolve_measured(app: Sphinx, env: Any, node: Any, content: nodes.Node) -> nodes.Node | None:
    if node.get("reftype") != "measured":
        return None
    measured = app.measured[node["reftarget"]]  # type: ignore[attr-defined]
    if measured.page not in env.found_docs:
        logger.warning("the page %s is not in _toc.yml", measured.page, location=node)
        return content
    title = "measured in: " + env.titles[measured.page].astext()
    here = node.get("refdoc", env.docname)
    return make_refnode(app.builder, here, measured.page, measured.cell, content, title)


def _anchor_cells(app: Sphinx, doctree: nodes.document) -> None:
    """Give each code cell its id as an anchor, so that a number can link to its cell."""
    source = Path(app.env.doc2path(app.env.docname))
    if source.suffix != ".ipynb":
        return
    cells = json.loads(source.read_text(encoding="utf-8"))["cells"]
    for node in doctree.findall(nodes.container):
        if node.get("nb_element") == "cell_code":
            node["ids"].append(f"cell-{cells[node['cell_index']]['id']}")
            if node.get("hide_mode") == "all":  # a folded cell is the solution of an exercise
                node["prompt_show"], node["prompt_hide"] = "Show a solution", "Hide the solution"


# --- Citations --------------------------------------------------------------------------------


def _round() -> BracketStyle:
    return BracketStyle(left="(", right=")")


@dataclass
class RoundReferenceStyle(AuthorYearReferenceStyle):
    """Vaswani et al. (2017), as papers write it, instead of square brackets."""

    bracket_parenthetical: BracketStyle = field(default_factory=_round)
    bracket_textual: BracketStyle = field(default_factory=_round)
    bracket_author: BracketStyle = field(default_factory=_round)
    bracket_label: BracketStyle = field(default_factory=_round)
    bracket_year: BracketStyle = field(default_factory=_round)


# --- Dimensions -------------------------------------------------------------------------------


class DimensionTable(Directive):
    """Every dimension name of the book with its colour and its meaning, from the package."""

    def run(self) -> list[nodes.Node]:
        rows = [
            f'<tr><td><span class="swatch dim-{name}" aria-hidden="true"></span></td>'
            f'<td><span class="dim dim-{name}">{name}</span></td><td>{dimension.meaning}</td></tr>'
            for name, dimension in DIMENSIONS.items()
        ]
        head = '<th scope="col">colour</th><th scope="col">name</th><th scope="col">counts</th>'
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
    app.config.html_static_path.append(str(VENDOR))


# --- Docstrings -------------------------------------------------------------------------------


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


# --- The theme --------------------------------------------------------------------------------

#: Added to every page by extensions that Jupyter Book loads and this book does not use.
_UNUSED = re.compile(r"thebe|toggle(button|Hint|Open)|sphinx-design|design-tabs")


_UNUSED_FILES = (
    "**/*.map",
    "**/*.ttf",
    "scripts/fontawesome.js*",
    "locales/**/*.*",
    "katex/katex.min.js",
    "*webpack-macros.html",
    "sphinx-thebe.*",
    "togglebutton.*",
    "sphinx-design*",
    "design-tabs.js",
)


def _trim_page(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    for kind in ("script_files", "css_files"):
        kept, seen = [], set()
        for asset in context[kind]:
            name = str(getattr(asset, "filename", None) or "")
            body = str(getattr(asset, "attributes", {}).get("body") or "")
            if _UNUSED.search(name + body, re.IGNORECASE) or (name, body) in seen:
                continue
            seen.add((name, body))
            kept.append(asset)
        context[kind][:] = kept


def _describe(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Give search engines and cards a page's first sentences, without its formulas."""
    for paragraph in doctree.findall(nodes.paragraph) if doctree else ():
        if isinstance(paragraph.next_node(), nodes.emphasis):  # a chapter's line of minutes
            continue
        words = "".join(part.astext() for part in paragraph if not isinstance(part, nodes.math))
        context["page_description"] = shorten(words, 200, placeholder=" …")
        return


def _mend_body(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    """Say how large each picture is, so that the text stays where it is when one arrives."""
    sources = {name: path for path, name in getattr(app.builder, "images", {}).items()}

    def sized(tag: re.Match[str]) -> str:
        source = Path(app.srcdir) / sources.get(tag[2], "")
        if " width=" in tag[0] or source.suffix != ".png":
            return tag[0]
        with Image.open(source) as picture:
            width, height = picture.size
        return f'{tag[1]} width="{width}" height="{height}"'

    if context.get("body"):
        body = re.sub(r'(<img [^>]*?src="[^"]*_images/([^"]+)")', sized, context["body"])
        # The label hides from a screen reader what the fold says of itself.
        body = body.replace('<summary aria-label="Toggle hidden content">', "<summary>")
        # Entries of a bibliography have a role of their own, which no list may hold.
        context["body"] = body.replace('role="list" class="citation-list"', 'class="citation-list"')


def _fold_parts(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    """Make each part of the contents a `<details>`: it folds without a script, and has a name."""
    draw = context.get("generate_toctree_html")
    if draw is None:
        return

    def folded(*args: Any, **options: Any) -> Any:
        drawn = draw(*args, **options)
        if not isinstance(drawn, str):
            return drawn
        contents = BeautifulSoup(drawn, "html.parser")
        for caption in contents.select("p.caption"):
            items = caption.find_next_sibling("ul")
            part = contents.new_tag("details", open="")
            summary = contents.new_tag("summary", attrs={"class": "caption"})
            summary.string = caption.get_text(strip=True)
            caption.insert_before(part)
            caption.extract()
            part.extend([summary, items.extract()])
        return str(contents)

    context["generate_toctree_html"] = folded


def _trim_body(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Let pictures wait until they are near, and drop the settings of the in-page kernel."""
    for image in doctree.findall(nodes.image):
        image["loading"] = "lazy"
    for raw in list(doctree.findall(nodes.raw)):
        if "thebe" in raw.astext() or raw.astext().startswith("<script>kernelName"):
            raw.parent.remove(raw)


def _drop_unused_files(app: Sphinx, failure: Exception | None) -> None:
    """Leave out of the built book what no page asks for: 8 MB of source maps, scripts and fonts."""
    static = Path(app.outdir) / "_static"
    for pattern in _UNUSED_FILES:
        for path in static.glob(pattern):
            path.unlink()


def setup(app: Sphinx) -> dict[str, Any]:
    app.setup_extension("sphinx.ext.autodoc")  # whose docstrings it marks up
    register_plugin(
        "sphinxcontrib.bibtex.style.referencing", "author_year_round", RoundReferenceStyle
    )
    skip = (lambda translator, node: None,)
    app.add_html_math_renderer("katex", (_visit_math, *skip), (_visit_math_block, *skip))
    app.add_css_file("katex/katex.min.css")
    app.add_css_file("dimensions.css")
    app.add_role("measured", MeasuredRole())
    app.add_directive("dimensions", DimensionTable)
    app.connect("builder-inited", _read_measurements)
    app.connect("builder-inited", _write_dimension_colours)
    app.connect("doctree-read", _anchor_cells)
    app.connect("missing-reference", _resolve_measured)
    app.connect("autodoc-process-docstring", _mark_up_docstring, priority=400)  # then napoleon
    app.connect("doctree-resolved", _trim_body, priority=900)
    app.connect("html-page-context", _trim_page, priority=900)
    app.connect("html-page-context", _describe, priority=900)
    app.connect("html-page-context", _mend_body, priority=900)
    app.connect("html-page-context", _fold_parts, priority=900)
    app.connect("build-finished", _drop_unused_files)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
