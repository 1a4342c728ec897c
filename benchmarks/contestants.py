"""Who is compared with whom: what each computes, on which data, and the bounds that we promise.

Peers that hold weights are given ours, so that both must give the same answer; `judged` demands it
before anything is timed. D2L's formulations are written anew from its description.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention_book import (
    AdditiveAttention,
    DotProductAttention,
    LanguageModel,
    MultiHeadAttention,
    masked_softmax,
)
from attention_book.data import device, normal

WIDTH, HEADS, SIZE, HIDDEN = 512, 8, 64, 64
SIZES = {"lesson": (2, 10), "usual": (8, 512)}
USUAL = "usual"
TOKENS, NEW_TOKENS, KV_HEADS = 1000, 64, (6, 2)
WRITES = f"writes {NEW_TOKENS} tokens"


class Case(NamedTuple):
    """The data of one measurement; padded: whether the keys of each example end at a length."""

    batch: int
    length: int
    training: bool = False
    padded: bool = True

    @property
    def valid_lens(self) -> Tensor:
        """Lengths that rise over the batch, up to the full length."""
        return torch.arange(1, self.batch + 1, device=device) * self.length // self.batch

    def random(self, *sizes: int, seed: int = 0) -> Tensor:
        """Random numbers (batch, length, *sizes), a leaf where gradients are wanted.

        Asked again, it gives the same tensor, so that neither side's lies better in memory.
        """
        return _drawn(self, sizes, seed)


@cache
def _drawn(case: Case, sizes: tuple[int, ...], seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    tensor = normal(case.batch, case.length, *sizes, generator=generator)
    return tensor.requires_grad_(case.training)


class Contestant(NamedTuple):
    """A forward pass, and all that it takes gradients for: the first input, then the rest."""

    forward: Callable[[], Tensor]
    leaves: list[Tensor]


def call_of(contestant: Contestant, case: Case) -> Callable[[], tuple[Tensor, ...]]:
    """The forward pass alone, or with the backward pass to every leaf from one gradient."""
    if case.training:
        # Every output here has the shape of the first input.
        gradient = torch.ones_like(contestant.leaves[0]).cumsum(dim=-1) / WIDTH

        def forward_and_back() -> tuple[Tensor, ...]:
            output = contestant.forward()
            return output, *torch.autograd.grad(output, contestant.leaves, gradient)

        return forward_and_back

    @torch.no_grad()
    def forward() -> tuple[Tensor, ...]:
        return (contestant.forward(),)

    return forward


def judged(ours: Contestant, peer: Contestant, case: Case) -> None:
    """Raise where the two disagree, in the output or in the gradient of the first input."""
    answers = (call_of(side, case)()[:2] for side in (ours, peer))
    for mine, theirs in zip(*answers, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-4)


# Softmaxes of scores


def _scores(weigh: Callable[[Tensor, Case], Tensor]) -> Callable[[Case], Contestant]:
    def make(case: Case) -> Contestant:
        scores = case.random(case.length)
        return Contestant(lambda: weigh(scores, case), [scores])

    return make


def _causal(scores: Tensor, case: Case) -> Tensor:
    return masked_softmax(scores, causal=True)


def _in_length(valid_lens: Tensor, num_keys: int) -> Tensor:
    """Whether each key (batch, keys) is not padding, written as a peer's user would."""
    return torch.arange(num_keys, device=device) < valid_lens[:, None]


def _assigned(scores: Tensor, valid_lens: Tensor) -> Tensor:
    """D2L's masked softmax: −10⁶ is written over the padded scores, row by row of a flat matrix."""
    rows = scores.flatten(end_dim=1)
    lengths = valid_lens.repeat_interleave(scores.shape[1])
    rows[~_in_length(lengths, scores.shape[2])] = -1e6
    return F.softmax(rows, dim=-1).reshape(scores.shape)


# Dot products, size 64


def _dot(attend: Callable[..., Tensor]) -> Callable[[Case], Contestant]:
    def make(case: Case) -> Contestant:
        leaves = [case.random(SIZE, seed=seed) for seed in range(3)]
        return Contestant(lambda: attend(*leaves, case.valid_lens), leaves)

    return make


def _d2l_dot(queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor) -> Tensor:
    scores = torch.bmm(queries, keys.transpose(1, 2)) / queries.shape[-1] ** 0.5
    return torch.bmm(_assigned(scores, valid_lens), values)


