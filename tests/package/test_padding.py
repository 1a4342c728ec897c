"""Padding is inert: what stands where no query may attend reaches no output and no gradient."""

from collections.abc import Callable

import pytest
import torch
from cases import DTYPES, close
from torch import Tensor, nn

import attention_book as book
from attention_book import data
from attention_book.language_model import LanguageModelLayer
from attention_book.masking import Rule, visible_keys
from attention_book.transformer import DecoderLayer, EncoderLayer

BATCH, HEADS, QUERIES, KEYS, SIZE = 3, 2, 5, 7, 8
POISONS = [torch.nan, torch.inf, -torch.inf, 1e30]


def normal(*shape: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return data.normal(*shape, generator=generator, dtype=torch.float64).to(dtype)


def rules(num_queries: int, num_keys: int) -> dict[str, dict[str, object]]:
    """Ways to hide keys: in each, some example has keys that no query sees, one may see none."""
    generator = torch.Generator().manual_seed(1)
    lens = torch.tensor([num_keys - 2, 0, 3])
    each = torch.randint(0, num_keys - 1, (BATCH, num_queries), generator=generator)
    mask = torch.rand(BATCH, num_queries, num_keys, generator=generator) < 0.6
    mask[:, :, 1] = False
    by_head = torch.rand(BATCH, HEADS, num_queries, num_keys, generator=generator) < 0.6
    by_head[0, :, :, 2:] = False
    window = book.causal_mask(num_queries, num_keys)
    window = window & ~book.causal_mask(num_queries, num_keys).roll(-1, dims=1)
    found = {
        "lengths": {"valid_lens": lens},
        "lengths of each query": {"valid_lens": each},
        "lengths and causal": {"valid_lens": lens, "causal": True},
        "mask": {"mask": mask},
        "mask and lengths": {"valid_lens": lens, "mask": mask},
        "mask of the heads": {"mask": by_head},
        "shared mask": {"mask": mask[0]},
        "window": {"mask": window},
    }
    return {
        name: {key: x.to(data.device) if isinstance(x, Tensor) else x for key, x in rule.items()}
        for name, rule in found.items()
    }


def poisoned(x: Tensor, is_seen: Tensor, poison: float) -> Tensor:
    return torch.where(is_seen, x, torch.tensor(poison).to(x))  # 1e30 is inf in float16


def made(kind: Callable[..., nn.Module], *sizes: int, **options: object) -> nn.Module:
    module = kind(*sizes, **options)
    for seed, parameter in enumerate(module.parameters()):
        parameter.data = normal(*parameter.shape, seed=seed) / 2
    return module.to(data.device)


ATTENTIONS: dict[str, tuple[nn.Module, bool]] = {  # and whether its inputs have heads
    "DotProductAttention": (made(book.DotProductAttention), False),
    "DotProductAttention, heads": (made(book.DotProductAttention), True),
    "DotProductAttention, fused": (made(book.DotProductAttention, fused=True), False),
    "DotProductAttention, fused, heads": (made(book.DotProductAttention, fused=True), True),
    "AdditiveAttention": (made(book.AdditiveAttention, SIZE, SIZE, 6), False),
    "AdditiveAttention, chunked": (
        made(book.AdditiveAttention, SIZE, SIZE, 6, query_chunk=2),
        False,
    ),
    "MultiHeadAttention": (made(book.MultiHeadAttention, SIZE, HEADS, bias=True), False),
    "MultiHeadAttention, fused": (made(book.MultiHeadAttention, SIZE, HEADS, fused=True), False),
    "MultiHeadAttention, grouped": (
        made(book.MultiHeadAttention, SIZE, HEADS, num_kv_heads=1),
        False,
    ),
    "MultiHeadAttention, grouped, fused": (
        made(book.MultiHeadAttention, SIZE, HEADS, num_kv_heads=1, fused=True),
        False,
    ),
    "MultiHeadAttention, rotated": (
        made(book.MultiHeadAttention, SIZE, HEADS, rotary_base=100.0),
        False,
    ),
}


def result_and_gradients(module: nn.Module, inputs: list[Tensor], **rule: object) -> list[Tensor]:
    """The output, the gradient of each input, and that of each parameter."""
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    module.zero_grad()
    output = module(*leaves, **rule)
    (output * normal(*output.shape, seed=9, dtype=output.dtype)).sum().backward()
    found = [output.detach(), *(leaf.grad for leaf in leaves)]
    return found + [p.grad.clone() for p in module.parameters() if p.grad is not None]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ATTENTIONS)
