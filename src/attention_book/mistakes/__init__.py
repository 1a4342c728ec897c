"""Mistakes that people make when they write attention, each with one name and one sentence."""

from attention_book.mistakes.catalogue import MISTAKES, Mistake

__all__ = ["MISTAKES", "Mistake"]
