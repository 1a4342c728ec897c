"""A small encoder–decoder Transformer that uses attention in its three ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from attention_book.block import LayerNorm
from attention_book.cache import KeyValueCache
from attention_book.masking import Rule, allowed_keys, finite_padding
from attention_book.multihead import MultiHeadAttention
from attention_book.positions import sinusoidal_positions
from attention_book.shapes import at_least, checked, probability


class FeedForward(nn.Module):
    """The same two-layer network at each position, max(0, xW₁ + b₁)W₂ + b₂.

    Raises:
        TypeError, ValueError: for sizes below 1.

    Source: Vaswani et al. (2017), eq. 2.
    """

    def __init__(self, d_model: int, num_hiddens: int) -> None:
        super().__init__()
        self.sizes = {
            "d_model": at_least(self, "d_model", d_model),
            "hidden": at_least(self, "num_hiddens", num_hiddens),
        }
        self.W_1 = nn.Linear(d_model, num_hiddens)
        self.W_2 = nn.Linear(num_hiddens, d_model)

    @checked
    def forward(self, x: Tensor) -> Tensor:
        """Transform each position by itself.

        Shapes:
            x          (batch, length, d_model)
            activated  (batch, length, hidden)
            returns    (batch, length, d_model)
        """
        activated = torch.relu(self.W_1(x))
        return self.W_2(activated)

    if TYPE_CHECKING:
        __call__ = forward


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network; after each, add and normalise.

    With `causal=True` it is the layer of a decoder-only model, such as GPT's, with the
    normalisation after each residual.

    Source: Vaswani et al. (2017), section 3.1.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        num_hiddens: int,
        dropout: float = 0.0,
        *,
        fused: bool = False,
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads, fused=fused)
        self.sizes = {"d_model": d_model, "heads": num_heads}
        self.norm_1 = LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, num_hiddens)
        self.norm_2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(probability(self, "dropout", dropout))

    @checked
    def forward(
        self,
        x: Tensor,
        valid_lens: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        causal: bool = False,
    ) -> Tensor:
        """Let each position attend to every position that is not padding.

        Shapes:
            x           (batch, length, d_model)
            valid_lens  (batch) or (batch, length), integers from 0 to length
            mask        (length, length) or (batch, length, length)
                        or (batch, heads, length, length), boolean, sizes may be 1
            attended    (batch, length, d_model)
            mixed       (batch, length, d_model)
            mapped      (batch, length, d_model)
            returns     (batch, length, d_model)
        """
        finite = finite_padding(Rule(valid_lens, mask, causal), x)
        attended = self.self_attention(finite, finite, finite, valid_lens, mask=mask, causal=causal)
        mixed = self.norm_1(finite + self.dropout(attended))
        mapped = self.feed_forward(mixed)
        return self.norm_2(mixed + self.dropout(mapped))

    if TYPE_CHECKING:
        __call__ = forward


class DecoderCache:
    """What one `DecoderLayer` keeps while it decodes: its own keys and values, and the memory's."""

    def __init__(self) -> None:
        self.targets = KeyValueCache()
        self.memory = KeyValueCache()

    @property
    def bytes(self) -> int:
        """The memory that all stored keys and values take, in bytes."""
        return self.targets.bytes + self.memory.bytes

    @property
    def sizes(self) -> dict[str, int]:
        """The dimensions that a layer called with this cache must agree with."""
        held = self.targets.sizes
        return {dim: held[dim] for dim in ("cached", "batch") if dim in held}

    @property
    def device(self) -> torch.device | None:
        return self.targets.device


