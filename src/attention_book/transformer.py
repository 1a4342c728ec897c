"""A small encoder–decoder Transformer that uses attention in its three ways."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attention_book.block import LayerNorm
from attention_book.masking import causal_mask
from attention_book.multihead import MultiHeadAttention
from attention_book.positions import sinusoidal_positions
from attention_book.shapes import checked, positive, probability


class FeedForward(nn.Module):
    """The same two-layer network at each position, max(0, xW₁ + b₁)W₂ + b₂.

    Raises:
        TypeError, ValueError: for sizes below 1.

    Source: Vaswani et al. (2017), eq. 2.
    """

    def __init__(self, d_model: int, num_hiddens: int) -> None:
        super().__init__()
        self.sizes = {
            "d_model": positive("d_model", d_model),
            "hidden": positive("num_hiddens", num_hiddens),
        }
        self.W_1 = nn.Linear(d_model, num_hiddens)
        self.W_2 = nn.Linear(num_hiddens, d_model)

    @checked
    def forward(self, x: Tensor) -> Tensor:
        """Map each position by itself.

        Shapes:
            x          (batch, length, d_model)
            activated  (batch, length, hidden)
            returns    (batch, length, d_model)
        """
        activated = torch.relu(self.W_1(x))
        return self.W_2(activated)


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network; after each, add and normalise.

    Source: Vaswani et al. (2017), section 3.1.
    """

    def __init__(
        self, d_model: int, num_heads: int, num_hiddens: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.norm_1 = LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, num_hiddens)
        self.norm_2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(probability("dropout", dropout))

    @checked
    def forward(self, x: Tensor, valid_lens: Tensor | None = None) -> Tensor:
        """Let each source position attend to every source position that is no padding.

        Shapes:
            x           (batch, length, d_model)
            valid_lens  (batch), integers from 0 to length
            attended    (batch, length, d_model)
            mixed       (batch, length, d_model)
            mapped      (batch, length, d_model)
            returns     (batch, length, d_model)
        """
        attended = self.self_attention(x, x, x, valid_lens)
        mixed = self.norm_1(x + self.dropout(attended))
        mapped = self.feed_forward(mixed)
        return self.norm_2(mixed + self.dropout(mapped))


class DecoderLayer(nn.Module):
    """Causal self-attention, cross-attention, feed-forward; after each, add and normalise.

    Source: Vaswani et al. (2017), section 3.1.
    """

    def __init__(
        self, d_model: int, num_heads: int, num_hiddens: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.norm_1 = LayerNorm(d_model)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.norm_2 = LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, num_hiddens)
        self.norm_3 = LayerNorm(d_model)
        self.dropout = nn.Dropout(probability("dropout", dropout))

    @checked
    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        source_lens: Tensor | None = None,
        target_lens: Tensor | None = None,
    ) -> Tensor:
        """Let each target attend to the targets up to itself, then to the encoder's output.

        In the cross-attention the targets are the queries and the sources are the keys, and so
        their numbers are called here.

        Shapes:
            x            (batch, queries, d_model)
            memory       (batch, keys, d_model)
            source_lens  (batch), integers from 0 to keys
            target_lens  (batch), integers from 0 to queries
            up_to_now    (queries, queries), boolean
            attended     (batch, queries, d_model)
            mixed        (batch, queries, d_model)
            looked_up    (batch, queries, d_model)
            informed     (batch, queries, d_model)
            mapped       (batch, queries, d_model)
            returns      (batch, queries, d_model)
        """
        up_to_now = causal_mask(x.shape[1], device=x.device)
        attended = self.self_attention(x, x, x, target_lens, mask=up_to_now)
        mixed = self.norm_1(x + self.dropout(attended))
        looked_up = self.cross_attention(mixed, memory, memory, source_lens)
        informed = self.norm_2(mixed + self.dropout(looked_up))
        mapped = self.feed_forward(informed)
        return self.norm_3(informed + self.dropout(mapped))


