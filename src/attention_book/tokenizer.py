"""From text to tokens and back, by byte-pair encoding as a tokenizer.json describes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from operator import index
from typing import Any

#: The first tokens stand for no text: unknown, begin and end. The 256 bytes come after them.
BEGIN, FIRST_BYTE, FIRST_PIECE = 1, 3, 3 + 256


class Tokenizer:
    """Byte-pair encoding with a fallback to bytes, as Llama 2 has it.

    Args:
        model: the part "model" of a tokenizer.json: `vocab`, the number of each piece, and
            `merges`, the pairs of pieces, those to be merged first in front.

    Source: Sennrich et al. (2016), section 3.2.
    """

    def __init__(self, model: Mapping[str, Any]) -> None:
        self.vocab: dict[str, int] = model["vocab"]
        self.ranks = {(left, right): rank for rank, (left, right) in enumerate(model["merges"])}
        pieces = sorted(self.vocab, key=lambda piece: self.vocab[piece])[FIRST_PIECE:]
        single = [bytes([byte]) for byte in range(256)]
        self._bytes = [b""] * FIRST_BYTE + single + [piece.encode() for piece in pieces]

    def encode(self, text: str, begin: bool = True, *, space: bool = True) -> list[int]:
        """Give the tokens of any text; a character that is not a piece becomes its bytes.

        One space is put in front of the text, as in training, except where `space` is False,
        because it continues another. Text that looks like a special token is text.

        Raises:
            TypeError: for what is not a string.
            UnicodeEncodeError: for half of a surrogate pair, which no text contains.
        """
        if not isinstance(text, str):
            raise TypeError(f"encode: text must be a string, but is {type(text).__name__}")
        pieces: list[str] = []
        for character in " " * (space and bool(text)) + text:
            spelled = [f"<0x{byte:02X}>" for byte in character.encode()]
            pieces += [character] if character in self.vocab else spelled
        while pairs := [pair for pair in pairwise(pieces) if pair in self.ranks]:
            pieces = merged(pieces, *min(pairs, key=lambda pair: self.ranks[pair]))
        return [BEGIN] * begin + [self.vocab[piece] for piece in pieces]

    def decode(self, ids: Iterable[int]) -> str:
        """Give the text of tokens, without the space that `encode` has put in front.

        Bytes that are no text, as a model may write them, become "�".

        Raises:
            TypeError: for what is not an integer.
            ValueError: for an integer that is not a token.
        """
        found = b""
        for token in map(index, ids):
            if not 0 <= token < len(self._bytes):
                raise ValueError(
                    f"decode: {token} is not a token; tokens are 0 to {len(self._bytes) - 1}"
                )
            found += self._bytes[token]
        return found.decode(errors="replace").removeprefix(" ")


def merged(pieces: list[str], left: str, right: str) -> list[str]:
    """Join every `left` that a `right` follows, from the first to the last."""
    result: list[str] = []
    for piece in pieces:
        if piece == right and result and result[-1] == left:
            result[-1] = left + right
        else:
            result.append(piece)
    return result
