"""The language model against Hugging Face's Llama; writing with it; its masks and its caches."""

import copy

import pytest
import torch
from cases import close, refuses
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.generation.logits_process import TopKLogitsWarper, TopPLogitsWarper

from attention_book import KeyValueCache, LanguageModel, ShapeError, data, trace
from attention_book.language_model import likely_tokens

NAMES = [
    ("model.layers", "layers"),
    ("model.embed_tokens", "embedding"),
    ("model.norm", "norm"),
    ("lm_head", "to_logits"),
    ("self_attn.q_proj", "self_attention.W_q"),
    ("self_attn.k_proj", "self_attention.W_k"),
    ("self_attn.v_proj", "self_attention.W_v"),
    ("self_attn.o_proj", "self_attention.W_o"),
    ("post_attention_layernorm", "norm_2"),
    ("input_layernorm", "norm_1"),
    ("mlp.gate_proj", "feed_forward.gate"),
    ("mlp.up_proj", "feed_forward.up"),
    ("mlp.down_proj", "feed_forward.down"),
]
TOKENS = 53
FUSED = pytest.mark.parametrize("fused", [False, True])


def llama(*, kv_heads: int = 2, base: float = 10000.0, tied: bool = True) -> LlamaForCausalLM:
    """Hugging Face's model with random parameters large enough that layers differ."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=TOKENS,
        hidden_size=48,
        intermediate_size=80,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=kv_heads,
        rope_parameters={"rope_theta": base, "rope_type": "default"},
        tie_word_embeddings=tied,
        initializer_range=0.2,
        eos_token_id=None,
    )
    theirs = LlamaForCausalLM(config).eval().to(data.device)
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            if "norm" in name:
                parameter.uniform_(0.5, 1.5)
    return theirs


def same(theirs: LlamaForCausalLM, *, fused: bool = False) -> LanguageModel:
    """Ours, with the parameters of theirs."""
    config = theirs.config
    tied = config.tie_word_embeddings
    ours = LanguageModel(
        config.vocab_size,
        config.hidden_size,
        config.num_attention_heads,
        config.intermediate_size,
        config.num_hidden_layers,
        num_kv_heads=config.num_key_value_heads,
        rotary_base=config.rope_parameters["rope_theta"],
        eps=config.rms_norm_eps,
        tied=tied,
        fused=fused,
    )
    state = {}
    for name, tensor in theirs.state_dict().items():
        for old, new in NAMES:
            name = name.replace(old, new)
        if not (tied and name.startswith("to_logits")):
            state[name] = tensor
    ours.load_state_dict(state)
    return ours.eval().to(data.device)


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


# Against Hugging Face


@torch.no_grad()
@FUSED
@pytest.mark.parametrize(
    ("kv_heads", "base", "tied"),
    [(4, 10000.0, False), (1, 10000.0, True), (2, 500000.0, True), (2, 100.0, False)],
)
def test_logits_and_greedy_texts_are_those_of_llama(
    kv_heads: int, base: float, tied: bool, fused: bool
) -> None:
    theirs = llama(kv_heads=kv_heads, base=base, tied=tied)
    ours, tokens = same(theirs, fused=fused), texts(3, 11)
    truth = theirs(tokens).logits
    close(ours(tokens), truth, reach=float(truth.abs().max()))
    written = theirs.generate(
        tokens,
        attention_mask=torch.ones_like(tokens),
        max_new_tokens=20,
        do_sample=False,
        pad_token_id=0,
    )
    for use_cache in (True, False):
        assert torch.equal(ours.generate(tokens, 20, use_cache=use_cache), written[:, 11:])


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


def test_the_token_that_reaches_top_p_is_kept() -> None:
    logits = torch.tensor([[0.5, 0.3, 0.15, 0.05]], device=data.device).log()
    for top_p, count in [(0.4, 1), (0.6, 2), (0.79, 2), (0.81, 3), (0.96, 4)]:
        assert int(likely_tokens(logits, top_p=top_p).sum()) == count


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


def test_greedy_writing_takes_the_likeliest_token_each_time() -> None:
    ours, written = model(), texts(2, 3)
    for token in ours.generate(written, 8).T:
        assert torch.equal(ours(written)[:, -1].argmax(dim=-1), token)
        written = torch.cat([written, token.unsqueeze(1)], dim=1)


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
    close(later[0], ours(tokens, lens)[0, 5:])
    close(later[1, :2], ours(tokens, lens)[1, 5:7])


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


def test_one_head_is_switched_off_by_zeros_in_its_columns_of_the_output() -> None:
    ours, tokens = model(), texts(2, 6)
    attention = ours.layers[1].self_attention
    d_v = attention.sizes["d_v"]
    with torch.no_grad():
        attention.W_o.weight[:, 2 * d_v : 3 * d_v] = 0
        before = ours(tokens)
        attention.W_v.weight[:] += torch.randn_like(attention.W_v.weight[:, :1])
    by_head = attention.W_o.weight.unflatten(1, (4, d_v))
    assert by_head.abs().sum(dim=(0, 2)).gt(0).tolist() == [True, True, False, True]
    assert not torch.allclose(ours(tokens), before)


def test_its_steps_are_numbered_through_layers() -> None:
    ours = model()
    with trace() as shapes:
        ours(texts(2, 6))
    numbers = [step.number for step in shapes]
    assert len(set(numbers)) == len(numbers)
    top = [(step.number, step.name, step.dims) for step in shapes if "." not in step.number]
    assert top == [
        ("1", "embedded", ("batch", "length", "d_model")),
        ("2", "transformed", ("batch", "length", "d_model")),
        ("3", "normed", ("batch", "length", "d_model")),
        ("4", "logits", ("batch", "length", "tokens")),
    ]
    assert [step.name for step in shapes if step.number.count(".") == 1] == 2 * [
        "x",
        "normed",
        "attended",
        "mixed",
        "mapped",
        "returns",
    ]


# Refusals


@pytest.mark.parametrize(
    ("options", "kind", "pieces"),
    [
        ({"rotary_base": 0}, ValueError, ["rotary_base must be above 0", 0]),
        ({"rotary_base": -1.0}, ValueError, ["rotary_base", -1.0]),
        ({"rotary_base": float("nan")}, ValueError, ["rotary_base", "nan"]),
        ({"rotary_base": "10000"}, TypeError, ["rotary_base", "str"]),
        ({"num_kv_heads": 3}, ValueError, ["num_kv_heads", 3]),
        ({"eps": 0}, ValueError, ["eps must be above 0", 0]),
        ({"dropout": 1.5}, ValueError, ["dropout", 1.5]),
    ],
)
def test_wrong_options_are_refused(options: dict, kind: type, pieces: list[object]) -> None:
    with refuses(kind, *pieces):
        LanguageModel(TOKENS, 24, 4, 40, 2, **options)


@pytest.mark.parametrize(
    ("index", "name"),
    list(enumerate(["num_tokens", "d_model", "num_heads", "num_hiddens", "num_layers"])),
)
def test_sizes_below_one_are_refused(index: int, name: str) -> None:
    sizes = [9, 24, 4, 40, 2]
    sizes[index] = 0
    with refuses(ValueError, name, 0):
        LanguageModel(*sizes)


def test_heads_of_odd_size_cannot_be_rotated() -> None:
    with refuses(ValueError, "rotary_base", "d_k = 3", "odd"):
        LanguageModel(TOKENS, 12, 4, 40, 2)
    LanguageModel(TOKENS, 12, 4, 40, 2, rotary_base=None)


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