def _kernel(queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor) -> Tensor:
    """PyTorch's kernel, as one head: without an axis of heads it takes a slower way."""
    one_head = (x.unsqueeze(1) for x in (queries, keys, values))
    mask = _in_length(valid_lens, keys.shape[1])[:, None, None]
    return F.scaled_dot_product_attention(*one_head, attn_mask=mask).squeeze(1)


# Additive scores, 64 hidden units


def _additive(
    query_chunk: int | None, attend: Callable[..., Tensor] | None = None
) -> Callable[[Case], Contestant]:
    def make(case: Case) -> Contestant:
        torch.manual_seed(0)
        module = AdditiveAttention(SIZE, SIZE, HIDDEN, query_chunk=query_chunk).to(device)
        inputs = [case.random(SIZE, seed=seed) for seed in range(3)]
        given = (*inputs, case.valid_lens)
        leaves = [*inputs, *module.parameters()]
        if attend is None:
            return Contestant(lambda: module(*given), leaves)
        return Contestant(lambda: attend(module, *given), leaves)

    return make


def _d2l_additive(
    module: AdditiveAttention, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor
) -> Tensor:
    hidden = torch.tanh(module.W_q(queries).unsqueeze(2) + module.W_k(keys).unsqueeze(1))
    return torch.bmm(_assigned(module.w_v(hidden).squeeze(-1), valid_lens), values)


def _tanh(case: Case) -> Contestant:
    hidden = torch.zeros(case.batch, case.length, case.length, HIDDEN, device=device)
    return Contestant(hidden.tanh_, [])


# Several heads, width 512


def _heads(case: Case, *, fused: bool = False) -> tuple[MultiHeadAttention, Tensor]:
    torch.manual_seed(0)
    module = MultiHeadAttention(WIDTH, HEADS, bias=True, fused=fused).to(device)
    return module.train(case.training), case.random(WIDTH)


def _ours(*, fused: bool) -> Callable[[Case], Contestant]:
    def make(case: Case) -> Contestant:
        module, x = _heads(case, fused=fused)
        lens = case.valid_lens if case.padded else None
        return Contestant(lambda: module(x, x, x, lens), [x, *module.parameters()])

    return make


def _torch_heads(case: Case) -> Contestant:
    ours, x = _heads(case)
    peer = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True).to(device).train(case.training)
    inward = (ours.W_q, ours.W_k, ours.W_v)
    weights = {
        "in_proj_weight": torch.cat([linear.weight for linear in inward]),
        "in_proj_bias": torch.cat([linear.bias for linear in inward]),
        "out_proj.weight": ours.W_o.weight,
        "out_proj.bias": ours.W_o.bias,
    }
    peer.load_state_dict(weights)
    blocked = ~_in_length(case.valid_lens, case.length) if case.padded else None

    def forward() -> Tensor:
        return peer(x, x, x, key_padding_mask=blocked, need_weights=False)[0]

    return Contestant(forward, [x, *peer.parameters()])


def _bert(kind: str) -> Callable[[Case], Contestant]:
    def make(case: Case) -> Contestant:
        from transformers import BertConfig
        from transformers.models.bert.modeling_bert import BertSelfAttention

        ours, x = _heads(case)
        config = BertConfig(
            hidden_size=WIDTH,
            num_attention_heads=HEADS,
            attention_probs_dropout_prob=0.0,
            attn_implementation=kind,
        )
        peer = BertSelfAttention(config).to(device).train(case.training)
        for mine, theirs in zip(
            (ours.W_q, ours.W_k, ours.W_v), (peer.query, peer.key, peer.value), strict=True
        ):
            theirs.load_state_dict(mine.state_dict())
        mask = _in_length(case.valid_lens, case.length)[:, None, None]
        if kind == "eager":  # there BERT's mask is added
            mask = torch.where(mask, 0.0, torch.finfo(x.dtype).min)
        leaves = [x, *peer.parameters(), *ours.W_o.parameters()]
        return Contestant(lambda: ours.W_o(peer(x, mask)[0]), leaves)

    return make


