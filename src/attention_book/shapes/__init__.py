"""Shapes: named dimensions, plain arguments, tables in docstrings, and the trace of a call."""

from attention_book.shapes.dimensions import DIMENSIONS, Dimension
from attention_book.shapes.errors import ShapeError, at_least, number, probability
from attention_book.shapes.steps import Shapes, Step
from attention_book.shapes.tables import checked
from attention_book.shapes.tracing import trace

__all__ = [
    "DIMENSIONS",
    "Dimension",
    "ShapeError",
    "Shapes",
    "Step",
    "at_least",
    "checked",
    "number",
    "probability",
    "trace",
]
