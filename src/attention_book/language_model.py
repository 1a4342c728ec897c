"""A language model as they are built today: decoder-only, normalised first, rotary, gated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention_book.cache import KeyValueCache
from attention_book.data import draw
from attention_book.masking import Rule, finite_padding, masked_softmax
from attention_book.multihead import MultiHeadAttention
from attention_book.positions import Llama3Scaling
from attention_book.pretrained import read_options, read_parameters
from attention_book.shapes import at_least, checked, number, probability


def likely_tokens(logits: Tensor, top_k: int | None = None, top_p: float | None = None) -> Tensor:
    """Which tokens may be drawn: the k likeliest and, of these, the likeliest that reach top_p.

    The token with which their probabilities reach `top_p` is kept, and so is every token as likely
    as the k-th.

    Returns:
        A boolean tensor of the shape of `logits`, (…, tokens).

    Raises:
        TypeError, ValueError: for a top_k below 1 and a top_p that is not above 0 and at most 1.

    Source: top_k, Fan et al. (2018), section 5.1; top_p, Holtzman et al. (2020), section 3.1.
    """
    _check_cuts("likely_tokens", top_k, top_p)
    kept = torch.ones_like(logits, dtype=torch.bool)
    if top_k is not None:
        least = logits.topk(min(top_k, logits.shape[-1])).values[..., -1:]
        kept = logits >= least
    if top_p is not None:
        ascending, order = torch.where(kept, logits, -torch.inf).sort(dim=-1)
        # A token goes where it and all that are less likely have 1 − top_p together, or less.
        goes = ascending.softmax(dim=-1).cumsum(dim=-1) <= 1 - top_p
        goes[..., -1] = False
        kept = kept & ~goes.scatter(-1, order, goes)
    return kept


def _check_cuts(owner: str, top_k: int | None, top_p: float | None) -> None:
    if top_k is not None:
        at_least(owner, "top_k", top_k)
    if top_p is not None and not 0 < number(owner, "top_p", top_p) <= 1:
        raise ValueError(f"{owner}: top_p must be above 0 and at most 1, but is {top_p}")


class GatedFeedForward(nn.Module):
    """The same gated network at each position (SwiGLU), down(silu(gate(x)) · up(x)).

    Raises:
        TypeError, ValueError: for sizes below 1.

    Source: Shazeer (2020), eq. 6.
    """

    def __init__(self, d_model: int, num_hiddens: int) -> None:
        super().__init__()
        self.sizes = {
            "d_model": at_least(self, "d_model", d_model),
            "hidden": at_least(self, "num_hiddens", num_hiddens),
        }
        self.gate = nn.Linear(d_model, num_hiddens, bias=False)
        self.up = nn.Linear(d_model, num_hiddens, bias=False)
        self.down = nn.Linear(num_hiddens, d_model, bias=False)

    @checked
    def forward(self, x: Tensor) -> Tensor:
        """Transform each position by itself.

        Shapes:
            x        (batch, length, d_model)
            gates    (batch, length, hidden)
            gated    (batch, length, hidden)
            returns  (batch, length, d_model)
        """
        gates = F.silu(self.gate(x))
        gated = gates * self.up(x)
        return self.down(gated)

    if TYPE_CHECKING:
        __call__ = forward


class LanguageModelLayer(nn.Module):
    """Causal self-attention, then the gated network; before each, normalise; after each, add.

    Source: Touvron et al. (2023), section 2.2.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        num_hiddens: int,
        *,
        num_kv_heads: int | None = None,
        rotary_base: float | None = 10000.0,
        rotary_scaling: Llama3Scaling | None = None,
        eps: float = 1e-6,
        dropout: float = 0.0,
        fused: bool = False,
    ) -> None:
        super().__init__()
        self.norm_1 = nn.RMSNorm(d_model, eps)
        self.self_attention = MultiHeadAttention(
            d_model,
            num_heads,
            num_kv_heads=num_kv_heads,
            rotary_base=rotary_base,
            rotary_scaling=rotary_scaling,
            fused=fused,
        )
        self.norm_2 = nn.RMSNorm(d_model, eps)
        self.feed_forward = GatedFeedForward(d_model, num_hiddens)
        self.dropout = nn.Dropout(probability(self, "dropout", dropout))
        self.sizes = self.self_attention.sizes

    @checked
    def forward(
        self,
        x: Tensor,
        valid_lens: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Let each position attend to those up to itself, then transform it.

        With a cache, `x` contains only the new positions; lengths and mask count all.

        Shapes:
            x           (batch, length, d_model)
            valid_lens  (batch) or (batch, length), integers from cached to cached+length
            mask        (length, cached+length) or (batch, length, cached+length)
                        or (batch, heads, length, cached+length), boolean, sizes may be 1
            normed      (batch, length, d_model)
            attended    (batch, length, d_model)
            mixed       (batch, length, d_model)
            mapped      (batch, length, d_model)
            returns     (batch, length, d_model)
        """
        rule = Rule(valid_lens, mask, causal=True)
        finite = x if cache is not None else finite_padding(rule, x)
        normed = self.norm_1(finite)
        attended = self.self_attention(
            normed, normed, normed, valid_lens, mask=mask, causal=True, cache=cache
        )
        mixed = finite + self.dropout(attended)
        mapped = self.feed_forward(self.norm_2(mixed))
        return mixed + self.dropout(mapped)

    if TYPE_CHECKING:
        __call__ = forward


class LanguageModel(nn.Module):
    """A decoder-only model: it scores every token as the next one, at each position of a text.

    Each layer adds attention(norm(x)) to its input x, then feed_forward(norm(x)). Norms are
    `torch.nn.RMSNorm`, positions are rotary, the feed-forward network is gated, nothing has a bias.

    Args:
        num_tokens: number of different tokens.
        d_model: components of one position.
        num_heads: heads of each attention; must divide `d_model`.
        num_hiddens: hidden units of each feed-forward network.
        num_layers: number of layers.
        num_kv_heads: as for `MultiHeadAttention`.
        rotary_base: as for `MultiHeadAttention`; None gives the model no positions but the order
            that the causal rule lets through.
        rotary_scaling: as for `MultiHeadAttention`.
        eps: of the normalisations.
        tied: whether the logits are dot products with the embedding's own vectors; otherwise a
            Linear of its own computes them.
        dropout: probability of dropping each component of an embedding and of an update.
        fused: as for `DotProductAttention`.

    Raises:
        TypeError, ValueError: for sizes below 1, heads that do not divide, an odd size of one head
            with `rotary_base`, a base or an eps that is not a number above 0, and a dropout that
            is not a probability.

    Source: Touvron et al. (2023), section 2.2; with fewer heads of keys and values, Ainslie et al.
    (2023).
    """

    def __init__(
        self,
        num_tokens: int,
        d_model: int,
        num_heads: int,
        num_hiddens: int,
        num_layers: int,
        *,
        num_kv_heads: int | None = None,
        rotary_base: float | None = 10000.0,
        rotary_scaling: Llama3Scaling | None = None,
        eps: float = 1e-6,
        tied: bool = True,
        dropout: float = 0.0,
        fused: bool = False,
    ) -> None:
        super().__init__()
        at_least(self, "num_tokens", num_tokens)
        at_least(self, "d_model", d_model)
        if not number(self, "eps", eps) > 0:
            raise ValueError(f"LanguageModel: eps must be above 0, but is {eps}")
        self.embedding = nn.Embedding(num_tokens, d_model)
        # With this variance a tied model's first logits have variance 1.
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
        layers = [
            LanguageModelLayer(
                d_model,
                num_heads,
                num_hiddens,
                num_kv_heads=num_kv_heads,
                rotary_base=rotary_base,
                rotary_scaling=rotary_scaling,
                eps=eps,
                dropout=dropout,
                fused=fused,
            )
            for _ in range(at_least(self, "num_layers", num_layers))
        ]
        self.layers = nn.ModuleList(layers)
        self.norm = nn.RMSNorm(d_model, eps)
        self.to_logits = None if tied else nn.Linear(d_model, num_tokens, bias=False)
        self.dropout = nn.Dropout(probability(self, "dropout", dropout))
        self.sizes = {**layers[0].sizes, "tokens": num_tokens}

    @classmethod
    def from_pretrained(cls, folder: str | Path, *, fused: bool = False) -> Self:
        """Load the parameters of a folder of the Llama family, in Hugging Face's format.

        The folder has a config.json and the parameters as safetensors, in one file or in several
        with an index: Llama 2 and 3, SmolLM2, TinyLlama and others of the model type "llama".
        Nothing is downloaded. The logits are those of Hugging Face's `LlamaForCausalLM`, and the
        numbers keep the format in which they are stored.

        Raises:
            FileNotFoundError: for a folder or a file that is not there.
            ValueError: for a setting that this class does not have, such as biases or another
                activation, and for a tensor that is missing, too many or of another shape.
        """
        folder = Path(folder)
        options = read_options(folder)
        with torch.device("meta"):  # the parameters take no memory before they are read
            model = cls(**options, fused=fused)
        shapes = {name: tensor.shape for name, tensor in model.state_dict().items()}
        model.load_state_dict(read_parameters(folder, shapes), assign=True)
        return model

    @checked
    def forward(
        self,
        tokens: Tensor,
        valid_lens: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        caches: Sequence[KeyValueCache] | None = None,
    ) -> Tensor:
        """Score, at each position, every token as the next one.

        A position attends to those up to itself that `valid_lens` and `mask` allow. Rotary
        positions enter the scores by their differences alone. So padding on the left that the mask
        hides changes nothing, and several documents in one row, each hidden from the others, are
        read as if each stood alone.

        Shapes:
            tokens       (batch, length), integers below tokens
            valid_lens   (batch) or (batch, length), integers from cached to cached+length
            mask         (length, cached+length) or (batch, length, cached+length)
                         or (batch, heads, length, cached+length), boolean, sizes may be 1
            embedded     (batch, length, d_model)
            transformed  (batch, length, d_model)
            normed       (batch, length, d_model)
            logits       (batch, length, tokens)
            returns      (batch, length, tokens)

        Args:
            caches: one `KeyValueCache` for each layer, with what earlier calls read; `tokens` are
                those that follow. Lengths and mask count all.

        Raises:
            ShapeError, TypeError, ValueError: for arguments that do not fit the table, and caches
                of another model.
        """
        if caches is not None:
            self._check_caches(caches)
        embedded = self.dropout(self.embedding(tokens))
        transformed = self._through_layers(embedded, valid_lens, mask, caches)
        normed = self.norm(transformed)
        output = self.embedding if self.to_logits is None else self.to_logits
        logits = F.linear(normed, output.weight)
        return logits

    if TYPE_CHECKING:
        __call__ = forward

    def _through_layers(
        self,
        x: Tensor,
        valid_lens: Tensor | None,
        mask: Tensor | None,
        caches: Sequence[KeyValueCache] | None,
    ) -> Tensor:
        for i, layer in enumerate(self.layers):
            x = layer(x, valid_lens, mask=mask, cache=None if caches is None else caches[i])
        return x

    def _check_caches(self, caches: Sequence[KeyValueCache]) -> None:
        if len(caches) != len(self.layers) or len(set(map(id, caches))) != len(caches):
            raise ValueError(
                f"LanguageModel: caches must be {len(self.layers)} different ones, one for each "
                f"layer, but are {len(set(map(id, caches)))}"
            )

    @torch.no_grad()
    @checked
    def generate(
        self,
        tokens: Tensor,
        num_steps: int,
        *,
        mask: Tensor | None = None,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        generator: torch.Generator | None = None,
        use_cache: bool = True,
    ) -> Tensor:
        """Continue each text by `num_steps` tokens.

        With the cache each step computes one position; without, all that are written so far. The
        tokens are the same. While the model is in training mode its dropout is active here too.

        Shapes:
            tokens  (batch, length), integers below tokens
            mask    (batch, length), boolean

        Args:
            num_steps: how many tokens to add to each text.
            mask: False for the padding on the left of the shorter texts.
            temperature: 0 takes the likeliest token; otherwise the logits are divided by it.
            top_k: draw only from the k likeliest tokens.
            top_p: draw only from the likeliest tokens that together have this probability,
                above 0 and at most 1: the one that reaches it is the last.
            generator: draws the tokens, on the CPU; PyTorch's own where not given.
            use_cache: keep keys and values in a `KeyValueCache` for each layer.

        Returns:
            The new tokens, (batch, num_steps).

        Raises:
            ShapeError, TypeError, ValueError: for arguments out of these ranges.
        """
        owner = "LanguageModel.generate"
        at_least(owner, "num_steps", num_steps)
        at_least(owner, "the length of tokens", tokens.shape[1])
        if mask is not None and not mask[:, -1].all():
            raise ValueError(f"{owner}: mask hides the last token of a text: pad on the left")
        if not number(owner, "temperature", temperature) >= 0:  # which refuses NaN, too
            raise ValueError(f"{owner}: temperature must be at least 0, but is {temperature}")
        _check_cuts(owner, top_k, top_p)
        caches = [KeyValueCache() for _ in self.layers] if use_cache else None
        written, may_read = tokens, mask
        for _ in range(num_steps):
            new = written[:, caches[0].length :] if caches else written
            key_mask = None if may_read is None else may_read.unsqueeze(1)
            logits = self(new, mask=key_mask, caches=caches)[:, -1:]
            if temperature == 0:
                chosen = logits.argmax(dim=-1)
            else:
                scores = logits.float() / temperature
                weights = masked_softmax(scores, mask=likely_tokens(scores, top_k, top_p))
                chosen = draw(weights, generator)
            written = torch.cat([written, chosen], dim=1)
            if may_read is not None:
                may_read = F.pad(may_read, (0, 1), value=True)
        return written[:, tokens.shape[1] :]
