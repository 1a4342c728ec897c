"""What ran inside a traced block: each call into PyTorch, what it was given and what it made.

The steps of a trace need none of this. The walk reads it, to say what a step costs and what it is
made of, and an operation that fails is explained from it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
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
        return self.see_all([tensor])[0]

    def see_all(self, tensors: Iterable[Tensor]) -> list[Seen]:
        """The tensors as they are now. One loop, because a trace is told of each call it makes."""
        found = []
        for tensor in tensors:
            alive, seen = self._seen.get(id(tensor), (None, None))
            if alive is None or seen is None or alive() is not tensor:
                self._count += 1
                alive = weakref.ref(tensor)
                memory = self._count
                stride: tuple[int, ...] = ()
                if tensor.layout == torch.strided:
                    stride = tensor.stride()
                    # On the meta device, or without numbers, it lies nowhere.
                    if tensor.device.type != "meta" and tensor.numel():
                        memory = self._memory_of(tensor, alive)
                parts = (self._count, memory, tuple(tensor.shape), stride, tensor.dtype)
                seen = tuple.__new__(Seen, parts)
                self._seen[id(tensor)] = alive, seen
            found.append(seen)
        return found

    def _memory_of(self, tensor: Tensor, alive: weakref.ref[Tensor]) -> int:
        try:
            address = tensor.untyped_storage().data_ptr()
        except RuntimeError:  # fake tensors and those of torch.func hide it
            return self._count
        number, sharers = self._memory.get(address, (0, []))
        living = []
        for other in sharers:
            if other() is not None:
                living.append(other)
        if not living:
            number = self._count
        living.append(alive)
        self._memory[address] = number, living
        return number


class Watch(TorchFunctionMode):
    """Report each call into PyTorch that makes a tensor inside the block, and each that fails."""

    def __init__(
        self,
        note: Callable[[Any, tuple[Any, ...], dict[str, Any], Any], None],
        explain: Callable[[Any, tuple[Any, ...], dict[str, Any], Exception], None],
    ) -> None:
        super().__init__()
        self.note, self.explain = note, explain

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        try:
            result = func(*args, **kwargs)
        except Exception as error:
            self.explain(func, args, kwargs, error)
            raise
        if isinstance(result, Tensor | list | tuple):
            self.note(func, args, kwargs, result)
        return result


def tensors_in(values: Iterable[Any]) -> list[Tensor]:
    """The tensors among arguments or results, and in lists and tuples of them."""
    found = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, list | tuple) and not isinstance(value, torch.Size):
            found += tensors_in(value)
    return found