class Transformer(nn.Module):
    """Encoder and decoder, with the normalisation after each residual, as in the paper.

    Args:
        num_tokens: number of different tokens, the same in sources and targets.
        d_model: numbers in one position.
        num_heads: heads of each attention; must divide `d_model`.
        num_hiddens: hidden units of the feed-forward networks.
        num_layers: layers of the encoder, and as many of the decoder.
        dropout: probability of dropping each number of an embedding and of an update.

    Raises:
        TypeError, ValueError: for sizes below 1, a d_model that the heads do not divide, and a
            dropout that is no probability.

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
    ) -> None:
        super().__init__()
        self.sizes = {"tokens": positive("num_tokens", num_tokens), "d_model": d_model}
        sizes = (positive("d_model", d_model), num_heads, num_hiddens, dropout)
        layers = range(positive("num_layers", num_layers))
        # The framework draws embeddings of variance 1; the paper's factor √d_model gives the same.
        self.source_embedding = nn.Embedding(num_tokens, d_model)
        self.target_embedding = nn.Embedding(num_tokens, d_model)
        self.encoder = nn.ModuleList(EncoderLayer(*sizes) for _ in layers)
        self.decoder = nn.ModuleList(DecoderLayer(*sizes) for _ in layers)
        self.to_logits = nn.Linear(d_model, num_tokens)
        self.dropout = nn.Dropout(dropout)

    @checked
    def forward(
        self,
        sources: Tensor,
        targets: Tensor,
        source_lens: Tensor | None = None,
        target_lens: Tensor | None = None,
    ) -> Tensor:
        """Score, at each target position, every token as the next one.

        Shapes:
            sources      (batch, keys), integers
            targets      (batch, queries), integers
            source_lens  (batch), integers from 0 to keys
            target_lens  (batch), integers from 0 to queries
            memory       (batch, keys, d_model)
            logits       (batch, queries, tokens)
            returns      (batch, queries, tokens)
        """
        memory = self.encode(sources, source_lens)
        logits = self.decode(targets, memory, source_lens, target_lens)
        return logits

    def encode(self, sources: Tensor, source_lens: Tensor | None = None) -> Tensor:
        """Read the sources once; every step of the decoding looks at the result."""
        x = self._embed(sources, self.source_embedding)
        for layer in self.encoder:
            x = layer(x, source_lens)
        return x

    def decode(
        self,
        targets: Tensor,
        memory: Tensor,
        source_lens: Tensor | None = None,
        target_lens: Tensor | None = None,
    ) -> Tensor:
        """Score the next token at each target position, with the encoder's output at hand."""
        x = self._embed(targets, self.target_embedding)
        for layer in self.decoder:
            x = layer(x, memory, source_lens, target_lens)
        return self.to_logits(x)

    @checked
    def _embed(self, tokens: Tensor, embedding: nn.Embedding) -> Tensor:
        """Look up a vector for each token, and add one for its position.

        Shapes:
            tokens  (batch, length), integers below tokens
        """
        x = embedding(tokens)
        positions = sinusoidal_positions(x.shape[1], x.shape[2], device=x.device)
        return self.dropout(x + positions.to(x.dtype))

    @torch.no_grad()
    def write(
        self, sources: Tensor, source_lens: Tensor | None = None, *, start: int, num_steps: int
    ) -> Tensor:
        """Write `num_steps` tokens for each source, always the likeliest, after a `start` token.

        Returns:
            Tokens, (batch, num_steps), without the start.
        """
        memory = self.encode(sources, source_lens)
        written = [torch.full_like(sources[:, :1], start)]
        for _ in range(positive("num_steps", num_steps)):
            logits = self.decode(torch.cat(written, dim=1), memory, source_lens)
            written.append(logits[:, -1:].argmax(dim=-1))
        return torch.cat(written[1:], dim=1)
