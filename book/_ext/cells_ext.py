"""What a reader sees of a code cell: the idea first, the plumbing folded or gone.

Imports and the code of pictures are folded, calls of `glue`, which only carry numbers into prose,
are left out, solutions of exercises stay shut. The notebooks themselves are not changed.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

#: Fewer lines of a picture's code than this stay open.
SHORT = 4
SOLUTION = ("Show a solution", "Hide the solution")
IMPORTS = ("Show the imports", "Hide the imports")
PICTURE = ("Show the code of this picture", "Hide the code of this picture")
CODE = ("Show the code", "Hide the code")


def _is_glue(statement: ast.stmt) -> bool:
    """Whether a statement does nothing but carry numbers into prose, or import what does."""
    if isinstance(statement, ast.ImportFrom):
        return statement.module == "myst_nb"
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        called = statement.value.func
        return isinstance(called, ast.Name) and called.id == "glue"
    if isinstance(statement, ast.For | ast.With | ast.If):
        return not getattr(statement, "orelse", []) and all(map(_is_glue, statement.body))
    return False


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, [])
    for handler in getattr(statement, "handlers", []):
        yield handler.body


def without_glue(source: str) -> str:
    """A cell's source without the statements that only carry numbers into prose."""
    if "glue" not in source:
        return source
    lines: list[str | None] = [*source.splitlines()]

    def blank(statement: ast.stmt, instead: str | None = None) -> None:
        first, last = statement.lineno, statement.end_lineno or statement.lineno
        lines[first - 1 : last] = [instead] + [None] * (last - first)

    def drop(block: list[ast.stmt]) -> None:
        for statement in block:
            if _is_glue(statement):
                blank(statement)
            else:
                for inner in _blocks(statement):
                    drop(inner)
        if block and all(map(_is_glue, block)):  # which Python would not accept empty
            blank(block[0], " " * block[0].col_offset + "pass")

    drop([*ast.parse(source).body, ast.Pass()])
    left = "\n".join(line for line in lines if line is not None)
    return re.sub(r"\n{4,}", "\n\n\n", left).strip("\n")


def _only_sets_up(source: str) -> bool:
    """Whether a cell imports, and beyond that only sets a style, options or a seed."""
    statements = ast.parse(source).body
    imports = [s for s in statements if isinstance(s, ast.Import | ast.ImportFrom)]
    return len(imports) * 2 >= len(statements) > 0


def _prompts(cell: dict[str, Any], source: str) -> tuple[str, str] | None:
    """What the fold of a cell's code says; None where the code stays open."""
    pictured = any("image/png" in output.get("data", {}) for output in cell["outputs"])
    if pictured and source.count("\n") + 1 >= SHORT:
        return PICTURE
    if "hide-input" in cell["metadata"].get("tags", []):
        return CODE
    return IMPORTS if "import " in source and _only_sets_up(source) else None


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
            node["prompt_show"], node["prompt_hide"] = SOLUTION
        code = node.children[0]
        if code.get("nb_element") != "cell_code_source" or "error" in _kinds(cells, node):
            continue
        source = without_glue(code.astext())
        if not source:
            node.remove(code)
            continue
        block = next(iter(code.findall(nodes.literal_block)))
        block.rawsource = source
        block.children = [nodes.Text(source)]
        prompts = node.get("hide_mode") != "all" and _prompts(cells[node["cell_index"]], source)
        if prompts:
            node["hide_mode"] = "input"
            node["prompt_show"], node["prompt_hide"] = prompts


def _kinds(cells: list[dict[str, Any]], node: nodes.Element) -> set[str]:
    return {output["output_type"] for output in cells[node["cell_index"]]["outputs"]}


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("doctree-read", _arrange)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
