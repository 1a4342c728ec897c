"""The key–value cache: what decoding keeps, so that no step projects an old position again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor

from attention_book.shapes import at_least, checked


class KeyValueCache:
    """The projected keys and values of all positions so far, for one `MultiHeadAttention`.

    Under `torch.no_grad`, positions are written behind the others, into memory that doubles when it
    is full; so a token costs no copy of all that is held. What stands there is not written again:
    what was read from a cache stays as it was, and `copy.copy` gives one that goes its own way.

    Attributes:
        keys, values: (batch, kv_heads, length, d_k) and (batch, kv_heads, length, d_v); None
            while empty.

    Source: Pope et al. (2023), section 2.1; with fewer key and value heads, Shazeer (2019).
    """

    def __init__(self) -> None:
        self.keys: Tensor | None = None
        self.values: Tensor | None = None
        self._memory: tuple[Tensor, Tensor] | None = None  # keys and values begin it

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_memory": None}

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
        elif torch.is_grad_enabled() or _infers():
            # A backward pass needs each as it was; what inference mode made is not written to.
            self.keys = torch.cat([self.keys, keys], dim=2)
            self.values = torch.cat([self.values, values], dim=2)
            self._memory = None
        else:
            length, end = self.length, self.length + keys.shape[2]
            memory = self._memory
            if memory is None or end > memory[0].shape[2]:
                memory = _roomy(self.keys, 2 * end), _roomy(self.values, 2 * end)
            self._memory = key_memory, value_memory = memory
            key_memory[:, :, length:end] = keys
            value_memory[:, :, length:end] = values
            self.keys, self.values = key_memory[:, :, :end], value_memory[:, :, :end]
        return self.keys, self.values

    def truncate(self, length: int) -> None:
        """Keep the first `length` positions alone, as where a text is edited from there on.

        Raises:
            TypeError, ValueError: for a length that is not an integer from 0 to the length held.
        """
        if at_least("KeyValueCache.truncate", "length", length, least=0) > self.length:
            raise ValueError(
                f"KeyValueCache.truncate: length is {length}, but the cache holds {self.length}"
            )
        if self.keys is not None and self.values is not None:
            self._replace(self.keys[:, :, :length], self.values[:, :, :length])

    def select(self, rows: Tensor | Sequence[int]) -> None:
        """Keep these examples, in this order: one may come several times, or not at all.

        So beams follow their best beginnings, and several texts share the beginning that was read
        once. `rows` are integers below the number of examples.

        Raises:
            TypeError, ValueError: for an empty cache and for rows that it does not hold.
        """
        if self.keys is None or self.values is None:
            raise ValueError("KeyValueCache.select: the cache is empty")
        index = torch.as_tensor(rows, device=self.keys.device)
        index = index if index.numel() else index.long()
        if index.is_floating_point() or index.dtype == torch.bool or index.dim() != 1:
            raise TypeError("KeyValueCache.select: rows must be integers, along one axis")
        batch = len(self.keys)
        wrong = [row for row in index.tolist() if not 0 <= row < batch]
        if wrong:
            raise ValueError(
                f"KeyValueCache.select: rows hold {wrong[0]}, but the cache holds {batch} examples"
            )
        self._replace(self.keys.index_select(0, index), self.values.index_select(0, index))

    def to(self, *device_or_dtype: Any, **options: Any) -> Self:
        """Move keys and values, to what is given as for `Tensor.to`; return the cache itself."""
        if self.keys is not None and self.values is not None:
            self._replace(
                self.keys.to(*device_or_dtype, **options),
                self.values.to(*device_or_dtype, **options),
            )
        return self

    def _replace(self, keys: Tensor, values: Tensor) -> None:
        self.keys, self.values, self._memory = keys, values, None

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={size}" for name, size in self.sizes.items() if name != "cached")
        return f"KeyValueCache(length={self.length}{', ' if sizes else ''}{sizes})"


def _roomy(held: Tensor, length: int) -> Tensor:
    """Memory for `length` positions that begins with those held."""
    memory = held.new_empty(*held.shape[:2], length, held.shape[3])
    memory[:, :, : held.shape[2]] = held
    return memory


def _infers() -> bool:
    """Whether inference mode is on; compiled code never sees it."""
    return not torch.compiler.is_compiling() and torch.is_inference_mode_enabled()
