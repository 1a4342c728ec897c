"""Examine an implementation of attention, and say which mistake it makes by its name.

    from attention_book.examine import examine
    examine(my_attention)

Four rooms: `reading` finds out how a subject wants to be called, `identification` asks which
mistake gives its numbers, `laws` changes one thing and looks at what else changes, and `report`
says what was found, on an example small enough to check by hand. `stages` and `masks` lead through
them for a softmax, `heads`, `rotation` and `decoder` (with `caches`) for what they are named after.
"""

from attention_book.examine.examination import examine
from attention_book.examine.report import CannotExamine, Finding, Note, Report

__all__ = ["CannotExamine", "Finding", "Note", "Report", "examine"]
