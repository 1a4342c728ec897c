"""Formulas as HTML and MathML, made while the book is built: a page needs no script for them."""

from __future__ import annotations

import atexit
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docutils import nodes
from editions import N_
from py_mini_racer import JSEvalException, MiniRacer
from sphinx.application import Sphinx
from sphinx.locale import _
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)
VENDOR = Path(__file__).parent.parent / "_vendor"

#: `\class{dim-keys}{n}` underlines n in the colour of the keys; JupyterLab's MathJax knows it too.
_KATEX = {"trust": True, "strict": False, "macros": {r"\class": r"\htmlClass{dim #1}{#2}"}}
_racer: MiniRacer | None = None
#: The words of formulas, as they stand in `\\text{…}`.
WORDS = (
    *(N_("projections"), N_("products"), N_("feed-forward"), N_("score"), N_("value"), N_("with ")),
    *(N_(" if "), N_(" else "), N_("so"), N_("at"), N_("before"), N_("after"), N_("update")),
    *(N_("a rotation by the angle "), N_("number of tokens"), N_("bytes"), N_("layers")),
    *(N_("batch"), N_("positions"), N_("key–value heads"), N_("bytes per number"), N_(" bytes")),
    *(N_("output"), N_("tile"), N_(" nats")),
)


def in_words(text: str, say: Callable[[str], str]) -> str:
    """Formulas, or a text with formulas, whose words another language says."""
    return re.sub(r"(?<=\\text\{)[^{}]+(?=\})", lambda word: say(word[0]), text)


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
    tex = in_words(node.astext().strip(), _)
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


#: Up to so many signs of TeX a formula and the full stop after it fit on any line together.
SHORT = 40


def _keep_with_stop(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Let no line begin with the full stop or comma that follows a formula."""
    for formula in list(doctree.findall(nodes.math)):
        after = formula.next_node(descend=False, siblings=True)
        stop = re.match(r"[^\s\w]+", after) if isinstance(after, nodes.Text) else None
        if stop is None or len(formula.astext()) > SHORT:
            continue
        together = nodes.inline(classes=["nobreak"])
        formula.replace_self(together)
        together += [formula, nodes.Text(stop[0])]
        after.parent.replace(after, nodes.Text(after[stop.end() :]))


def setup(app: Sphinx) -> dict[str, Any]:
    skip = (lambda translator, node: None,)
    app.add_html_math_renderer("katex", (_visit_math, *skip), (_visit_math_block, *skip))
    app.add_css_file("katex/katex.min.css")
    app.connect("doctree-resolved", _keep_with_stop)
    app.connect("builder-inited", lambda app: app.config.html_static_path.append(str(VENDOR)))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
