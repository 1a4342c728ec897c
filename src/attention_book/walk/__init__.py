"""The shape walk: the steps of a trace drawn to scale, with a slider for each size."""

from attention_book.walk.explorer import ShapeExplorer
from attention_book.walk.walk import ShapeWalk

__all__ = ["ShapeExplorer", "ShapeWalk"]
