"""What a reader sees of a chapter: the idea first, the plumbing folded or gone.

Imports and the code of pictures are folded, solutions of exercises stay shut, and sections beside
the main path are marked. The notebooks themselves are not changed.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from myst_nb.sphinx_ import HideInputCells
from sphinx.application import Sphinx
from sphinx.locale import _
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform

#: Fewer lines of a picture's code than this stay open.
SHORT = 4


def _counted(source: str) -> tuple[int, int]:
    """How many imports a cell has, and how many other statements."""
    statements = ast.parse(source).body
    imports = sum(isinstance(one, ast.Import | ast.ImportFrom) for one in statements)
    return imports, len(statements) - imports


def _prompts(cell: dict[str, Any], source: str) -> tuple[str, str] | None:
    """What the fold of a cell's code says; None where the code stays open."""
    pictured = any("image/png" in output.get("data", {}) for output in cell["outputs"])
    if pictured and source.count("\n") + 1 >= SHORT:
        return _("Show the code of this picture"), _("Hide the code of this picture")
    shown = ("".join(output.get("data", {}).get("text/html", "")) for output in cell["outputs"])
    is_figure = any("<attention-figure" in text for text in shown)
    imports, others = _counted(source) if is_figure or "import " in source else (0, 1)
    if "hide-input" in cell["metadata"].get("tags", []) or (is_figure and others == 1):
        return _("Show the code"), _("Hide the code")
    if imports >= others:  # which sets up: beyond its imports a style, options or a seed
        return _("Show the imports"), _("Hide the imports")
    return None


def is_prose(text: str) -> bool:
    """Whether an output is sentences, which may wrap, and not a table or a tensor."""
    if re.search(r"tensor\(|\[\[", text):
        return False
    columns = re.search(r"^ |\S {2,}\S|\|", text, re.MULTILINE)
    return "\n" not in text.strip() or not columns


def _mark_prose(cell: nodes.Element) -> None:
    for block in cell.findall(nodes.literal_block):
        if "output" in block["classes"] and is_prose(block.astext()):
            block["classes"].append("prose")


def _arrange(app: Sphinx, doctree: nodes.document) -> None:
    path = Path(app.env.doc2path(app.env.docname))
    if path.suffix != ".ipynb":
        return
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    for node in list(doctree.findall(nodes.container)):
        if node.get("nb_element") != "cell_code":
            continue
        _mark_prose(node)
        if node.get("hide_mode") == "all":  # a folded cell is the solution of an exercise
            node["prompt_show"] = _("Show a solution")
            node["prompt_hide"] = _("Hide the solution")
        elif node.get("hide_mode") == "output":
            node["prompt_show"], node["prompt_hide"] = _("Show the output"), _("Hide the output")
        code = node.children[0]
        if code.get("nb_element") != "cell_code_source" or "error" in _kinds(cells, node):
            continue
        cell = cells[node["cell_index"]]
        prompts = node.get("hide_mode") != "all" and _prompts(cell, code.astext())
        if prompts:
            node["hide_mode"] = "input"
            node["prompt_show"], node["prompt_hide"] = prompts


def _kinds(cells: list[dict[str, Any]], node: nodes.Element) -> set[str]:
    return {output["output_type"] for output in cells[node["cell_index"]]["outputs"]}


class ShowOutputFirst(SphinxPostTransform):
    """What a cell shows, such as a picture, stands before the code that has just been folded."""

    default_priority = HideInputCells.default_priority + 1
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        for cell in self.document.findall(nodes.container):
            if cell.get("hide_mode") == "input":
                code, *shown = cell.children
                cell.children = [*shown, code]


class MarkSideSteps(SphinxTransform):
    """A section that begins with *Side step.* gets a class, before its words are translated."""

    default_priority = 5

    def apply(self, **kwargs: Any) -> None:
        for section in self.document.findall(nodes.section):
            body = [part for part in section if not isinstance(part, nodes.title | nodes.target)]
            if body and body[0].rawsource.startswith("*Side step.*"):
                section["classes"].append("side-step")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_transform(MarkSideSteps)
    app.add_post_transform(ShowOutputFirst)
    app.connect("doctree-read", _arrange)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
