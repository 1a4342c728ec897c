"""Maps captured from a model, and a model without a head: as before, up to what was taken out."""

from collections.abc import Callable
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
    config._attn_implementation = "sdpa"
    return getattr(transformers, f"{kind}Model")(config)


def torch_layer(**options: Any) -> nn.Module:
    layer = nn.MultiheadAttention(SIZE, HEADS, batch_first=True)
    return Called(layer, lambda layer, x: layer(x, x, x, **options)[0])


def encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(SIZE, HEADS, 13, batch_first=True)
    return nn.TransformerEncoder(layer, 2)


def book_heads(fused: bool = False) -> nn.Module:
    layer = MultiHeadAttention(SIZE, HEADS, fused=fused)
    return Called(layer, lambda layer, x: layer(x, x, x, causal=True))


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
    "GPT-2": (partial(of_words, "GPT2"), TOKENS, 2),
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


@pytest.fixture(params=MODELS)
def case(request: pytest.FixtureRequest) -> tuple[nn.Module, Tensor, int]:
    make, given, layers = MODELS[request.param]
    torch.manual_seed(2)
    return make().eval(), given, layers


@torch.no_grad()
def test_each_layer_has_its_map_and_the_model_is_as_before(case: Any) -> None:
    model, given, layers = case
    before = answer(model, given)
    state = {name: value.clone() for name, value in model.state_dict().items()}
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
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())


@torch.no_grad()
@pytest.mark.parametrize("replace", ["zero", "mean"])
def test_without_all_heads_of_a_layer_nothing_depends_on_its_pattern(
    case: Any, replace: Any
) -> None:
    model, given, layers = case
    before = answer(model, given)
    with without(model, layers - 1, 0, replace):
        first = answer(model, given)
        with capture(model) as maps:
            again = answer(model, given)
    torch.testing.assert_close(again, first)
    assert len(maps) == layers
    assert not torch.allclose(first, before)
    with without(model, layers - 1, 1, replace):
        second = answer(model, given)
    assert not torch.allclose(first, second)
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
    ("arguments", "error", "message"),
    [
        ((2, 0), IndexError, "layer must be from 0 to 1, because the model has 2, but is 2"),
        ((-1, 0), IndexError, "layer must be from 0 to 1"),
        ((0, 2), IndexError, "head must be from 0 to 1, because layer 0 has 2, but is 2"),
        ((0, 0, "noise"), ValueError, 'replace must be "zero" or "mean"'),
    ],
)
def test_what_cannot_be_left_out_is_refused(arguments: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message), without(encoder(), *arguments):
        pass


@pytest.mark.parametrize("block", [capture, lambda model: without(model, 0, 0)])
def test_a_model_without_a_known_layer_is_refused(block: Any) -> None:
    with pytest.raises(ValueError, match="of a known kind"), block(nn.Linear(2, 2)):
        pass
