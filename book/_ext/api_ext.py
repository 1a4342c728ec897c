"""The signatures of the API page, with types as the code writes them.

The book is built without PyTorch, where a stand-in has its place. Types are therefore not looked
up, and the signature of a class is that of its own `__init__`, not of the stand-in that it is
derived from.
"""

from __future__ import annotations

import inspect
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.inspect import stringify_signature


def _as_written(
    app: Sphinx, what: str, name: str, obj: Any, options: object, signature: str, returns: str
) -> tuple[str, str | None] | None:
    if what not in ("class", "function", "method"):
        return None
    written = inspect.signature(obj.__init__ if what == "class" else obj)
    parameters = list(written.parameters.values())
    shown = written.replace(parameters=parameters[what in ("class", "method") :])
    annotation = written.return_annotation
    has_result = what != "class" and annotation is not inspect.Signature.empty
    return (
        stringify_signature(shown, show_return_annotation=False),
        str(annotation) if has_result else None,
    )


def setup(app: Sphinx) -> dict[str, Any]:
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-signature", _as_written)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
