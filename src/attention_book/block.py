"""The layer around attention: projections, residual, layer normalisation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from attention_book.attention import DotProductAttention
from attention_book.masking import Rule, finite_padding
from attention_book.multihead import merge_heads, split_heads
from attention_book.shapes import (
    ShapeError,
    at_least,
    checked,
    number,
    probability,
)


class LayerNorm(nn.Module):
    """Bring each position to mean 0 and variance 1, then scale and shift it by learned parameters.

    Args:
        size: components of one position.
        eps: added to the variance, inside the root.

    Raises:
        TypeError, ValueError: for a size below 1 and an eps below 0.

    Source: Ba et al. (2016), eq. 4.
    """

    def __init__(self, size: int, eps: float = 1e-12) -> None:
        super().__init__()
        self.sizes = {"size": at_least(self, "size", size)}
        self.weight = nn.Parameter(torch.ones(size))
        self.bias = nn.Parameter(torch.zeros(size))
        if number(self, "eps", eps) < 0:
            raise ValueError(f"LayerNorm: eps must be at least 0, but is {eps}")
        self.eps = eps

    def extra_repr(self) -> str:
        return f"{self.sizes['size']}, eps={self.eps}"

    @checked
    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last axis, in float32 at least: in float16, ε would vanish.

        Shapes:
            x           (batch, size) or (batch, length, size)
            precise     (batch, size) or (batch, length, size)
            mean        (batch, 1) or (batch, length, 1)
            variance    (batch, 1) or (batch, length, 1)
            normalised  (batch, size) or (batch, length, size)
            returns     (batch, size) or (batch, length, size)
        """
        precise = x.to(torch.promote_types(x.dtype, torch.float32))
        mean = precise.mean(dim=-1, keepdim=True)
        variance = (precise - mean).square().mean(dim=-1, keepdim=True)
        normalised = (precise - mean) / torch.sqrt(variance + self.eps)
        return (self.weight * normalised + self.bias).to(x.dtype)

    if TYPE_CHECKING:
        __call__ = forward


class SelfAttentionBlock(nn.Module):
    """The self-attention layer of BERT: attend, project, drop out, add the input, normalise.

    Args:
        hidden_size: components of one position, in and out.
        num_heads: number of heads; must divide `hidden_size`.
        attention_dropout: probability of dropping each single weight while training.
        hidden_dropout: probability of dropping each component of the result before the residual.
        eps: of the layer normalisation.
        fused: as for `DotProductAttention`.

    Attributes:
        attention_weights: (batch, heads, length, length), weights of the last call before
            dropout, without gradient; None when fused.

    Raises:
        TypeError, ValueError: for sizes below 1, and dropouts that are not probabilities.
        ShapeError: for a hidden size that is not a multiple of the heads.

    Source: Devlin et al. (2019); the order of its steps is Vaswani et al. (2017), section 3.1.
    """

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        *,
        attention_dropout: float = 0.0,
        hidden_dropout: float = 0.0,
        eps: float = 1e-12,
        fused: bool = False,
    ) -> None:
        super().__init__()
        at_least(self, "hidden_size", hidden_size)
        if hidden_size % at_least(self, "num_heads", num_heads):
            raise ShapeError(
                "SelfAttentionBlock: hidden_size = {hidden_size} is not a multiple of "
                "num_heads = {num_heads}",
                hidden_size=hidden_size,
                num_heads=num_heads,
            )
        self.num_heads = num_heads
        self.sizes = {"d_model": hidden_size, "heads": num_heads, "size": hidden_size // num_heads}
        self.query = nn.Linear(hidden_size, hidden_size)
        self.key = nn.Linear(hidden_size, hidden_size)
        self.value = nn.Linear(hidden_size, hidden_size)
        probability(self, "attention_dropout", attention_dropout)
        self.attention = DotProductAttention(attention_dropout, fused=fused)
        self.dense = nn.Linear(hidden_size, hidden_size)
        self.dropout = nn.Dropout(probability(self, "hidden_dropout", hidden_dropout))
        self.layer_norm = LayerNorm(hidden_size, eps)

    @property
    def attention_weights(self) -> Tensor | None:
        return self.attention.attention_weights

    def extra_repr(self) -> str:
        return f"num_heads={self.num_heads}"

    @checked
    def forward(
        self,
        x: Tensor,
        valid_lens: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        causal: bool = False,
    ) -> Tensor:
        """Let each position attend to the others, and add what it found to what it was.

        Shapes:
            x             (batch, length, d_model)
            valid_lens    (batch) or (batch, length), integers from 0 to length
            mask          (length, length) or (batch, length, length)
                          or (batch, heads, length, length), boolean, sizes may be 1
            head_queries  (batch, heads, length, size)
            head_keys     (batch, heads, length, size)
            head_values   (batch, heads, length, size)
            head_outputs  (batch, heads, length, size)
            merged        (batch, length, d_model)
            update        (batch, length, d_model)
            returns       (batch, length, d_model)

        Args:
            causal: let each position attend to itself and to those before it.

        Raises:
            ShapeError, TypeError, ValueError: for arguments that do not fit the table.
        """
        finite = finite_padding(Rule(valid_lens, mask, causal), x)
        head_queries = split_heads(self.query(finite), self.num_heads)
        head_keys = split_heads(self.key(finite), self.num_heads)
        head_values = split_heads(self.value(finite), self.num_heads)
        head_outputs = self.attention(
            head_queries, head_keys, head_values, valid_lens, mask=mask, causal=causal
        )
        merged = merge_heads(head_outputs)
        update = self.dropout(self.dense(merged))
        return self.layer_norm(finite + update)

    if TYPE_CHECKING:
        __call__ = forward
