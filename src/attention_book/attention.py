"""Attention modules: scores → weights → weighted sum of the values."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from attention_book import masking, scoring
from attention_book.masking import allowed_keys, is_known_true, is_transformed, runs_plainly
from attention_book.shapes import checked, number, positive, probability, unchecked

# The modules below check their arguments once, and so for the functions that they hand them to.
masked_softmax = unchecked(masking.masked_softmax)
scaled_dot_product_scores = unchecked(scoring.scaled_dot_product_scores)


def _to_look_at(weights: Tensor) -> Tensor | None:
    """The weights without gradient; None in a transform, where they would outlive their meaning."""
    return None if is_transformed() else weights.detach()


class DotProductAttention(nn.Module):
    """Scaled dot-product attention, softmax(Q Kᵀ / √size) V.

    Args:
        dropout: probability of dropping each single weight while training.
        scale: factor on the dot products; 1/√size where not given, 1.0 for none.
        fused: compute with the framework's `scaled_dot_product_attention`: the same answers in
            less memory, but the weights are never formed, so `attention_weights` is None.

    Attributes:
        attention_weights: weights of the last call before dropout, without gradient; None
            when fused, and in a transform of torch.func.

    Raises:
        TypeError, ValueError: for a dropout that is no probability, a scale that is no number.

    Source: Vaswani et al. (2017), eq. 1.
    """

    attention_weights: Tensor | None

    def __init__(
        self, dropout: float = 0.0, *, scale: float | None = None, fused: bool = False
    ) -> None:
        super().__init__()
        self.dropout = nn.Dropout(probability("dropout", dropout))
        self.scale = None if scale is None else number("scale", scale)
        self.fused = fused
        self.attention_weights = None

    @checked
    def forward(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        valid_lens: Tensor | None = None,
        *,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Return, for each query, the mean of the values under its weights.

        Shapes:
            queries     (batch, queries, size) or (batch, heads, queries, size)
            keys        (batch, keys, size) or (batch, heads, keys, size)
            values      (batch, keys, value_size) or (batch, heads, keys, value_size)
            valid_lens  (batch) or (batch, queries), integers from 0 to keys
            mask        (queries, keys) or (batch, queries, keys)
                        or (batch, heads, queries, keys), boolean, sizes may be 1
            scores      (batch, queries, keys) or (batch, heads, queries, keys)
            weights     (batch, queries, keys) or (batch, heads, queries, keys)
            output      (batch, queries, value_size) or (batch, heads, queries, value_size)
            returns     (batch, queries, value_size) or (batch, heads, queries, value_size)

        Raises:
            ShapeError, TypeError, ValueError: for arguments that do not fit the table.
        """
        if self.fused:
            self.attention_weights = None
            return self._fused(queries, keys, values, valid_lens, mask)
        scores = scaled_dot_product_scores(queries, keys, self.scale)
        weights = masked_softmax(scores, valid_lens, mask=mask)
        self.attention_weights = _to_look_at(weights)
        output = self.dropout(weights) @ values
        return output

    def _fused(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        valid_lens: Tensor | None,
        mask: Tensor | None,
    ) -> Tensor:
        with_heads = queries.dim() == 4
        allowed = allowed_keys(valid_lens, mask, keys.shape[-2], with_heads=with_heads)
        if not with_heads:  # the kernel knows only tensors with heads
            queries, keys, values = (x.unsqueeze(1) for x in (queries, keys, values))
            allowed = None if allowed is None else allowed.unsqueeze(1)
        has_key = None
        if allowed is not None:
            has_key = allowed.any(dim=-1, keepdim=True)
            if is_known_true(has_key):
                has_key = None
            else:  # an empty row attends to all keys, and is zeroed below
                allowed = allowed | ~has_key
        output = F.scaled_dot_product_attention(
            queries,
            keys,
            values,
            attn_mask=allowed,
            dropout_p=self.dropout.p if self.training else 0.0,
            scale=scoring.default_scale(queries.shape[-1]) if self.scale is None else self.scale,
        )
        if has_key is not None:
            output = output.masked_fill(~has_key, 0.0)
        return output if with_heads else output.squeeze(1)