class DecoderLayer(nn.Module):
    """Causal self-attention, cross-attention, feed-forward; after each, add and normalise.

    Source: Vaswani et al. (2017), section 3.1.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        num_hiddens: int,
        dropout: float = 0.0,
        *,
        fused: bool = False,
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads, fused=fused)
        self.sizes = {"d_model": d_model, "heads": num_heads}
        self.norm_1 = LayerNorm(d_model)
        self.cross_attention = MultiHeadAttention(d_model, num_heads, fused=fused)
        self.norm_2 = LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, num_hiddens)
        self.norm_3 = LayerNorm(d_model)
        self.dropout = nn.Dropout(probability(self, "dropout", dropout))

    @checked
    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        source_lens: Tensor | None = None,
        target_lens: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        causal: bool = True,
        cache: DecoderCache | None = None,
    ) -> Tensor:
        """Let each target attend to the targets up to itself, then to the encoder's output.

        In the cross-attention the targets are the queries and the sources are the keys, and so
        their numbers are called here. `mask` and `causal` belong to the self-attention. With a
        cache, `x` contains only the new targets; what the cache has read of `memory` is not
        read again.

        Shapes:
            x            (batch, queries, d_model)
            memory       (batch, keys, d_model)
            source_lens  (batch) or (batch, queries), integers from 0 to keys
            target_lens  (batch) or (batch, queries), integers from cached to cached+queries
            mask         (queries, cached+queries) or (batch, queries, cached+queries)
                         or (batch, heads, queries, cached+queries), boolean, sizes may be 1
            memory_mask  (queries, keys) or (batch, queries, keys)
                         or (batch, heads, queries, keys), boolean, sizes may be 1
            attended     (batch, queries, d_model)
            mixed        (batch, queries, d_model)
            looked_up    (batch, queries, d_model)
            informed     (batch, queries, d_model)
            mapped       (batch, queries, d_model)
            returns      (batch, queries, d_model)
        """
        if cache is None:
            rule = Rule(target_lens, mask, causal)
            finite, unread = finite_padding(rule, x), memory
            target_cache, memory_cache = None, None
        else:
            finite, unread = x, memory[:, cache.memory.length :]
            target_cache, memory_cache = cache.targets, cache.memory
        attended = self.self_attention(
            finite, finite, finite, target_lens, mask=mask, causal=causal, cache=target_cache
        )
        mixed = self.norm_1(finite + self.dropout(attended))
        reading = Rule(source_lens, memory_mask)
        may_read = allowed_keys(reading, x.shape[1], memory.shape[1], axes=4, device=x.device)
        looked_up = self.cross_attention(mixed, unread, unread, mask=may_read, cache=memory_cache)
        informed = self.norm_2(mixed + self.dropout(looked_up))
        mapped = self.feed_forward(informed)
        return self.norm_3(informed + self.dropout(mapped))

    if TYPE_CHECKING:
        __call__ = forward


class Transformer(nn.Module):
    """Encoder and decoder, with the normalisation after each residual, as in the paper.

    Args:
        num_tokens: number of different tokens, the same in sources and targets.
        d_model: components of one position.
        num_heads: heads of each attention; must divide `d_model`.
        num_hiddens: hidden units of the feed-forward networks.
        num_layers: layers of the encoder, and as many of the decoder.
        dropout: probability of dropping each component of an embedding and of an update.
        fused: as for `DotProductAttention`.

    Raises:
        TypeError, ValueError: for sizes below 1, a d_model that the heads do not divide, and a
            dropout that is not a probability.

    Source: Vaswani et al. (2017), section 3.
    """

    def __init__(
        self,
        num_tokens: int,
        d_model: int,
        num_heads: int,
        num_hiddens: int,
        num_layers: int = 1,
        dropout: float = 0.0,
        *,
        fused: bool = False,
    ) -> None:
        super().__init__()
        self.sizes = {
            "tokens": at_least(self, "num_tokens", num_tokens),
            "d_model": at_least(self, "d_model", d_model),
            "heads": num_heads,
        }
        sizes = (d_model, num_heads, num_hiddens, dropout)
        layers = range(at_least(self, "num_layers", num_layers))
        # PyTorch draws embeddings of variance 1; the paper's factor √d_model gives the same.
        self.source_embedding = nn.Embedding(num_tokens, d_model)
        self.target_embedding = nn.Embedding(num_tokens, d_model)
        self.encoder = nn.ModuleList(EncoderLayer(*sizes, fused=fused) for _ in layers)
        self.decoder = nn.ModuleList(DecoderLayer(*sizes, fused=fused) for _ in layers)
        self.to_logits = nn.Linear(d_model, num_tokens)
        self.dropout = nn.Dropout(probability(self, "dropout", dropout))

    @checked
    def forward(
        self,
        sources: Tensor,
        targets: Tensor,
        source_lens: Tensor | None = None,
        target_lens: Tensor | None = None,
        *,
        source_mask: Tensor | None = None,
        target_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        causal: bool = True,
    ) -> Tensor:
        """Score, at each target position, every token as the next one.

        The masks restrict, in this order, the self-attention of the sources, that of the targets,
        and what the targets read of the sources. `causal` belongs to the targets.

        Shapes:
            sources      (batch, keys), integers
            targets      (batch, queries), integers
            source_lens  (batch), integers from 0 to keys
            target_lens  (batch), integers from 0 to queries
            source_mask  (keys, keys) or (batch, keys, keys)
                         or (batch, heads, keys, keys), boolean, sizes may be 1
            target_mask  (queries, queries) or (batch, queries, queries)
                         or (batch, heads, queries, queries), boolean, sizes may be 1
            memory_mask  (queries, keys) or (batch, queries, keys)
                         or (batch, heads, queries, keys), boolean, sizes may be 1
            memory       (batch, keys, d_model)
            logits       (batch, queries, tokens)
            returns      (batch, queries, tokens)
        """
        memory = self.encode(sources, source_lens, mask=source_mask)
        logits = self.decode(
            targets,
            memory,
            source_lens,
            target_lens,
            mask=target_mask,
            memory_mask=memory_mask,
            causal=causal,
        )
        return logits

    if TYPE_CHECKING:
        __call__ = forward

    def encode(
        self, sources: Tensor, source_lens: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor:
        """Read the sources once; every step of the decoding looks at the result."""
        x = self._embed(sources, self.source_embedding)
        for layer in self.encoder:
            x = layer(x, source_lens, mask=mask)
        return x

    def decode(
        self,
        targets: Tensor,
        memory: Tensor,
        source_lens: Tensor | None = None,
        target_lens: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        causal: bool = True,
        caches: Sequence[DecoderCache] | None = None,
    ) -> Tensor:
        """Score the next token at each target position, given the encoder's output.

        With `caches`, one for each layer of the decoder, `targets` contains only the new tokens.
        """
        offset = 0 if caches is None else caches[0].targets.length
        x = self._embed(targets, self.target_embedding, offset)
        for i, layer in enumerate(self.decoder):
            x = layer(
                x,
                memory,
                source_lens,
                target_lens,
                mask=mask,
                memory_mask=memory_mask,
                causal=causal,
                cache=None if caches is None else caches[i],
            )
        return self.to_logits(x)

    @checked
    def _embed(self, tokens: Tensor, embedding: nn.Embedding, offset: int = 0) -> Tensor:
        """Look up a vector for each token, and add one for its position.

        Shapes:
            tokens  (batch, length), integers below tokens
        """
        x = embedding(tokens)
        positions = sinusoidal_positions(
            x.shape[1], x.shape[2], offset=offset, device=x.device, dtype=x.dtype
        )
        return self.dropout(x + positions)

    @torch.no_grad()
    def greedy_decode(
        self,
        sources: Tensor,
        source_lens: Tensor | None = None,
        *,
        start: int,
        num_steps: int,
        use_cache: bool = True,
    ) -> Tensor:
        """Write `num_steps` tokens for each source, always the likeliest, after a `start` token.

        With the cache each step computes one position; without, all that are written so far. The
        tokens are the same.

        Returns:
            Tokens, (batch, num_steps), without the start.
        """
        memory = self.encode(sources, source_lens)
        caches = [DecoderCache() for _ in self.decoder] if use_cache else None
        written = torch.full_like(sources[:, :1], start)
        for _ in range(at_least(self, "num_steps", num_steps)):
            new = written[:, -1:] if use_cache else written
            logits = self.decode(new, memory, source_lens, caches=caches)
            written = torch.cat([written, logits[:, -1:].argmax(dim=-1)], dim=1)
        return written[:, 1:]