def test_unseen_keys_and_values_reach_nothing(name: str, dtype: torch.dtype) -> None:
    module, with_heads = ATTENTIONS[name]
    module = module.to(dtype)
    heads = (HEADS,) if with_heads else ()
    shapes = [(BATCH, *heads, n, SIZE) for n in (QUERIES, KEYS, KEYS)]
    inputs = [normal(*shape, seed=i, dtype=dtype) for i, shape in enumerate(shapes)]
    for rule_name, rule in rules(QUERIES, KEYS).items():
        if rule_name == "mask of the heads" and "Additive" in name:
            continue
        if rule_name == "mask of the heads" and name.startswith("Dot") and not with_heads:
            continue
        limits = rule.get("valid_lens"), rule.get("mask"), bool(rule.get("causal"))
        is_seen = visible_keys(Rule(*limits), QUERIES, inputs[1])
        assert is_seen is not None
        assert not is_seen.all()
        clean = result_and_gradients(module, inputs, **rule)
        assert all(x.isfinite().all() for x in clean)
        assert all((gradient[~is_seen.expand_as(gradient)] == 0).all() for gradient in clean[2:4])
        for poison in POISONS:
            bad = [inputs[0], *(poisoned(x, is_seen, poison) for x in inputs[1:])]
            for mine, theirs in zip(result_and_gradients(module, bad, **rule), clean, strict=True):
                assert torch.equal(mine, theirs), f"{rule_name}, {poison}"


@pytest.mark.parametrize("dtype", DTYPES)
def test_masked_scores_reach_no_weight_and_no_gradient(dtype: torch.dtype) -> None:
    scores = normal(BATCH, HEADS, QUERIES, KEYS, seed=0, dtype=dtype)
    upstream = normal(BATCH, HEADS, QUERIES, KEYS, seed=1, dtype=dtype)

    def weights_and_gradient(given: Tensor, rule: dict[str, object]) -> tuple[Tensor, Tensor]:
        leaf = given.clone().requires_grad_()
        weights = book.masked_softmax(leaf, **rule)
        (weights * upstream).sum().backward()
        return weights.detach(), leaf.grad

    for rule in rules(QUERIES, KEYS).values():
        allowed = book.masked_softmax(torch.zeros_like(scores), **rule) > 0
        clean = weights_and_gradient(scores, rule)
        for poison in POISONS:
            bad = weights_and_gradient(poisoned(scores, allowed, poison), rule)
            assert torch.equal(bad[0], clean[0])
            assert torch.equal(bad[1], clean[1])


class AlwaysCausal(LanguageModelLayer):
    """The layer of a language model, called as the others are."""

    def forward(self, x: Tensor, *args: object, causal: bool = True, **rule: object) -> Tensor:
        return super().forward(x, *args, **rule)


SEQUENCES: dict[str, Callable[..., Tensor]] = {
    "AttentionPooling": made(book.AttentionPooling, SIZE, 6),
    "SelfAttentionBlock": made(book.SelfAttentionBlock, SIZE, HEADS),
    "SelfAttentionBlock, fused": made(book.SelfAttentionBlock, SIZE, HEADS, fused=True),
    "EncoderLayer": made(EncoderLayer, SIZE, HEADS, 6),
    "EncoderLayer, fused": made(EncoderLayer, SIZE, HEADS, 6, fused=True),
    "LanguageModelLayer": made(AlwaysCausal, SIZE, HEADS, 6),
    "LanguageModelLayer, fused": made(AlwaysCausal, SIZE, HEADS, 6, fused=True),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SEQUENCES)
