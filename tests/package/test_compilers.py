"""One graph for many lengths, dynamic exports, and tensors that have no values or no GPU."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from cases import close
from every import EVERY, LAYERS, SMALL, given_to, module
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel

import attention_book as book
from attention_book import data
from attention_book.transformer import EncoderLayer

LENGTHS = range(3, 19)


def of_length(names: str, length: int) -> tuple[Tensor, ...]:
    """Arguments with so many queries, and two more keys."""
    sizes = {**vars(SMALL), "queries": length, "keys": length + 2}
    return given_to(names, SimpleNamespace(**sizes))


class Causal(nn.Module):
    """A fused module that attends to itself, always with `causal=True`."""

    def __init__(self, times: int, kind: type[nn.Module], *sizes: int, **options: object) -> None:
        super().__init__()
        self.module, self.times = module(kind, *sizes, **options, fused=True), times

    def forward(self, x: Tensor) -> Tensor:
        return self.module(*[x] * self.times, causal=True)


#: What has lengths, or a sequence of any length alone; and each fused kernel that is causal.
MODULES = {
    name: (make(SMALL), names)
    for name, (make, names) in (EVERY | LAYERS).items()
    if name == "rotary_embedding" or (names.endswith("lens") and name != "length_mask")
} | {
    "DotProductAttention, fused, causal": (Causal(3, book.DotProductAttention), "sequence"),
    "MultiHeadAttention, fused, causal": (
        Causal(3, book.MultiHeadAttention, 8, 4, num_kv_heads=2, rotary_base=9.0),
        "sequence",
    ),
    "EncoderLayer, fused, causal": (Causal(1, EncoderLayer, 8, 2, 6), "sequence"),
}


def counted() -> tuple[Callable[..., object], list[torch.fx.GraphModule]]:
    """A compiler that changes nothing, and the graphs that it has been given."""
    graphs: list[torch.fx.GraphModule] = []

    def compiler(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., object]:
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    return compiler, graphs


# The layers are compiled in the Transformer.
@pytest.mark.parametrize("name", [name for name in MODULES if name not in LAYERS])
def test_many_lengths_share_at_most_two_graphs_and_a_wrong_one_is_refused(name: str) -> None:
    function, names = MODULES[name]
    compiler, graphs = counted()
    compiled = torch.compile(function, backend=compiler, fullgraph=True)
    for length in LENGTHS:
        given = of_length(names, length)
        close(compiled(*given), function(*given))
    if names.endswith("lens") and data.device.type != "cuda":  # there the refusal ends the process
        *given, lens = of_length(names, 5)
        with pytest.raises(RuntimeError, match="is out of range"):
            compiled(*given, lens + 9)
    assert len(graphs) <= 2


@torch.no_grad()
@pytest.mark.parametrize("fused", [False, True])
def test_decoding_with_caches_shares_few_graphs(fused: bool) -> None:
    """One for the prompt, one for a token, and some more until no size is taken for a constant."""
    model = module(book.LanguageModel, 9, 8, 4, 6, 2, num_kv_heads=2, fused=fused)
    tokens = torch.arange(70, device=data.device).view(1, 70) % 9
    compiler, graphs = counted()
    compiled = torch.compile(model, backend=compiler, fullgraph=True)
    caches = [book.KeyValueCache() for _ in model.layers]
    written = [compiled(tokens[:, :6], caches=caches)]
    written += [compiled(token, caches=caches) for token in tokens[:, 6:].split(1, dim=1)]
    close(torch.cat(written, dim=1), model(tokens))
    assert len(graphs) <= 6


# The weights kept for looking at are no part of an exported program, of which torch warns.
@pytest.mark.filterwarnings("ignore:The tensor attribute:UserWarning")
@pytest.mark.parametrize(
    "name", [name for name, (function, _) in MODULES.items() if isinstance(function, nn.Module)]
)
def test_an_export_with_a_dynamic_length_serves_other_lengths(name: str) -> None:
    function, names = MODULES[name]
    length = torch.export.Dim("length", min=2, max=64)
    given = of_length(names, 6)
    shapes = [
        {1: length + (x.shape[1] - 6)} if x.dim() > 1 else None  # the lengths may be (batch)
        for x in given
    ]
    exported = torch.export.export(function, given, dynamic_shapes=tuple(shapes)).module()
    for other in (3, 11):
        given = of_length(names, other)
        close(exported(*given), function(*given))


# Said by torch of its fused kernel: mapped, it runs once for each.
@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
@pytest.mark.parametrize("name", MODULES)
def test_gradients_of_each_example_by_themselves(name: str) -> None:
    """vmap(grad): each example with a length of its own, as for gradients per example."""
    function, names = MODULES[name]
    given = of_length(names, 5)
    if not given[0].is_floating_point():
        pytest.skip("tokens have no gradient")

    def total(*example: Tensor) -> Tensor:
        return function(*(x.unsqueeze(0) for x in example)).square().sum()

    mapped = torch.vmap(torch.func.grad(total))(*given)
    leaf = given[0].clone().requires_grad_()
    function(leaf, *given[1:]).square().sum().backward()
    close(mapped, leaf.grad)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("name", MODULES)
def test_fake_tensors_pass_through_on_their_own_device(name: str, device: str) -> None:
    """A tensor left on the CPU meets one that claims to be on a GPU, also where there is none."""
    function, names = MODULES[name]
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    # Without gradients, and without the choice of a kernel, nothing asks the driver of the GPU.
    with mode, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        given = [torch.empty(x.shape, dtype=x.dtype, device=device) for x in of_length(names, 5)]
        if isinstance(function, nn.Module):
            state = {
                key: torch.empty(x.shape, dtype=x.dtype, device=device)
                for key, x in function.state_dict().items()
            }
            result = torch.func.functional_call(function, state, tuple(given))
        else:
            result = function(*given)
    assert result.device.type == device
