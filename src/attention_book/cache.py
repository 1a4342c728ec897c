"""The key–value cache: what decoding keeps, so that no step projects an old position again."""

from __future__ import annotations

import torch
from torch import Tensor

from attention_book.shapes import checked


class KeyValueCache:
    """The projected keys and values of all positions so far, for one `MultiHeadAttention`.

    Attributes:
        keys, values: (batch, kv_heads, length, d_k) and (batch, kv_heads, length, d_v); None
            while empty.

    Source: Pope et al. (2023), section 2.1; with fewer key and value heads, Shazeer (2019).
    """

    def __init__(self) -> None:
        self.keys: Tensor | None = None
        self.values: Tensor | None = None

    @property
    def length(self) -> int:
        """The number of positions held."""
        return 0 if self.keys is None else self.keys.shape[2]

    @property
    def bytes(self) -> int:
        """The memory that the stored keys and values take, in bytes."""
        held = [tensor for tensor in (self.keys, self.values) if tensor is not None]
        return sum(tensor.numel() * tensor.element_size() for tensor in held)

    @property
    def device(self) -> torch.device | None:
        """Where the keys and values are; None while empty."""
        return None if self.keys is None else self.keys.device

    @property
    def sizes(self) -> dict[str, int]:
        """The dimensions that an attention called with this cache must agree with."""
        if self.keys is None or self.values is None:
            return {"cached": 0}
        batch, kv_heads, length, d_k = self.keys.shape
        d_v = self.values.shape[-1]
        return {"cached": length, "batch": batch, "kv_heads": kv_heads, "d_k": d_k, "d_v": d_v}

    @checked
    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add the positions of a call behind those held, and return all keys and all values.

        Shapes:
            keys    (batch, kv_heads, keys, d_k)
            values  (batch, kv_heads, keys, d_v)

        Raises:
            ShapeError, TypeError, ValueError: for tensors that do not fit those held.
        """
        if self.keys is None or self.values is None:
            self.keys, self.values = keys, values
        else:
            self.keys = torch.cat([self.keys, keys], dim=2)
            self.values = torch.cat([self.values, values], dim=2)
        return self.keys, self.values

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={size}" for name, size in self.sizes.items() if name != "cached")
        return f"KeyValueCache(length={self.length}{', ' if sizes else ''}{sizes})"