def test_padding_of_a_sequence_reaches_no_other_position(name: str, dtype: torch.dtype) -> None:
    """A padded position is a query too: its own output is its own affair, and is not judged."""
    module = SEQUENCES[name].to(dtype)
    x = normal(BATCH, KEYS, SIZE, seed=0, dtype=dtype)
    for rule_name, rule in rules(KEYS, KEYS).items():
        if name == "AttentionPooling" and rule_name not in ("lengths",):
            continue
        if name == "AttentionPooling":
            limits = rule["valid_lens"], None, False
        else:
            causal = bool(rule.get("causal")) or name.startswith("LanguageModelLayer")
            limits = rule.get("valid_lens"), rule.get("mask"), causal
        is_seen = visible_keys(Rule(*limits), KEYS, x)

        def judged(given: Tensor, rule: dict = rule, is_seen: Tensor = is_seen) -> list[Tensor]:
            leaf = given.clone().requires_grad_()
            module.zero_grad()
            output = module(leaf, **rule)
            kept = output if output.dim() == 2 else torch.where(is_seen, output, 0.0)
            upstream = normal(*kept.shape, seed=9, dtype=dtype)
            (kept * upstream).sum().backward()
            gradient = torch.where(is_seen, leaf.grad, 0.0)
            unseen = torch.where(is_seen, 0.0, leaf.grad)
            assert unseen.isfinite().all()
            return [kept.detach(), gradient, *(p.grad.clone() for p in module.parameters())]

        clean = judged(x)
        for poison in POISONS:
            bad = judged(poisoned(x, is_seen, poison))
            for mine, theirs in zip(bad, clean, strict=True):
                close(mine, theirs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fused", [False, True])
def test_padding_in_a_decoder_layer(dtype: torch.dtype, fused: bool) -> None:
    module = made(DecoderLayer, SIZE, HEADS, 6, fused=fused).to(dtype)
    x = normal(BATCH, QUERIES, SIZE, seed=0, dtype=dtype)
    memory = normal(BATCH, KEYS, SIZE, seed=1, dtype=dtype)
    source_lens = torch.tensor([5, 0, 3], device=data.device)
    target_lens = torch.tensor([4, 2, 5], device=data.device)
    sees_source = visible_keys(Rule(source_lens, None), QUERIES, memory)
    sees_target = visible_keys(Rule(target_lens, None, True), QUERIES, x)

    def judged(targets: Tensor, read: Tensor) -> list[Tensor]:
        leaves = targets.clone().requires_grad_(), read.clone().requires_grad_()
        module.zero_grad()
        output = module(*leaves, source_lens, target_lens)
        kept = torch.where(sees_target, output, 0.0)
        (kept * normal(*kept.shape, seed=9, dtype=dtype)).sum().backward()
        return [kept.detach(), *(p.grad.clone() for p in module.parameters())]

    clean = judged(x, memory)
    for poison in POISONS:
        bad = judged(poisoned(x, sees_target, poison), poisoned(memory, sees_source, poison))
        for mine, theirs in zip(bad, clean, strict=True):
            close(mine, theirs)


def test_an_unknown_token_in_the_padding_of_a_transformer_reaches_nothing() -> None:
    """The embedding of the padding token holds NaN: neither logits nor gradients show it."""
    model = made(book.Transformer, 9, SIZE, HEADS, 6)
    with torch.no_grad():
        model.source_embedding.weight[8] = torch.nan
        model.target_embedding.weight[8] = torch.nan
    sources = torch.tensor([[1, 2, 3, 8], [4, 8, 8, 8]], device=data.device)
    targets = torch.tensor([[1, 2, 8], [4, 5, 6]], device=data.device)
    lens = torch.tensor([3, 1], device=data.device), torch.tensor([2, 3], device=data.device)
    logits = model(sources, targets, *lens)
    real = torch.tensor([[1, 1, 0], [1, 1, 1]], dtype=torch.bool, device=data.device)
    assert logits[real].isfinite().all()
    logits[real].square().sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())