class AdditiveAttention(nn.Module):
    """Additive attention: a small network scores each pair, w_vᵀ tanh(W_q q + W_k k).

    Queries and keys may be of different sizes.

    Args:
        query_size, key_size: numbers in one query, in one key.
        num_hiddens: hidden units of the network.
        dropout: probability of dropping each single weight while training.
        query_chunk: score this many queries at a time. Memory for the hidden units then is
            (batch, query_chunk, keys, hidden) at most, also in training, where each chunk's are
            computed again on the way back (though not in a transform of torch.func). The answers
            are the same up to rounding, in single and double precision by way of the logistic
            function, and come sooner where sequences are long. None scores all at once.

    Attributes:
        attention_weights: weights of the last call before dropout, without gradient.

    Raises:
        TypeError, ValueError: for sizes below 1 and a dropout that is no probability.

    Source: Bahdanau et al. (2015), appendix A.1.2.
    """

    attention_weights: Tensor | None

    def __init__(
        self,
        query_size: int,
        key_size: int,
        num_hiddens: int,
        dropout: float = 0.0,
        *,
        query_chunk: int | None = None,
    ) -> None:
        super().__init__()
        self.sizes = {
            "query_size": positive("query_size", query_size),
            "key_size": positive("key_size", key_size),
            "hidden": positive("num_hiddens", num_hiddens),
        }
        self.W_q = nn.Linear(query_size, num_hiddens, bias=False)
        self.W_k = nn.Linear(key_size, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.dropout = nn.Dropout(probability("dropout", dropout))
        self.query_chunk = None if query_chunk is None else positive("query_chunk", query_chunk)
        self.attention_weights = None

    @checked
    def forward(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        valid_lens: Tensor | None = None,
        *,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Return, for each query, the mean of the values under its weights.

        Shapes:
            queries            (batch, queries, query_size)
            keys               (batch, keys, key_size)
            values             (batch, keys, value_size)
            valid_lens         (batch) or (batch, queries), integers from 0 to keys
            mask               (queries, keys) or (batch, queries, keys), boolean, sizes may be 1
            projected_queries  (batch, queries, hidden)
            projected_keys     (batch, keys, hidden)
            expanded_queries   (batch, queries, 1, hidden)
            expanded_keys      (batch, 1, keys, hidden)
            summed             (batch, queries, keys, hidden)
            activated          (batch, queries, keys, hidden)
            weighted           (batch, queries, keys, 1)
            scores             (batch, queries, keys)
            weights            (batch, queries, keys)
            output             (batch, queries, value_size)
            returns            (batch, queries, value_size)

        Raises:
            ShapeError, TypeError, ValueError: for arguments that do not fit the table.
        """
        projected_queries = self.W_q(queries)
        projected_keys = self.W_k(keys)
        if self.query_chunk is None:
            expanded_queries = projected_queries.unsqueeze(2)
            expanded_keys = projected_keys.unsqueeze(1)
            summed = expanded_queries + expanded_keys
            activated = torch.tanh(summed)
            weighted = self.w_v(activated)
            scores = weighted.squeeze(-1)
        else:
            scores = self._chunked_scores(projected_queries, projected_keys, self.query_chunk)
        weights = masked_softmax(scores, valid_lens, mask=mask)
        self.attention_weights = _to_look_at(weights)
        output = self.dropout(weights) @ values
        return output

    def _chunked_scores(
        self, projected_queries: Tensor, projected_keys: Tensor, query_chunk: int
    ) -> Tensor:
        # tanh x = 2σ(2x) − 1, and σ, the logistic function, is several times as fast on a CPU. But
        # the difference costs digits, and half precision has none to spare.
        by_logistic = projected_queries.dtype.itemsize > 2
        scale = 2 if by_logistic else 1
        scaled_queries, scaled_keys = scale * projected_queries, scale * projected_keys
        w = self.w_v.weight[0]  # a vector: half the time of w_v with its one row

        def scores_of(chunk: Tensor, keys: Tensor, room: Tensor | None = None) -> Tensor:
            summed = torch.add(chunk.unsqueeze(2), keys.unsqueeze(1), out=room)
            if by_logistic:
                return summed.sigmoid_() @ (2 * w) - w.sum()
            return summed.tanh_() @ w

        chunks = scaled_queries.split(query_chunk, dim=1)
        if torch.is_grad_enabled() and not is_transformed():
            # A chunk's hidden units are dropped, and computed again on the way back.
            scores = [
                checkpoint(scores_of, chunk, scaled_keys, use_reentrant=False) for chunk in chunks
            ]
        elif runs_plainly():
            # All chunks share one room: fresh memory for each costs up to half the time.
            batch, num_keys, hidden = scaled_keys.shape
            room = scaled_keys.new_empty(batch, chunks[0].shape[1], num_keys, hidden)
            scores = [scores_of(chunk, scaled_keys, room[:, : chunk.shape[1]]) for chunk in chunks]
        else:
            scores = [scores_of(chunk, scaled_keys) for chunk in chunks]
        return torch.cat(scores, dim=1)


class AttentionPooling(nn.Module):
    """Pool a sequence to one vector: each position is scored by w_vᵀ tanh(W x) and averaged.

    Args:
        size: numbers in one position.
        num_hiddens: hidden units of the scoring network.

    Attributes:
        attention_weights: weights of the last call, (batch, length), without gradient.

    Raises:
        TypeError, ValueError: for sizes below 1.

    Source: Yang et al. (2016), section 2.2, without the bias.
    """

    attention_weights: Tensor | None

    def __init__(self, size: int, num_hiddens: int) -> None:
        super().__init__()
        self.sizes = {
            "size": positive("size", size),
            "hidden": positive("num_hiddens", num_hiddens),
        }
        self.W = nn.Linear(size, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.attention_weights = None

    @checked
    def forward(self, x: Tensor, valid_lens: Tensor | None = None) -> Tensor:
        """Return one vector a sequence: the mean of its positions under their weights.

        Shapes:
            x           (batch, length, size)
            valid_lens  (batch), integers from 0 to length
            activated   (batch, length, hidden)
            weighted    (batch, length, 1)
            scores      (batch, 1, length)
            weights     (batch, 1, length)
            pooled      (batch, 1, size)
            returns     (batch, size)

        Raises:
            ShapeError, TypeError, ValueError: for arguments that do not fit the table.
        """
        activated = torch.tanh(self.W(x))
        weighted = self.w_v(activated)
        scores = weighted.transpose(1, 2)
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = _to_look_at(weights.squeeze(1))
        pooled = weights @ x
        return pooled.squeeze(1)
