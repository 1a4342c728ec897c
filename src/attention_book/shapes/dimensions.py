"""The named dimensions: what each counts, and its one colour. Imports no PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Dimension(NamedTuple):
    """The one colour of a dimension in text, figures and drawings, and what it counts."""

    colour: str
    meaning: str


#: Mid-tones that keep 3:1 contrast on white and on near-black, told apart by colour-blind readers
#: where they meet in one formula; the name always appears with the colour.
DIMENSIONS: Mapping[str, Dimension] = {
    "batch": Dimension("#808080", "examples computed together"),
    "queries": Dimension("#0077BB", "queries of one example"),
    "keys": Dimension("#D55E00", "keys of one example; there are as many values"),
    "length": Dimension("#5B74D6", "positions of a sequence that attends to itself"),
    "heads": Dimension("#C4569A", "attention heads"),
    "kv_heads": Dimension("#9C6A93", "heads of keys and values, each shared by a group of heads"),
    "cached": Dimension("#A88A5B", "keys of earlier calls, held in the key–value cache"),
    "size": Dimension("#00916A", "components of one query and of one key"),
    "half": Dimension("#4C9A6F", "pairs of components that a rotation turns together"),
    "d_k": Dimension("#00916A", "components of one query and of one key in one head"),
    "query_size": Dimension("#2E8FA3", "components of one query, where keys have another size"),
    "key_size": Dimension("#7D8B1B", "components of one key, where queries have another size"),
    "hidden": Dimension("#8F63D9", "hidden units of a small network"),
    "value_size": Dimension("#B07A00", "components of one value"),
    "d_v": Dimension("#B07A00", "components of one value in one head"),
    "d_model": Dimension("#A0603A", "components of one position, in and out of a layer"),
    "tokens": Dimension("#6B7F99", "different tokens a model knows"),
}
