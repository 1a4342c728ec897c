"""The page *Bring your own attention*: its box for pasted numbers and its two tables.

`{numbers}` is a form in which numbers that some program printed are held against the cases of
conformance/, by pasted.js and without a kernel. `{mistakes}` is the catalogue as a table, to whose
rows the form refers. `{implementations}` is what `make examined` has stored. In a notebook, the
words inside a directive stand in its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from editions import N_
from messages_ext import script_messages
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.builders.gettext import MessageCatalogBuilder, MsgOrigin
from sphinx.locale import _
from sphinx.util.docutils import SphinxDirective

from attention_book.mistakes import MISTAKES

EXTENSIONS = Path(__file__).parent
SCRIPT = EXTENSIONS / "pasted.js"
CASES = EXTENSIONS.parents[1] / "conformance"
STORED = EXTENSIONS.parents[1] / "notebooks" / "examined.json"
#: What somebody can have written, and what the cases of it ask for.
KINDS = {
    "softmax": (
        N_("A masked softmax"),
        N_(
            "You get scores of shape (batch, heads, queries, keys) and perhaps a rule: allowed "
            "(true: may attend), lengths (how many keys of each example are real), or causal (the "
            "last query belongs to the last key). Print the weights; a query that may attend to "
            "no key gets zeros."
        ),
    ),
    "attention": (
        N_("Attention of queries, keys and values"),
        N_(
            "You get queries, keys and values of shape (batch, heads, length, size) and perhaps "
            "a rule: allowed (true: may attend), lengths (how many keys of each example are "
            "real), or causal (the last query belongs to the last key). Print the output; a query "
            "that may attend to no key gets zeros."
        ),
    ),
    "heads": (
        N_("A layer with several heads"),
        N_(
            "You get sequences of shape (batch, length, size), matrices of shape (out, in), "
            "perhaps biases, and perhaps a rule, as for attention. Head 0 has the first rows of "
            "W_q. Print the output."
        ),
    ),
    "rotation": (
        N_("A rotary embedding"),
        N_(
            "Pair i of features turns by the angle position · base^(−2i / size). Its features are "
            "i and i + size/2 (halves) or 2i and 2i + 1 (neighbours). Print x, rotated."
        ),
    ),
    "decoder": (
        N_("A decoder with a key–value cache"),
        N_(
            "One layer with one head: x is the embedding of a token plus the row of places for "
            "its position, and the logits are (x + attention(x) W_oᵀ) · embeddingᵀ. With chunks, "
            "the tokens come in pieces of these lengths, and the cache has the earlier keys and "
            "values. Print all logits."
        ),
    ),
    "stories": (
        N_("A loader of stories260K"),
        N_(
            "The language model of chapter 11. Print the tokens of the text, the hidden states at "
            "the place and in the components given, one row per layer, or the logits at the places "
            "and columns given."
        ),
    ),
}
#: Ways to write the inputs; these are names.
SYSTEMS = ("NumPy", "PyTorch", "MATLAB", "Julia", "JSON")


def cases(kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((CASES / f"{kind}.json").read_text("utf-8"))["cases"]
    return found


def said() -> list[str]:
    """What the script says: its own words, and what the cases say of answers that are accepted."""
    notes = [one["note"] for kind in KINDS for case in cases(kind) for one in case["accepted"]]
    return list(dict.fromkeys([*(text for *_, text in script_messages(SCRIPT)), *notes]))


def _options(values: dict[str, str]) -> str:
    return "".join(f'<option value="{value}">{escape(said)}' for value, said in values.items())


def form() -> str:
    """The box: what was written, a case of it, its inputs, and what a program printed for them."""
    kinds = {"": _("Choose …")} | {kind: _(title) for kind, (title, __) in KINDS.items()}
    words = (_("You wrote"), _("Case"), _("Inputs for"), _("The inputs of this case"))
    wrote, case, system, inputs = map(escape, words)
    printed, compare = escape(_("What your code printed")), escape(_("Compare"))
    without = escape(_("This box compares numbers with a script."))
    typing = 'autocomplete="off" autocapitalize="off" spellcheck="false"'
    return (
        '<div class="exercise-box onscreen"><form class="exercise pasted">'
        f'<label><span>{wrote}</span> <select name="kind">{_options(kinds)}</select></label>'
        f'<div class="case" hidden><label><span>{case}</span> <select name="given"></select>'
        f'</label><p class="asked"></p><label><span>{system}</span> <select name="system">'
        f"{_options(dict(zip(SYSTEMS, SYSTEMS, strict=True)))}</select></label>"
        f'<label><span>{inputs}</span> <textarea name="inputs" rows="6" wrap="off" readonly>'
        f"</textarea></label><label><span>{printed}</span> "
        f'<textarea name="printed" rows="6" {typing}></textarea></label>'
        f'<button type="submit">{compare}</button></div><div role="status"></div>'
        f"<noscript>{without}</noscript></form></div>"
    )


class Numbers(SphinxDirective):
    """The box."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        return [nodes.raw("", form(), format="html")]