def _keras_heads(case: Case) -> Contestant:
    os.environ["KERAS_BACKEND"] = "torch"
    os.environ["KERAS_TORCH_DEVICE"] = device.type
    with tempfile.TemporaryDirectory() as home:  # else its settings are written into the user's
        os.environ.setdefault("KERAS_HOME", home)
        import keras

    ours, x = _heads(case)
    peer = keras.layers.MultiHeadAttention(HEADS, WIDTH // HEADS)
    peer.build(x.shape, x.shape)
    inward = [[linear.weight.T.unflatten(1, (HEADS, -1)), linear.bias.unflatten(0, (HEADS, -1))]
              for linear in (ours.W_q, ours.W_k, ours.W_v)]  # fmt: skip
    outward = [ours.W_o.weight.T.unflatten(0, (HEADS, -1)), ours.W_o.bias]
    peer.set_weights([w.detach().cpu().numpy() for pair in (*inward, outward) for w in pair])
    allowed = _in_length(case.valid_lens, case.length)[:, None]

    def forward() -> Tensor:
        return peer(x, x, x, attention_mask=allowed, training=case.training)

    return Contestant(forward, [x, *peer.parameters()])


def _d2l_heads(case: Case) -> Contestant:
    module, x = _heads(case)

    def split(mapped: Tensor) -> Tensor:
        """Each head becomes an example of the batch."""
        by_head = mapped.reshape(case.batch, case.length, HEADS, -1).permute(0, 2, 1, 3)
        return by_head.reshape(case.batch * HEADS, case.length, -1)

    def forward() -> Tensor:
        lens = case.valid_lens.repeat_interleave(HEADS)
        by_head = _d2l_dot(*(split(w(x)) for w in (module.W_q, module.W_k, module.W_v)), lens)
        merged = by_head.reshape(case.batch, HEADS, case.length, -1).permute(0, 2, 1, 3)
        return module.W_o(merged.reshape(case.batch, case.length, -1))

    return Contestant(forward, [x, *module.parameters()])


# Language models: width 192, 4 layers, 6 heads


@cache
def _language_models(kv_heads: int) -> tuple[LanguageModel, Any]:
    """Ours, and the Llama of Hugging Face whose folder it was read from."""
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=TOKENS,
        hidden_size=192,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=6,
        num_key_value_heads=kv_heads,
        tie_word_embeddings=True,
        attn_implementation="sdpa",
        eos_token_id=None,
        pad_token_id=None,
    )
    peer = LlamaForCausalLM(config).eval()
    peer.generation_config.pad_token_id = 0  # else it warns at each call
    with tempfile.TemporaryDirectory() as folder:
        peer.save_pretrained(folder)
        ours = LanguageModel.from_pretrained(folder, fused=True).eval()
    return ours.to(device), peer.to(device)


def _tokens(case: Case) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(1, TOKENS, (case.batch, case.length), generator=generator).to(device)


def _reads(kv_heads: int, *, ours: bool) -> Callable[[Case], Contestant]:
    """The logits of all positions."""

    def make(case: Case) -> Contestant:
        mine, theirs = _language_models(kv_heads)
        tokens = _tokens(case)
        forward = (lambda: mine(tokens)) if ours else (lambda: theirs(tokens).logits)
        return Contestant(forward, [])

    return make


def _writes(kv_heads: int, *, ours: bool) -> Callable[[Case], Contestant]:
    """64 new tokens, the likeliest each time, with a cache."""

    def make(case: Case) -> Contestant:
        mine, theirs = _language_models(kv_heads)
        tokens = _tokens(case)
        options = {"attention_mask": torch.ones_like(tokens), "do_sample": False}

        def their_text() -> Tensor:
            whole = theirs.generate(tokens, max_new_tokens=NEW_TOKENS, **options)
            return whole[:, case.length :]

        forward = (lambda: mine.generate(tokens, NEW_TOKENS)) if ours else their_text
        return Contestant(forward, [])

    return make


FUSED_HEADS = "MultiHeadAttention(fused=True)"
CHUNKED = "AdditiveAttention(query_chunk=4)"
FUSED = "DotProductAttention(fused=True)"
MODEL, LLAMA = "LanguageModel(fused=True) {}, {} kv heads", "Llama, sdpa {}, {} kv heads"

