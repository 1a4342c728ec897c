"""Names for the axes of a tensor in code without a shape table: found, never guessed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from attention_book.shapes.dimensions import DIMENSIONS

#: How arguments and attributes are called that are the size of an axis.
_SIZE = re.compile(
    r"d_[a-z]+|(num|n)_(kv_|key_value_|attention_)?heads?|n_?heads?|n_embd|bsz|"
    r"(batch|head|hidden|vocab|embed|embedding|intermediate)_(size|dim)|embed_dim|dim_head|"
    r"(seq|sequence)_?(len|length)|vocab_size|num_(queries|keys)"
)


class AxisNames:
    """The names of sizes in one function, and where they come from."""

    def __init__(self, given: Mapping[str, int]) -> None:
        self.given = given
        self.declared: dict[str, int] = {}  # in arguments and attributes called like sizes
        self._read: dict[str, int] = {}  # from a shape; 0 for a name that was of two sizes

    def declare(self, values: Iterable[tuple[str, object]]) -> None:
        """Take the sizes among named values."""
        for name, value in values:
            if type(value) is int and (name in DIMENSIONS or _SIZE.fullmatch(name)):
                plain = name.removeprefix("num_")
                self.declared[plain if plain in DIMENSIONS else name] = value

    def read(self, name: str, size: int) -> None:
        """Take a size that a line has read from a shape."""
        self._read[name] = size if self._read.get(name, size) == size else 0

    def of(self, shape: tuple[int, ...]) -> tuple[str, ...]:
        """A name for each axis; its size as a number where it has none, or more than one could."""
        return tuple(
            self._name(size) if size > 1 and shape.count(size) == 1 else str(size) for size in shape
        )

    def _name(self, size: int) -> str:
        given, declared, read = (
            {name for name, value in names.items() if value == size}
            for names in (self.given, self.declared, self._read)
        )
        # What is read has one more name where one is given.
        names = given | declared if given else declared | read
        return names.pop() if len(names) == 1 and len(read) <= 1 else str(size)
