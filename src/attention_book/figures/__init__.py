"""Interactive figures, one per chapter, that live with a kernel and without."""

from attention_book.figures.additive import AdditiveFigure
from attention_book.figures.block import BlockFigure
from attention_book.figures.heads import HeadsFigure
from attention_book.figures.kv_cache import CacheFigure
from attention_book.figures.language_model import LanguageModelFigure
from attention_book.figures.lens import AttentionLens
from attention_book.figures.live import LiveTransformer
from attention_book.figures.lookup import LookupFigure
from attention_book.figures.masking import MaskingFigure
from attention_book.figures.matmul import MatmulFigure
from attention_book.figures.regression import RegressionFigure
from attention_book.figures.rotation import RotationFigure
from attention_book.figures.scale import ScaleFigure
from attention_book.figures.scoring import ScoringFigure
from attention_book.figures.story import StoryFigure
from attention_book.figures.tiling import TilingFigure

__all__ = [
    "AdditiveFigure",
    "AttentionLens",
    "BlockFigure",
    "CacheFigure",
    "HeadsFigure",
    "LanguageModelFigure",
    "LiveTransformer",
    "LookupFigure",
    "MaskingFigure",
    "MatmulFigure",
    "RegressionFigure",
    "RotationFigure",
    "ScaleFigure",
    "ScoringFigure",
    "StoryFigure",
    "TilingFigure",
]
