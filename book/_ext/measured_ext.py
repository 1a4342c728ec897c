"""`{measured}` puts a measured number into prose: from a notebook's cell, linked to that cell, or
a ratio of the stored benchmark run, which is part of the repository and not of the book.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from measurements import benchmarked, glued
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.locale import _
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole
from sphinx.util.nodes import make_refnode

logger = logging.getLogger(__name__)
ROOT = Path(__file__).parents[2]


def _read_measurements(app: Sphinx) -> None:
    root = Path(app.srcdir)
    found = dict(benchmarked(root))
    for notebook in sorted(root.glob("notebooks/*.ipynb")):
        for name, measured in glued(notebook, root):
            if name in found:
                logger.warning(
                    "'%s' is measured twice: in %s and in %s", name, found[name].page, measured.page
                )
            found[name] = measured
    app.measured = found


class MeasuredRole(SphinxRole):
    """``{measured}`06-variance-64` ``: the number a cell glued, linked to that cell."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        measured = self.env.app.measured.get(self.text)
        self.env.note_dependency(ROOT / "notebooks")
        if measured is None:
            logger.warning("no cell measures '%s'", self.text, location=self.get_location())
            return [nodes.Text(f"?{self.text}?")], []
        said = _(measured.text)  # such as "more than twice"
        text = nodes.inline(said, said, classes=["measured"])
        if measured.page:
            self.env.note_dependency(f"{ROOT / measured.page}.ipynb")
        if measured.page in ("", self.env.docname):
            return [text], []
        link = addnodes.pending_xref(
            "", text, refdomain="", reftype="measured", reftarget=self.text
        )
        return [link], []


def _resolve_measured(app: Sphinx, env: Any, node: Any, content: nodes.Node) -> nodes.Node | None:
    if node.get("reftype") != "measured":
        return None
    measured = app.measured[node["reftarget"]]
    if measured.page not in env.found_docs:
        logger.warning("the page %s is not in _toc.yml", measured.page, location=node)
        return content
    title = _("measured in: ") + env.titles[measured.page].astext()
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


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_role("measured", MeasuredRole())
    app.connect("builder-inited", _read_measurements)
    app.connect("doctree-read", _anchor_cells)
    app.connect("missing-reference", _resolve_measured)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
