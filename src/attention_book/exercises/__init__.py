"""The exercises at the chapters' ends: `check` says what is right, or which mistake was made."""

from attention_book.exercises.checker import check

__all__ = ["check"]
