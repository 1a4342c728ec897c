"""What the book changes in the theme: scripts that no page needs go, parts of the contents fold."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import shorten
from typing import Any

import tinycss2
from bs4 import BeautifulSoup
from docutils import nodes
from editions import N_
from sphinx.application import Sphinx
from sphinx.locale import _

#: What the theme and Sphinx say, for which they have no Chinese.
SAID = (
    *(N_("Color mode"), N_("System Settings"), N_("© Copyright %(copyright)s.")),
    *(N_("Link to this heading"), N_("Link to this definition"), N_("Link to this image")),
    N_("Please activate JavaScript to enable the search\n    functionality."),
    N_(":"),  # after the name of a field, such as "Returns"
)
#: The same, where the theme asks for no translation.
FIXED = (N_("Toggle primary sidebar"), N_("Toggle secondary sidebar"), N_("Main"), N_("Page"))
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


def _sentences(paragraph: nodes.paragraph) -> str:
    """The sentences of a paragraph that contain no formula."""
    parts = ("$" if any(part.findall(nodes.math)) else part.astext() for part in paragraph)
    words = " ".join("".join(parts).split())
    sentences = re.findall(r"\S.*?(?:[.?!](?: |$)|[。？！]”?)", words)
    return "".join(sentence for sentence in sentences if "$" not in sentence).strip()


def _describe(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Give search engines and cards a page's first sentences, without those with formulas."""
    for paragraph in doctree.findall(nodes.paragraph) if doctree else ():
        if isinstance(paragraph.next_node(), nodes.emphasis):  # a chapter's line of minutes
            continue
        words = "" if isinstance(paragraph.parent, nodes.block_quote) else _sentences(paragraph)
        if words:
            # Chinese is cut after a sentence: it has no spaces, and its characters are wide.
            whole = re.match(r".{,100}[。？！]", words)
            context["page_description"] = (
                whole[0] if whole else shorten(words, 200, placeholder=" …")
            )
            return


def _correct_body(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    if context.get("body"):
        # The label hides from a screen reader what the fold says of itself.
        body = context["body"].replace('<summary aria-label="Toggle hidden content">', "<summary>")
        body = body.replace('<span class="colon">:</span>', f'<span class="colon">{_(":")}</span>')
        # Entries of a bibliography have a role of their own, which no list may contain.
        context["body"] = body.replace('role="list" class="citation-list"', 'class="citation-list"')


def _name_downloads(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    """Say what the download button gives, where the theme says how its file ends."""
    names = {
        ".ipynb": _("This page as a notebook (.ipynb)"),
        ".md": _("This page as text (.md)"),
        ".pdf": _("Print this page"),
    }
    for group in context.get("header_buttons", ()):
        if group.get("label") == "download-buttons":
            for button in group["buttons"]:
                button["text"] = names.get(button["text"], button["text"])


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
    """Drop the settings of the in-page kernel."""
    for raw in list(doctree.findall(nodes.raw)):
        if "thebe" in raw.astext() or raw.astext().startswith("<script>kernelName"):
            raw.parent.remove(raw)


class Fold(nodes.General, nodes.Element):
    """A box that is shut at first; `FoldTitle` is what stays visible."""


class FoldTitle(nodes.TextElement):
    """What a reader clicks to open a box."""


def _element(opening: str, closing: str) -> tuple[Any, Any]:
    """The two halves of a visitor that writes an element's tags."""
    return (
        lambda writer, node: writer.body.append(opening),
        lambda writer, node: writer.body.append(closing),
    )


def _fold_boxes(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Make each box of class `dropdown` a `<details>`: it folds without a script."""
    if app.builder.format != "html":
        return
    for box in list(doctree.findall(nodes.admonition)):
        if "dropdown" in box["classes"]:
            title, *content = box.children
            box.replace_self(Fold("", FoldTitle("", "", *title.children), *content))


def _translate_frame(app: Sphinx, failure: Exception | None) -> None:
    """Put in what the theme's templates say in English only."""
    said = re.compile(rf'(?<==")(?:{"|".join(FIXED)})(?=")')
    for file in Path(app.outdir).rglob("*.html") if app.config.language != "en" else ():
        page = file.read_text(encoding="utf-8")
        file.write_text(said.sub(lambda words: _(words[0]), page), encoding="utf-8")


def _drop_unused_files(app: Sphinx, failure: Exception | None) -> None:
    """Leave out of the built book what no page asks for: 8 MB of source maps, scripts and fonts."""
    static = Path(app.outdir) / "_static"
    for pattern in _UNUSED_FILES:
        for path in static.glob(pattern):
            path.unlink()


#: The theme's stylesheet, 400 KB that a page waits for.
STYLESHEET = "styles/pydata-sphinx-theme.css"


def _trim_stylesheet(app: Sphinx, failure: Exception | None) -> None:
    """Keep of the theme's rules those whose classes and names some page or script of it holds."""
    sheet = Path(app.outdir) / "_static" / STYLESHEET
    if failure or not sheet.is_file():
        return
    held = "".join(
        file.read_text(encoding="utf-8")
        for kind in ("*.html", "*.js")
        for file in Path(app.outdir).rglob(kind)
    )
    used = set(re.findall(r"[\w-]+", held))
    rules = tinycss2.parse_stylesheet(sheet.read_text(encoding="utf-8"), skip_comments=True)
    sheet.write_text(tinycss2.serialize(_kept(rules, used)), encoding="utf-8")


def _kept(rules: list[Any], used: set[str]) -> list[Any]:
    kept = []
    for rule in rules:
        if rule.type == "qualified-rule":
            selectors = [one for one in _selectors(rule.prelude) if _names(one) <= used]
            if not selectors:
                continue
            rule.prelude = tinycss2.parse_component_value_list(",".join(selectors))
        elif rule.type == "at-rule" and rule.lower_at_keyword in ("media", "supports"):
            rule.content = _kept(tinycss2.parse_rule_list(rule.content, skip_comments=True), used)
            if not any(inner.type != "whitespace" for inner in rule.content):
                continue
        kept.append(rule)
    return kept


def _selectors(prelude: list[Any]) -> list[str]:
    """What stands between the commas, except those inside brackets."""
    parts: list[list[Any]] = [[]]
    for token in prelude:
        if token == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    return [tinycss2.serialize(part) for part in parts]


def _names(selector: str) -> set[str]:
    """The classes and ids that a selector needs; what stands in brackets may be one of several."""
    while (outside := re.sub(r"\([^()]*\)", "", selector)) != selector:
        selector = outside
    return set(re.findall(r"[.#](-?[A-Za-z_][\w-]*)", selector))


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("doctree-resolved", _trim_body, priority=900)
    app.connect("doctree-resolved", _fold_boxes, priority=900)
    for change in (_trim_page, _describe, _correct_body, _name_downloads, _fold_parts):
        app.connect("html-page-context", change, priority=900)
    app.add_node(Fold, html=_element('<details class="admonition">', "</details>"))
    app.add_node(FoldTitle, html=_element('<summary class="admonition-title">', "</summary>"))
    app.connect("build-finished", _translate_frame)
    app.connect("build-finished", _drop_unused_files)
    app.connect("build-finished", _trim_stylesheet, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
