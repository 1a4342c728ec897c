"""One graph for many lengths, dynamic exports, and tensors that have no values or no GPU."""

from collections.abc import Callable

import pytest
import torch
from cases import close
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel

import attention_book as book
from attention_book import data
from attention_book.transformer import DecoderLayer, EncoderLayer

LENGTHS = range(3, 19)
Call = Callable[[int], tuple[tuple[Tensor, ...], dict[str, object]]]


def normal(*shape: int) -> Tensor:
    return data.normal(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def made(kind: type[nn.Module], *sizes: int, **options: object) -> nn.Module:
    torch.manual_seed(0)
    return kind(*sizes, **options).double().to(data.device)


def lens(length: int) -> Tensor:
    return torch.tensor([length, length // 2], device=data.device)


def three(length: int) -> tuple[Tensor, ...]:
    x = normal(2, length, 8)
    return x, x, x, lens(length)


def one(length: int) -> tuple[Tensor, ...]:
    return normal(2, length, 8), lens(length)


def pair(length: int) -> tuple[Tensor, ...]:
    return normal(2, length, 8), normal(2, length + 2, 8), lens(length), lens(length)


def tokens(length: int) -> tuple[Tensor, ...]:
    drawn = torch.arange(2 * length, device=data.device).view(2, length) % 9
    return drawn, drawn, lens(length), lens(length)


def one_alone(length: int) -> tuple[Tensor, ...]:
    return (normal(2, length, 8),)


def three_alone(length: int) -> tuple[Tensor, ...]:
    return one_alone(length) * 3


class Causal(nn.Module):
    """A module that is always called with `causal=True`."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(
        self, x: Tensor, keys: Tensor | None = None, values: Tensor | None = None
    ) -> Tensor:
        given = (x,) if keys is None or values is None else (x, keys, values)
        return self.module(*given, causal=True)


def causal(kind: type[nn.Module], *sizes: int, **options: object) -> nn.Module:
    return Causal(made(kind, *sizes, **options))


def has_no_lengths(name: str) -> bool:
    return name == "rotary_embedding" or name.endswith("causal")


def text(length: int) -> tuple[Tensor, ...]:
    drawn, _, valid_lens, _ = tokens(length)
    return drawn, valid_lens


MODULES: dict[str, tuple[Callable[..., Tensor], Callable[[int], tuple[Tensor, ...]]]] = {
    "masked_softmax": (
        lambda x, n: book.masked_softmax(x @ x.mT, n, causal=True),
        one,
    ),
    "DotProductAttention": (made(book.DotProductAttention), three),
    "DotProductAttention, fused": (made(book.DotProductAttention, fused=True), three),
    "DotProductAttention, fused, causal": (
        causal(book.DotProductAttention, fused=True),
        three_alone,
    ),
    "MultiHeadAttention, fused, causal": (
        causal(book.MultiHeadAttention, 8, 4, num_kv_heads=2, rotary_base=9.0, fused=True),
        three_alone,
    ),
    "EncoderLayer, fused, causal": (causal(EncoderLayer, 8, 2, 6, fused=True), one_alone),
    "AdditiveAttention": (made(book.AdditiveAttention, 8, 8, 6), three),
    "AdditiveAttention, chunked": (made(book.AdditiveAttention, 8, 8, 6, query_chunk=4), three),
    "rotary_embedding": (lambda x, n: book.rotary_embedding(x), one),
    "AttentionPooling": (made(book.AttentionPooling, 8, 6), one),
    "MultiHeadAttention": (made(book.MultiHeadAttention, 8, 2), three),
    "MultiHeadAttention, grouped": (
        made(book.MultiHeadAttention, 8, 4, num_kv_heads=2, fused=True),
        three,
    ),
    "MultiHeadAttention, rotated": (made(book.MultiHeadAttention, 8, 2, rotary_base=99.0), three),
    "SelfAttentionBlock": (made(book.SelfAttentionBlock, 8, 2), one),
    "EncoderLayer": (made(EncoderLayer, 8, 2, 6), one),
    "DecoderLayer": (made(DecoderLayer, 8, 2, 6), pair),
    "Transformer": (made(book.Transformer, 9, 8, 2, 6), tokens),
    "LanguageModel": (made(book.LanguageModel, 9, 8, 2, 6, 2), text),
    "LanguageModel, fused": (made(book.LanguageModel, 9, 8, 2, 6, 2, fused=True), text),
}


@pytest.mark.parametrize("name", MODULES)
def test_many_lengths_share_at_most_two_graphs(name: str) -> None:
    module, arguments = MODULES[name]
    graphs = 0

    def counted(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., object]:
        nonlocal graphs
        graphs += 1
        return graph.forward

    torch._dynamo.reset()
    compiled = torch.compile(module, backend=counted, fullgraph=True)
    for length in LENGTHS:
        given = arguments(length)
        close(compiled(*given), module(*given))
    assert graphs <= 2


@torch.no_grad()
@pytest.mark.parametrize("fused", [False, True])
def test_decoding_with_caches_shares_few_graphs(fused: bool) -> None:
    """One for the prompt, one for a token, and some more until no size is taken for a constant."""
    model = made(book.LanguageModel, 9, 8, 4, 6, 2, num_kv_heads=2, fused=fused)
    tokens, graphs = torch.arange(70, device=data.device).view(1, 70) % 9, 0

    def counted(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., object]:
        nonlocal graphs
        graphs += 1
        return graph.forward

    torch._dynamo.reset()
    compiled = torch.compile(model, backend=counted, fullgraph=True)
    caches = [book.KeyValueCache() for _ in model.layers]
    written = [compiled(tokens[:, :6], caches=caches)]
    written += [compiled(token, caches=caches) for token in tokens[:, 6:].split(1, dim=1)]
    close(torch.cat(written, dim=1), model(tokens))
    assert graphs <= 6


@pytest.mark.parametrize("name", [name for name in MODULES if not has_no_lengths(name)])
def test_a_wrong_length_is_refused_in_a_compiled_module_too(name: str) -> None:
    module, arguments = MODULES[name]
    if data.device.type == "cuda":
        pytest.skip("there the refusal ends the process")
    torch._dynamo.reset()
    compiled = torch.compile(module, backend="eager", fullgraph=True)
    *given, last = arguments(5)
    with pytest.raises(RuntimeError, match="is out of range"):
        compiled(*given, last + 9)


# The weights kept for looking at are no part of an exported program, of which torch warns.
@pytest.mark.filterwarnings("ignore:The tensor attribute:UserWarning")
@pytest.mark.parametrize(
    "name", [name for name, (module, _) in MODULES.items() if isinstance(module, nn.Module)]
)
def test_an_export_with_a_dynamic_length_serves_other_lengths(name: str) -> None:
    module, arguments = MODULES[name]
    length = torch.export.Dim("length", min=2, max=64)
    given = arguments(6)
    shapes = [
        {1: length + (x.shape[1] - 6)} if x.dim() > 1 else None  # the lengths are (batch)
        for x in given
    ]
    exported = torch.export.export(module, given, dynamic_shapes=tuple(shapes)).module()
    for other in (3, 11):
        given = arguments(other)
        close(exported(*given), module(*given))


# Said by torch of its fused kernel: mapped, it runs once for each.
@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
@pytest.mark.parametrize("name", MODULES)
def test_gradients_of_each_example_by_themselves(name: str) -> None:
    """vmap(grad): each example with a length of its own, as for gradients per example."""
    module, arguments = MODULES[name]
    given = arguments(5)
    if not given[0].is_floating_point():
        pytest.skip("tokens have no gradient")

    def total(*example: Tensor) -> Tensor:
        return module(*(x.unsqueeze(0) for x in example)).square().sum()

    mapped = torch.vmap(torch.func.grad(total))(*given)
    leaf = given[0].clone().requires_grad_()
    module(leaf, *given[1:]).square().sum().backward()
    close(mapped, leaf.grad)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("name", MODULES)
def test_fake_tensors_pass_through_on_their_own_device(name: str, device: str) -> None:
    """A tensor left on the CPU meets one that claims to be on a GPU, also where there is none."""
    module, arguments = MODULES[name]
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    # Without gradients, and without the choice of a kernel, nothing asks the driver of the GPU.
    with mode, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        given = [torch.empty(x.shape, dtype=x.dtype, device=device) for x in arguments(5)]
        if isinstance(module, nn.Module):
            state = {
                key: torch.empty(x.shape, dtype=x.dtype, device=device)
                for key, x in module.state_dict().items()
            }
            result = torch.func.functional_call(module, state, tuple(given))
        else:
            result = module(*given)
    assert result.device.type == device
