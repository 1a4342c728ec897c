"""Interactive figures, one a chapter, that live with a kernel and without."""

from attention_book.figures.masking import MaskingFigure
from attention_book.figures.scale import ScaleFigure

__all__ = ["MaskingFigure", "ScaleFigure"]
