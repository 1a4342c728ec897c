"""What ran inside a traced block: each call into PyTorch, what it was given and what it made.

The steps of a trace need none of this. The walk reads it, to say what a step costs and what it is
made of, and an operation that fails is explained from it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


class Seen(NamedTuple):
    """A tensor as a trace met it: one `number` is one tensor, one `memory` is shared memory."""

    number: int
    memory: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype


class Listed(NamedTuple):
    """A step was listed: its number, its tensor, and the line that made it, 0 for an argument."""

    step: str
    tensor: Seen
    line: int


class Operation(NamedTuple):
    """One call into PyTorch: the tensors that it was given, and the one that it made.

    `function` is None in a pass of a loop that is not listed: what it costs belongs to no step.
    """

    function: Any
    given: tuple[Seen, ...]
    made: Seen
    call: int  # of the trace's `calls`


class Register:
    """A number for each tensor and for each memory, for as long as they live: identities and
    addresses are used again."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[weakref.ref[Tensor], Seen]] = {}
        self._memory: dict[int, tuple[int, list[weakref.ref[Tensor]]]] = {}
        self._count = 0

    def see(self, tensor: Tensor) -> Seen:
        alive, seen = self._seen.get(id(tensor), (None, None))
        if alive is not None and seen is not None and alive() is tensor:
            return seen
        self._count += 1
        alive = weakref.ref(tensor)
        has_strides = tensor.layout == torch.strided
        seen = Seen(
            self._count,
            self._memory_of(tensor, alive) if has_strides else self._count,
            tuple(tensor.shape),
            tensor.stride() if has_strides else (),
            tensor.dtype,
        )
        self._seen[id(tensor)] = alive, seen
        return seen

    def _memory_of(self, tensor: Tensor, alive: weakref.ref[Tensor]) -> int:
        if tensor.device.type == "meta" or tensor.numel() == 0:  # lies nowhere
            return self._count
        try:
            address = tensor.untyped_storage().data_ptr()
        except RuntimeError:  # fake tensors and those of torch.func hide it
            return self._count
        number, sharers = self._memory.get(address, (0, []))
        sharers = [other for other in sharers if other() is not None]
        if not sharers:
            number = self._count
        self._memory[address] = number, [*sharers, alive]
        return number


class Watch(TorchFunctionMode):
    """Report each tensor that PyTorch makes inside the block, and the tensors it is made of; and
    each call that fails."""

    def __init__(
        self,
        note: Callable[[Any, list[Tensor], Tensor], None],
        explain: Callable[[Exception, Any, tuple[Any, ...], dict[str, Any]], None],
    ) -> None:
        super().__init__()
        self.note = note
        self.explain = explain

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        try:
            result = func(*args, **(kwargs or {}))
        except Exception as error:
            self.explain(error, func, args, kwargs or {})
            raise
        made = tensors_in(result)
        if made:
            given = tensors_in([*args, *(kwargs or {}).values()])
            for tensor in made:
                self.note(func, given, tensor)
        return result


def tensors_in(value: Any) -> list[Tensor]:
    """A tensor alone, or those of a list or tuple of arguments or results."""
    if isinstance(value, Tensor):
        return [value]
    parts = value if isinstance(value, list | tuple) else ()
    return [tensor for part in parts for tensor in tensors_in(part)]
