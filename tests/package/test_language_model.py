"""Writing with the language model; its masks and its caches. `test_pretrained` has its numbers."""

import copy

import pytest
import torch
from cases import close, refuses
from torch import Tensor
from transformers.generation.logits_process import TopKLogitsWarper, TopPLogitsWarper

from attention_book import KeyValueCache, LanguageModel, ShapeError, data
from attention_book.language_model import likely_tokens

TOKENS = 53
FUSED = pytest.mark.parametrize("fused", [False, True])


def model(
    *, fused: bool = False, dtype: torch.dtype = torch.float64, **options: object
) -> LanguageModel:
    """Ours, with random parameters large enough that texts do not repeat one token."""
    made = LanguageModel(TOKENS, 24, 4, 40, 2, num_kv_heads=2, fused=fused, **options)
    for seed, parameter in enumerate(made.parameters()):
        numbers = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(seed))
        parameter.data = 1 + numbers / 4 if parameter.dim() == 1 else numbers / 2
    return made.to(data.device, dtype)


def texts(batch: int, length: int, *, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(TOKENS, (batch, length), generator=generator).to(data.device)


def seeded(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# Which tokens may be drawn


@pytest.mark.parametrize("top_k", [None, 1, 5, 52, 53, 80])
@pytest.mark.parametrize("top_p", [None, 0.01, 0.5, 0.9, 1.0])
def test_the_tokens_kept_are_those_of_hugging_face(top_k: int | None, top_p: float | None) -> None:
    logits = data.normal(200, TOKENS, generator=seeded()) * 2
    theirs = logits
    if top_k is not None:
        theirs = TopKLogitsWarper(top_k)(None, theirs)
    if top_p is not None:
        theirs = TopPLogitsWarper(top_p)(None, theirs)
    kept = likely_tokens(logits, top_k, top_p)
    assert torch.equal(kept, theirs > -torch.inf)
    assert kept.any(dim=-1).all()


def test_tokens_as_likely_as_the_kth_are_kept_as_hugging_face_does() -> None:
    logits = torch.tensor([[2.0, 1.0, 1.0, 0.0, 3.0]], device=data.device)
    theirs = TopKLogitsWarper(3)(None, logits) > -torch.inf
    assert likely_tokens(logits, 3).tolist() == theirs.tolist() == [[True, True, True, False, True]]


def test_of_equal_tokens_at_the_border_of_top_p_as_many_are_kept_as_hugging_face_keeps() -> None:
    logits = torch.tensor([[0.25, 0.25, 0.25, 0.25], [0.5, 0.125, 0.125, 0.25]]).log()
    for top_p in (0.25, 0.5, 0.75, 0.875, 1.0):
        theirs = TopPLogitsWarper(top_p)(None, logits.clone()).isfinite()
        kept = likely_tokens(logits, top_p=top_p)
        assert torch.equal(kept.sum(dim=-1), theirs.sum(dim=-1)), top_p


def test_drawn_tokens_come_as_often_as_the_warped_probabilities_say() -> None:
    ours, prompt = model(dtype=torch.float32), texts(1, 4)
    temperature, top_k, top_p = 0.7, 12, 0.8
    warped = ours(prompt)[:, -1].detach() / temperature
    warped = TopPLogitsWarper(top_p)(None, TopKLogitsWarper(top_k)(None, warped))
    truth = warped.softmax(dim=-1).squeeze(0)
    drawn = ours.generate(
        prompt.expand(20_000, -1),
        1,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        generator=seeded(),
    )
    share = torch.bincount(drawn.flatten(), minlength=TOKENS) / len(drawn)
    assert 1 < int((truth > 0).sum()) < top_k
    assert share[truth == 0].sum() == 0
    # Four standard deviations of a share of 20,000
    assert ((share - truth).abs() <= 4 * (truth * (1 - truth) / 20_000).sqrt() + 1e-9).all()


# Writing


@FUSED
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"temperature": 1.0},
        {"temperature": 0.5, "top_k": 5},
        {"temperature": 1.5, "top_p": 0.7},
        {"temperature": 1.0, "top_k": 20, "top_p": 0.9},
    ],
)
def test_the_text_is_the_same_with_and_without_the_cache(
    how: dict[str, object], fused: bool
) -> None:
    ours, prompts = model(fused=fused), texts(4, 6)
    cached = ours.generate(prompts, 16, generator=seeded(), **how)
    assert cached.shape == (4, 16)
    assert torch.equal(cached, ours.generate(prompts, 16, generator=seeded(), **how))
    assert torch.equal(
        cached, ours.generate(prompts, 16, generator=seeded(), use_cache=False, **how)
    )
    if how:
        assert not torch.equal(cached, ours.generate(prompts, 16, generator=seeded(4), **how))


@FUSED
@pytest.mark.parametrize("use_cache", [True, False])
def test_a_prompt_padded_on_the_left_gives_the_text_of_the_prompt_alone(
    fused: bool, use_cache: bool
) -> None:
    ours = model(fused=fused)
    prompts = [texts(1, length, seed=length) for length in (2, 5, 7)]
    rows, masks = [], []
    for prompt in prompts:
        padding = texts(1, 7 - prompt.shape[1], seed=9)
        rows.append(torch.cat([padding, prompt], dim=1))
        masks.append(torch.cat([torch.zeros_like(padding), torch.ones_like(prompt)], dim=1) > 0)
    together = ours.generate(torch.cat(rows), 12, mask=torch.cat(masks), use_cache=use_cache)
    alone = torch.cat([ours.generate(prompt, 12) for prompt in prompts])
    assert torch.equal(together, alone)
    assert not torch.equal(ours.generate(torch.cat(rows), 12), alone)


