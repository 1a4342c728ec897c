"""Another processor, simulated: products, sums and exponentials come out a rounding step away.

Each processor adds up in its own order, so the last digits of a result differ between two of
them. Inside this mode, results of the operations in `ROUNDED`, forward and backward, move up or
down by a step or stay. Which, follows from the value's own bits and a seed: equal computations stay
equal, and a run can be repeated. Numbers that need few binary digits (0, 1, 0.25, 1536) stay as
they are, because every processor has them exactly.

As the start-up script of a kernel it reads OTHER_PROCESSOR, a seed, and OTHER_PROCESSOR_SIZE, in
rounding steps: 1 is another processor's order of adding, 8 comes near a GPU's.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

#: What is rounded, by its name in `torch.ops.aten`: all that a processor adds up or approximates.
ROUNDED = [
    "mm",
    "bmm",
    "addmm",
    "baddbmm",
    "dot",
    "mv",
    "addmv",
    "linear",
    "convolution",
    "_cdist_forward",
    "_euclidean_dist",
    "_softmax",
    "_log_softmax",
    "_softmax_backward_data",
    "_log_softmax_backward_data",
    "logsumexp",
    "exp",
    "expm1",
    "log",
    "log2",
    "sin",
    "cos",
    "tanh",
    "sigmoid",
    "silu",
    "gelu",
    "erf",
    "rsqrt",
    "tanh_backward",
    "sigmoid_backward",
    "silu_backward",
    "gelu_backward",
    "sum",
    "mean",
    "var",
    "std",
    "var_mean",
    "cumsum",
    "linalg_vector_norm",
    "norm",
    "nll_loss_forward",
    "mse_loss",
    "native_layer_norm",
    "native_layer_norm_backward",
    "_fused_rms_norm",
    "_fused_rms_norm_backward",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_flash_attention_for_cpu_backward",
]
#: For each type: integers of its size, and how many of its last bits are 0 in a number that every
#: processor has exactly.
BITS = {torch.float32: (torch.int32, 12), torch.float64: (torch.int64, 41)}


class OtherProcessor(TorchDispatchMode):
    """While it is active, results are rounded as another processor might.

    Args:
        seed: which other processor; from 1 on.
        size: of a step, in units of the last place.
    """

    def __init__(self, seed: int, size: float = 1.0) -> None:
        super().__init__()
        self.seed, self.size = seed, size
        aten = torch.ops.aten
        self.rounded = {getattr(aten, name) for name in ROUNDED if hasattr(aten, name)}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.overloadpacket not in self.rounded or "out" in (kwargs or {}):
            return result
        if isinstance(result, tuple | list):
            return type(result)(map(self._moved, result))
        return self._moved(result)

    def _moved(self, y: Any) -> Any:
        plain = type(y) is Tensor and y.dtype in BITS and y.device.type == "cpu" and y.numel()
        if not plain:
            return y
        kind, free = BITS[y.dtype]
        bits = y.contiguous().view(kind).to(torch.int64)
        draw = _mixed(bits ^ (self.seed * 0x9E3779B97F4A7C1 & 0x7FFFFFFFFFFFFFF)) & 3
        step = (draw == 1).to(y.dtype) - (draw == 2).to(y.dtype)
        exact = ((bits & ((1 << free) - 1)) == 0) | ~y.isfinite()
        return torch.where(exact, y, y * (1 + torch.finfo(y.dtype).eps * self.size * step))


def _mixed(h: Tensor) -> Tensor:
    """Integers whose every bit depends on all bits of those given (the finaliser of SplitMix64)."""
    for shift, factor in (
        (30, 0x1CE4E5B9BF58476D),
        (27, 0x133111EB94D049BB),
        (31, 0x1B873593CC9E2D51),
    ):
        h = (h ^ (h >> shift)) * factor
    return h ^ (h >> 33)


if "OTHER_PROCESSOR" in os.environ:
    # A cell that sees the simulation itself is run while this is paused.
    other_processor = OtherProcessor(
        int(os.environ["OTHER_PROCESSOR"]), float(os.environ["OTHER_PROCESSOR_SIZE"])
    )
    other_processor.__enter__()
