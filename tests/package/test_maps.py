"""Maps captured from a model, and a model without a head: as before, up to what was taken out."""

from collections.abc import Callable
from contextlib import ExitStack
from copy import deepcopy
from functools import partial
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn

from attention_book import (
    DotProductAttention,
    LanguageModel,
    MultiHeadAttention,
    SelfAttentionBlock,
    capture,
    without,
)

HEADS, LENGTH, BATCH, SIZE = 2, 7, 3, 10
X = torch.randn(BATCH, LENGTH, SIZE, generator=torch.manual_seed(0))
TOKENS = torch.arange(BATCH * LENGTH).reshape(BATCH, LENGTH) % 11


class Called(nn.Module):
    """A layer and how it is called, as a model with one argument."""

    def __init__(self, layer: nn.Module, call: Callable[[nn.Module, Tensor], Any]) -> None:
        super().__init__()
        self.layer, self.call = layer, call

    def forward(self, x: Tensor) -> Any:
        return self.call(self.layer, x)


def hugging_face(kind: str, **sizes: Any) -> nn.Module:
    config = getattr(transformers, f"{kind}Config")(
        hidden_size=12, num_hidden_layers=2, num_attention_heads=HEADS, **sizes
    )
    return getattr(transformers, f"{kind}Model")(config)


def torch_layer(**options: Any) -> nn.Module:
    layer = nn.MultiheadAttention(SIZE, HEADS, batch_first=True)
    return Called(layer, lambda layer, x: layer(x, x, x, **options)[0])


def encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(SIZE, HEADS, 13, batch_first=True)
    return nn.TransformerEncoder(layer, 2)


def padded_encoder() -> nn.Module:
    is_padded = torch.arange(LENGTH).expand(BATCH, -1) > 4
    return Called(encoder(), lambda model, x: model(x, None, is_padded[: len(x)])[:, :5])


def book_heads(fused: bool = False) -> nn.Module:
    layer = MultiHeadAttention(SIZE, HEADS, fused=fused)
    return Called(layer, lambda layer, x: layer(x, x, x, causal=True))


def t5(kind: str) -> nn.Module:
    model = of_words(kind, num_layers=2, num_decoder_layers=2, d_kv=5, d_ff=13)
    return Called(model, lambda model, x: model(x, decoder_input_ids=x))


PIXELS = torch.randn(BATCH, 3, 6, 6, generator=torch.manual_seed(1))
of_words = partial(hugging_face, vocab_size=11)
#: What makes a model, what it is given, and how many layers it has.
MODELS: dict[str, tuple[Callable[[], nn.Module], Tensor, int]] = {
    "torch": (torch_layer, X, 1),
    "torch without weights": (partial(torch_layer, need_weights=False), X, 1),
    "torch encoder": (encoder, X, 2),
    "book": (book_heads, X, 1),
    "book, fused": (partial(book_heads, fused=True), X, 1),
    "book, block": (partial(SelfAttentionBlock, SIZE, HEADS, fused=True), X, 1),
    "book, language model": (
        partial(LanguageModel, 11, SIZE, HEADS, 13, 2, rotary_base=None),
        TOKENS,
        2,
    ),
    "torch encoder, where it is not padded": (padded_encoder, X, 2),
    "torch encoder, compiled": (lambda: torch.compile(encoder(), backend="eager"), X, 2),
    "GPT-2": (partial(of_words, "GPT2"), TOKENS, 2),
    "GPT-2, compiled": (lambda: torch.compile(of_words("GPT2"), backend="eager"), TOKENS, 2),
    "T5": (partial(t5, "T5"), TOKENS, 6),
    "mT5": (partial(t5, "MT5"), TOKENS, 6),
    "Llama": (partial(of_words, "Llama", intermediate_size=13, num_key_value_heads=1), TOKENS, 2),
    "BERT": (partial(of_words, "Bert", intermediate_size=13), TOKENS, 2),
    "ViT": (
        partial(hugging_face, "ViT", intermediate_size=13, image_size=6, patch_size=3),
        PIXELS,
        2,
    ),
}


def answer(model: nn.Module, given: Tensor) -> Tensor:
    result = model(given)
    return result if isinstance(result, Tensor) else result[0]


pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")


@pytest.fixture(params=MODELS)
def case(request: pytest.FixtureRequest) -> tuple[nn.Module, Tensor, int]:
    make, given, layers = MODELS[request.param]
    torch.manual_seed(2)
    return make().eval(), given, layers