@FUSED
def test_packed_documents_do_not_see_each_other(fused: bool) -> None:
    ours, lengths = model(fused=fused), [4, 1, 6]
    packed = texts(2, sum(lengths))
    document = torch.repeat_interleave(torch.arange(3), torch.tensor(lengths)).to(data.device)
    alone = [ours(part) for part in packed.split(lengths, dim=1)]
    mask = document.unsqueeze(1) == document
    close(ours(packed, mask=mask), torch.cat(alone, dim=1))
    assert not torch.allclose(ours(packed), torch.cat(alone, dim=1))


# Caches


@FUSED
@pytest.mark.parametrize("pieces", [[1] * 9, [5, 1, 3], [9], [0, 9]])
def test_pieces_with_caches_equal_one_pass(pieces: list[int], fused: bool) -> None:
    ours, tokens = model(fused=fused), texts(2, 9)
    caches = [KeyValueCache() for _ in ours.layers]
    parts = [ours(part, caches=caches) for part in tokens.split(pieces, dim=1)]
    close(torch.cat(parts, dim=1), ours(tokens))
    assert [cache.length for cache in caches] == [9, 9]


def test_lengths_count_the_cached_tokens_too() -> None:
    ours, tokens = model(), texts(2, 9)
    lens = torch.tensor([9, 7], device=data.device)
    caches = [KeyValueCache() for _ in ours.layers]
    ours(tokens[:, :5], caches=caches)
    later = ours(tokens[:, 5:], lens, caches=caches)
    close(later, ours(tokens, lens)[:, 5:])
    assert not torch.allclose(later[1], ours(tokens)[1, 5:])


# What it is made of


def test_a_tied_model_has_one_matrix_for_tokens_in_and_out() -> None:
    tied, untied = model(), model(tied=False)
    more = sum(p.numel() for p in untied.parameters()) - sum(p.numel() for p in tied.parameters())
    assert more == TOKENS * 24
    assert untied.state_dict().keys() - tied.state_dict().keys() == {"to_logits.weight"}
    again = copy.deepcopy(tied)
    tokens = texts(2, 5)
    close(again(tokens), tied(tokens))
    with torch.no_grad():
        again.embedding.weight[0] += 1
    changed = (again(tokens) - tied(tokens))[:, :, 0]
    assert (changed.abs() > 1e-3).all()


def test_first_logits_have_a_variance_of_about_one() -> None:
    torch.manual_seed(0)
    ours = LanguageModel(500, 64, 4, 128, 2)
    logits = ours(torch.randint(500, (8, 32), generator=seeded()))
    assert 0.5 < float(logits.detach().var()) < 2


# Refusals


@pytest.mark.parametrize(
    ("how", "kind", "pieces"),
    [
        ({"temperature": -0.5}, ValueError, ["temperature must be at least 0", -0.5]),
        ({"temperature": float("nan")}, ValueError, ["temperature", "nan"]),
        ({"temperature": "hot"}, TypeError, ["temperature", "str"]),
        ({"top_k": 0}, ValueError, ["top_k must be at least 1", 0]),
        ({"top_k": 2.0}, TypeError, ["top_k", "float"]),
        ({"top_p": 0.0}, ValueError, ["top_p must be above 0 and at most 1", 0.0]),
        ({"top_p": 1.1}, ValueError, ["top_p", 1.1]),
        ({"top_p": float("nan")}, ValueError, ["top_p", "nan"]),
        ({"num_steps": 0}, ValueError, ["num_steps", 0]),
    ],
)
def test_wrong_ways_to_write_are_refused(how: dict, kind: type, pieces: list[object]) -> None:
    ours, prompt = model(), texts(1, 3)
    with refuses(kind, "LanguageModel.generate", *pieces):
        ours.generate(prompt, **{"num_steps": 2, **how})


def test_wrong_tokens_are_refused() -> None:
    ours = model()
    with refuses(ValueError, "tokens holds 53", "the last of the tokens, 52"):
        ours(torch.tensor([[1, 53]], device=data.device))
    with refuses(ValueError, "tokens holds -1"):
        ours.generate(torch.tensor([[1, -1]], device=data.device), 2)
    with refuses(TypeError, "tokens must hold integers"):
        ours(torch.ones(1, 2, device=data.device))
    with refuses(ShapeError, "tokens must have 2 axes"):
        ours(torch.tensor([1, 2], device=data.device))
    with refuses(ValueError, "the length of tokens must be at least 1"):
        ours.generate(texts(2, 0), 2)
    hidden = torch.tensor([[True, False]], device=data.device)
    with refuses(ValueError, "mask hides the last token", "left"):
        ours.generate(texts(1, 2), 2, mask=hidden)


def test_caches_of_another_model_are_refused() -> None:
    ours, tokens = model(), texts(2, 3)
    one = KeyValueCache()
    with refuses(ValueError, "caches must be 2 different ones", "are 1"):
        ours(tokens, caches=[one])
    with refuses(ValueError, "caches must be 2 different ones", "are 1"):
        ours(tokens, caches=[one, one])
    torch.manual_seed(0)
    other = LanguageModel(TOKENS, 24, 4, 40, 2, num_kv_heads=4).to(data.device, torch.float64)
    caches = [KeyValueCache() for _ in other.layers]
    other(tokens, caches=caches)
    with refuses(ShapeError, "'kv_heads' is 4 in the cache", "2 in this module"):
        ours(tokens, caches=caches)
    with refuses(ShapeError, "'batch' is 1 in tokens", "2 in the cache"):
        other(tokens[:1], caches=caches)