class Table(SphinxDirective):
    """A table whose cells are Markdown, translated as that of the page."""

    has_content = True
    heads: tuple[str, ...]

    def rows(self) -> Iterator[tuple[str, list[str | list[nodes.Node]]]]:
        """For each row a place to refer to, or nothing, and its cells."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        group = nodes.tgroup(cols=len(self.heads))
        group += [nodes.colspec(colwidth=1) for _head in self.heads]
        head, body = nodes.thead(), nodes.tbody()
        head += self._row("", self.heads)
        body += [self._row(place, cells) for place, cells in self.rows()]
        group += [head, body]
        return [nodes.table("", group, classes=["narrow-code"])]

    def _row(self, place: str, cells: Any) -> nodes.row:
        row = nodes.row(ids=[place] if place else [])
        for cell in cells:
            paragraph = nodes.paragraph()
            if isinstance(cell, str):
                parts, _messages = self.state.inline_text(cell, self.lineno)
                paragraph = nodes.paragraph(cell, "", *parts)
            else:
                paragraph += cell
            self.set_source_info(paragraph)
            row += nodes.entry("", paragraph)
        return row


class Mistakes(Table):
    """Every mistake of the catalogue, with the place in the book that takes it apart."""

    heads = ("name", "what is wrong", "where the book shows it")

    def rows(self) -> Iterator[tuple[str, list[str | list[nodes.Node]]]]:
        for name, mistake in MISTAKES.items():
            shown = [self._link(mistake.exhibit)] if mistake.exhibit else []
            yield f"mistake-{name}", [f"`{name}`", mistake.sentence, shown]

    def _link(self, label: str) -> nodes.Node:
        """A link with the words of the heading that the label stands at."""
        return addnodes.pending_xref(
            "",
            nodes.inline("", label, classes=["xref", "std", "std-ref"]),
            **{"refdomain": "std", "reftype": "ref", "reftarget": label},
            **{"refexplicit": False, "refwarn": True, "refdoc": self.env.docname},
        )


class Implementations(Table):
    """What was found in public implementations, as `make examined` has stored it."""

    heads = ("implementation", "findings", "notes", "not examined")

    def rows(self) -> Iterator[tuple[str, list[str | list[nodes.Node]]]]:
        self.env.note_dependency(str(STORED))
        for one in json.loads(STORED.read_text(encoding="utf-8"))["subjects"]:
            name = re.sub(r"(.+?)((?:, \w+ .*)?)$", r"`\1`\2", one["name"])  # what it is told of
            name = f"{one['distribution']} {one['version']}: {name} ({one['kind']})"
            found = [
                nodes.reference("", "", nodes.literal(name, name), refid=f"mistake-{name}")
                for name in one["findings"]
            ]
            notes = ", ".join(f"`{name}`" for name in one["notes"])
            rest = ", ".join(one["unexamined"]) or one["reason"]
            yield "", [name, found or "–", notes or "–", rest or "–"]

    def run(self) -> list[nodes.Node]:
        date = json.loads(STORED.read_text(encoding="utf-8"))["date"]
        return [nodes.paragraph("", _("Examined on {date}.").format(date=date)), *super().run()]


def _add_messages(app: Sphinx) -> None:
    if isinstance(app.builder, MessageCatalogBuilder):
        for text in said():
            app.builder.catalogs["sphinx"].add(text, MsgOrigin(str(SCRIPT), 1))


def _write_scripts(app: Sphinx) -> None:
    """Write the script and the cases before the pages, whose links contain their checksums."""
    if app.builder.format != "html":
        return
    folder = Path(app.outdir) / "_static"
    folder.mkdir(parents=True, exist_ok=True)
    versions = {}
    for kind in KINDS:
        data = json.dumps(cases(kind), ensure_ascii=False, separators=(",", ":"))
        code = f"(globalThis.attentionCases ??= {{}})[{json.dumps(kind)}] = {data};\n"
        (folder / f"cases-{kind}.js").write_text(code, encoding="utf-8")
        versions[kind] = sha256(code.encode()).hexdigest()[:8]
    known = {
        "words": {text: _(text) for text in said() if _(text) != text},
        "asked": {kind: _(asked) for kind, (__, asked) in KINDS.items()},
        "versions": versions,
    }
    head = f"const attentionPasted = {json.dumps(known, ensure_ascii=False)};\n"
    (folder / SCRIPT.name).write_text(head + SCRIPT.read_text(encoding="utf-8"), encoding="utf-8")


def _add_script(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    if '<form class="exercise pasted"' in context.get("body", ""):
        app.add_js_file(SCRIPT.name, loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("numbers", Numbers)
    app.add_directive("mistakes", Mistakes)
    app.add_directive("implementations", Implementations)
    app.connect("builder-inited", _add_messages)
    app.connect("builder-inited", _write_scripts)
    app.connect("html-page-context", _add_script)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