CONTESTANTS: dict[str, Callable[[Case], Contestant]] = {
    "masked_softmax": _scores(lambda scores, case: masked_softmax(scores, case.valid_lens)),
    "masked_softmax, causal": _scores(_causal),
    "F.softmax, no mask": _scores(lambda scores, case: F.softmax(scores, dim=-1)),
    "D2L's masked softmax": _scores(
        lambda scores, case: _assigned(scores.clone(), case.valid_lens)
    ),
    "DotProductAttention": _dot(DotProductAttention()),
    FUSED: _dot(DotProductAttention(fused=True)),
    "D2L's dot-product attention": _dot(_d2l_dot),
    "F.scaled_dot_product_attention": _dot(_kernel),
    "AdditiveAttention": _additive(None),
    CHUNKED: _additive(4),
    "D2L's additive attention": _additive(None, _d2l_additive),
    "tanh alone, as many numbers": _tanh,
    "MultiHeadAttention": _ours(fused=False),
    FUSED_HEADS: _ours(fused=True),
    "nn.MultiheadAttention": _torch_heads,
    "Keras 3, on torch": _keras_heads,
    "BERT, sdpa": _bert("sdpa"),
    "BERT, eager": _bert("eager"),
    "D2L's multi-head attention": _d2l_heads,
    **{
        name.format(does, kv): way(kv, ours=ours)
        for kv in KV_HEADS
        for does, way in (("reads", _reads), (WRITES, _writes))
        for name, ours in ((MODEL, True), (LLAMA, False))
    },
}


class Comparison(NamedTuple):
    """One of ours against one peer."""

    ours: str
    peer: str
    padded: bool = True
    #: Whether the peer does less, and gives another answer.
    floor: bool = False
    #: Seconds of samples in each round; more where the difference is small.
    budget: float = 0.3
    sizes: tuple[str, ...] = tuple(SIZES)
    modes: tuple[str, ...] = ("inference", "training")
    #: The largest ratio that we promise, at the last of the sizes on a CPU, by quantity and mode.
    bounds: dict[str, float] = {}  # noqa: RUF012


COMPARISONS = [
    Comparison("masked_softmax", "F.softmax, no mask", floor=True),
    Comparison("masked_softmax, causal", "F.softmax, no mask", floor=True),
    Comparison("masked_softmax", "D2L's masked softmax", bounds={"time inference": 0.75}),
    Comparison("DotProductAttention", "D2L's dot-product attention"),
    Comparison("DotProductAttention", "F.scaled_dot_product_attention"),
    Comparison(FUSED, "F.scaled_dot_product_attention"),
    Comparison("AdditiveAttention", "D2L's additive attention"),
    Comparison(CHUNKED, "D2L's additive attention",
               bounds={"time inference": 0.5, "memory inference": 1 / 16,
                       "memory training": 1 / 16}),
    Comparison(CHUNKED, "tanh alone, as many numbers", floor=True, sizes=(USUAL,),
               modes=("inference",), bounds={"time inference": 1.3}),
    Comparison(FUSED_HEADS, "nn.MultiheadAttention", padded=False,
               bounds={"time inference": 1.05, "time training": 1.05}),
    Comparison(FUSED_HEADS, "nn.MultiheadAttention"),
    Comparison(FUSED_HEADS, "Keras 3, on torch"),
    Comparison(FUSED_HEADS, "BERT, sdpa"),
    Comparison("MultiHeadAttention", "BERT, eager"),
    Comparison("MultiHeadAttention", "D2L's multi-head attention"),
    *(Comparison(MODEL.format("reads", kv), LLAMA.format("reads", kv),
                 modes=("inference",), bounds={"time inference": 1.1}) for kv in KV_HEADS),
    *(Comparison(MODEL.format(WRITES, kv), LLAMA.format(WRITES, kv), budget=1.0,
                 sizes=("lesson",), modes=("inference",), bounds={"time inference": 1.2})
      for kv in KV_HEADS),
]  # fmt: skip

#: What grows with the length: the way of computing, then ours and the peer's.
GROWTH = {
    "unfused": ("DotProductAttention", "D2L's dot-product attention"),
    "fused": (FUSED, "F.scaled_dot_product_attention"),
    "additive, whole": ("AdditiveAttention", "D2L's additive attention"),
    "additive, in chunks": (CHUNKED,),
}

#: Where growth is measured: one example, its length doubled from here to the machine's limit.
SHORTEST = 16