@torch.no_grad()
def test_each_layer_has_its_map_and_the_model_is_as_before(case: Any) -> None:
    model, given, layers = case
    before = answer(model, given)
    state = deepcopy(model.state_dict())
    with capture(model) as maps:
        answer(model, given[:1])
        within = answer(model, given)
    torch.testing.assert_close(within, before)
    assert len(maps) == layers
    for weights in maps:
        assert weights.shape[:2] == (BATCH, HEADS)
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:3]))
    with pytest.raises(KeyError), capture(model):
        raise KeyError
    assert torch.equal(answer(model, given), before)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    torch.testing.assert_close(model.state_dict(), state, rtol=0, atol=0)


@torch.no_grad()
@pytest.mark.parametrize("replace", ["zero", "mean"])
def test_a_head_is_out_within_its_block_also_within_another(case: Any, replace: Any) -> None:
    model, given, layers = case
    before, state = answer(model, given), deepcopy(model.state_dict())

    def out(*heads: int) -> Tensor:
        with ExitStack() as blocks:
            for head in heads:
                blocks.enter_context(without(model, layers - 1, head, replace))
            first = answer(model, given)
            maps = blocks.enter_context(capture(model))
            torch.testing.assert_close(answer(model, given), first)
            torch.testing.assert_close(model.state_dict(), state, rtol=0, atol=0)
        assert len(maps) == layers
        return first

    assert not torch.allclose(out(0), before)
    assert not torch.allclose(out(0), out(1))
    torch.testing.assert_close(out(0, 0), out(0))
    torch.testing.assert_close(out(0, 1), out(1, 0))
    with pytest.raises(KeyError), without(model, 0, 1, replace):
        raise KeyError
    assert torch.equal(answer(model, given), before)


@torch.no_grad()
@pytest.mark.parametrize("make", [torch_layer, book_heads])
def test_what_is_taken_out_is_the_heads_part_of_the_sum(make: Any) -> None:
    model = make()
    parts = []
    for head in range(HEADS):
        with without(model, 0, head):
            parts.append(model(X))
    projection = getattr(model.layer, "out_proj", None) or model.layer.W_o
    bias = 0 if projection.bias is None else projection.bias
    torch.testing.assert_close(parts[0] + parts[1] - bias, model(X))
    with without(model, 0, 0), without(model, 0, 1):
        torch.testing.assert_close(model(X), torch.zeros_like(X) + bias)
    with without(model, 0, 0, "mean"):
        mean = model(X)
    contribution = (model(X) - parts[0]).flatten(end_dim=-2).mean(dim=0)
    torch.testing.assert_close(mean, parts[0] + contribution)


def test_torch_still_returns_what_was_asked_for() -> None:
    layer = nn.MultiheadAttention(SIZE, HEADS, batch_first=True)
    with capture(layer) as maps:
        assert layer(X, X, X, need_weights=False)[1] is None
        averaged = layer(X, X, X)[1]
    torch.testing.assert_close(averaged, maps[0].mean(dim=1))
    assert len(maps) == 1
    assert not maps[0].requires_grad


def test_a_layer_with_one_head_has_an_axis_of_one_head() -> None:
    attention = DotProductAttention()
    with capture(attention) as maps:
        attention(X, X, X)
    assert maps[0].shape == (BATCH, 1, LENGTH, LENGTH)
    assert attention.attention_weights is None


@pytest.mark.parametrize(
    ("block", "error", "message"),
    [
        (partial(without, encoder(), 2, 0), IndexError, "because the model has 2, but is 2"),
        (partial(without, encoder(), -1, 0), IndexError, "layer must be from 0 to 1"),
        (partial(without, encoder(), 0, 2), IndexError, "because layer 0 has 2, but is 2"),
        (partial(without, encoder(), 0, 0, "noise"), ValueError, 'must be "zero" or "mean"'),
        (partial(without, nn.Linear(2, 2), 0, 0), ValueError, "of a known kind.* of your own"),
        (partial(capture, nn.Linear(2, 2)), ValueError, "of a known kind.* of your own"),
        (partial(without, None, 0, 0), TypeError, "model must be a .*Module, but is NoneType"),
        (partial(capture, None), TypeError, "model must be a .*Module, but is NoneType"),
    ],
)
def test_what_cannot_be_done_is_refused(block: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message), block():
        pass


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [("XLNet", {"d_head": 6}), ("MiniMax", {"intermediate_size": 16, "num_key_value_heads": 1})],
)
def test_layers_that_return_something_else_than_maps_are_refused(kind: str, sizes: Any) -> None:
    model = of_words(kind, **sizes)
    with pytest.raises(ValueError, match=r"Attention ran and .* outside the block"), capture(model):
        model(TOKENS, output_attentions=True)


def test_blocks_may_end_in_another_order_than_they_began() -> None:
    model = of_words("GPT2")
    with ExitStack() as second:
        with capture(model):
            maps = second.enter_context(capture(model))
        model(TOKENS)
        assert len(maps) == 2
    assert model.config._attn_implementation == "sdpa"
    assert torch.backends.mha.get_fastpath_enabled()
