"""Attention modules: scores → weights → weighted sum of the values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention_book.chunks import in_chunks
from attention_book.masking import Rule, allowed_keys, masked_softmax, zero_unseen
from attention_book.scoring import default_scale, scaled_dot_product_scores
from attention_book.shapes import at_least, checked, number, probability


class Attention(nn.Module):
    """What the modules below share: they keep the weights of the last call, to be looked at.

    The weights are not part of the module's state: a copy and a pickle leave them out.
    """

    def __init__(self) -> None:
        super().__init__()
        self.attention_weights: Tensor | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "attention_weights": None}


def share_heads(x: Tensor, num_heads: int) -> Tensor:
    """Repeat each head of keys or of values for the group of query heads that uses it.

    (batch, kv_heads, length, size) becomes (batch, num_heads, length, size): head i is a copy of
    head i // (num_heads / kv_heads). With as many heads as queries have, it is `x` itself.
    """
    group = num_heads // x.shape[1]
    return x if group == 1 else x.repeat_interleave(group, dim=1)


class DotProductAttention(Attention):
    """Scaled dot-product attention, softmax(Q Kᵀ / √size) V.

    Args:
        dropout: probability of dropping each single weight while training.
        scale: factor on the dot products; 1/√size where not given, 1.0 for none.
        fused: compute with PyTorch's `scaled_dot_product_attention`: the same answers, and the
            weights are not kept, so `attention_weights` is None. Its kernels work in tiles, in
            memory that grows with the length and not with its square: without a mask, and with
            `causal=True` alone for as many queries as keys. Lengths and masks are handed over as
            a tensor, which has (queries, keys) entries where the rule depends on the query. On a
            CPU the whole matrix of weights is formed after all while dropout is active, and where
            keys and values differ in size.

    Attributes:
        attention_weights: weights of the last call before dropout, without gradient; None
            when fused.

    Raises:
        TypeError, ValueError: for a dropout that is not a probability, a scale that is not a
            number.

    Source: Vaswani et al. (2017), eq. 1; fused, Dao et al. (2022).
    """

    def __init__(
        self, dropout: float = 0.0, *, scale: float | None = None, fused: bool = False
    ) -> None:
        super().__init__()
        self.dropout = nn.Dropout(probability(self, "dropout", dropout))
        self.scale = None if scale is None else number(self, "scale", scale)
        self.fused = fused

    def extra_repr(self) -> str:
        return f"scale={'1/√size' if self.scale is None else self.scale}, fused={self.fused}"

    @checked
    def forward(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        valid_lens: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        causal: bool = False,
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

        Args:
            causal: let each query attend to the keys up to its own, the last query to all of them.

        Raises:
            ShapeError, TypeError, ValueError: for arguments that do not fit the table.
        """
        rule = Rule(valid_lens, mask, causal)
        if self.fused:
            return self._fused_forward(queries, keys, values, rule)
        seen_keys, seen_values = zero_unseen(rule, queries.shape[-2], keys, values)
        scores = scaled_dot_product_scores(queries, seen_keys, self.scale)
        weights = masked_softmax(scores, valid_lens, mask=mask, causal=causal)
        self.attention_weights = weights.detach()
        output = self.dropout(weights) @ seen_values
        return output

    if TYPE_CHECKING:
        __call__ = forward

    def _fused_forward(self, queries: Tensor, keys: Tensor, values: Tensor, rule: Rule) -> Tensor:
        """What a fused module answers. Each head of keys may serve a group of query heads.

        Arguments are those of a call, and unchecked; keys and values may be of shape
        (batch, kv_heads, keys, size) where kv_heads divides the queries' heads.
        """
        self.attention_weights = None
        keys, values = zero_unseen(rule, queries.shape[-2], keys, values)
        with_heads = queries.dim() == 4
        if not with_heads:  # the kernel knows only tensors with heads
            queries, keys, values = (x.unsqueeze(1) for x in (queries, keys, values))
        num_queries, num_keys = queries.shape[-2], keys.shape[-2]
        # The kernel wants a plain True, and while torch.compile traces, a comparison is none.
        is_causal = is_grouped = False
        if keys.shape[1] != queries.shape[1]:
            if keys.is_cpu:
                is_grouped = True
            else:  # on a GPU no kernel takes shared heads together with a mask, or in float32
                keys, values = (share_heads(x, queries.shape[1]) for x in (keys, values))
        # It aligns its own causal rule to the first key: the same for equal lengths only.
        is_alone = rule.valid_lens is None and rule.mask is None
        if rule.causal and is_alone and num_queries == num_keys:
            is_causal = True
        allowed, has_key = None, None
        if not is_causal:
            # From a single query, the last, the causal rule hides nothing.
            needed = rule._replace(causal=rule.causal and num_queries != 1)
            allowed = allowed_keys(needed, num_queries, num_keys, axes=4, device=keys.device)
        if allowed is not None:  # an empty row attends to all keys, and is zeroed below
            has_key = allowed.any(dim=-1, keepdim=True)
            allowed = allowed | has_key.logical_not()
        output = F.scaled_dot_product_attention(
            queries,
            keys,
            values,
            attn_mask=allowed,
            dropout_p=self.dropout.p if self.training else 0.0,
            is_causal=is_causal,
            scale=default_scale(queries.shape[-1]) if self.scale is None else self.scale,
            enable_gqa=is_grouped,
        )
        if has_key is not None:
            output = torch.where(has_key, output, 0.0)
        return output if with_heads else output.squeeze(1)


class AdditiveAttention(Attention):
    """Additive attention: a small network scores each pair, tanh(q W_qᵀ + k W_kᵀ) w_v.

    Queries and keys may be of different sizes.

    Args:
        query_size, key_size: components of one query, of one key.
        num_hiddens: hidden units of the network.
        dropout: probability of dropping each single weight while training.
        query_chunk: score this many queries at a time. The hidden units then take memory for
            (batch, query_chunk, keys, hidden) numbers at most, also in training, where each
            chunk's are computed again in the backward pass (though not in a transform of
            torch.func). Compiled, all queries are scored at once, because the compiler's own
            kernels do not store the hidden units. The answers are the same up to rounding. None
            scores all queries at once.

    Attributes:
        attention_weights: weights of the last call before dropout, without gradient.

    Raises:
        TypeError, ValueError: for sizes below 1 and a dropout that is not a probability.

    Source: Bahdanau et al. (2015), appendix A.1.2.
    """

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
            "query_size": at_least(self, "query_size", query_size),
            "key_size": at_least(self, "key_size", key_size),
            "hidden": at_least(self, "num_hiddens", num_hiddens),
        }
        self.W_q = nn.Linear(query_size, num_hiddens, bias=False)
        self.W_k = nn.Linear(key_size, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.dropout = nn.Dropout(probability(self, "dropout", dropout))
        self.query_chunk = (
            None if query_chunk is None else at_least(self, "query_chunk", query_chunk)
        )

    def extra_repr(self) -> str:
        return f"query_chunk={self.query_chunk}"

    @checked
    def forward(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        valid_lens: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        causal: bool = False,
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

        Args:
            causal: let each query attend to the keys up to its own, the last query to all of them.

        Raises:
            ShapeError, TypeError, ValueError: for arguments that do not fit the table.
        """
        rule = Rule(valid_lens, mask, causal)
        seen_keys, seen_values = zero_unseen(rule, queries.shape[1], keys, values)
        projected_queries = self.W_q(queries)
        projected_keys = self.W_k(seen_keys)
        if self.query_chunk is None:
            expanded_queries = projected_queries.unsqueeze(2)
            expanded_keys = projected_keys.unsqueeze(1)
            summed = expanded_queries + expanded_keys
            activated = torch.tanh(summed)
            weighted = self.w_v(activated)
            scores = weighted.squeeze(-1)
        else:
            scores = self._chunked_scores(projected_queries, projected_keys, self.query_chunk)
        weights = masked_softmax(scores, valid_lens, mask=mask, causal=causal)
        self.attention_weights = weights.detach()
        output = self.dropout(weights) @ seen_values
        return output

    if TYPE_CHECKING:
        __call__ = forward

    def _chunked_scores(
        self, projected_queries: Tensor, projected_keys: Tensor, query_chunk: int
    ) -> Tensor:
        """The scores of all pairs, (batch, queries, keys), some queries at a time."""
        # tanh x = 2σ(2x) − 1, and σ, the logistic function, is several times as fast on a CPU. The
        # difference costs digits, which half precision does not have.
        by_logistic = projected_queries.dtype.itemsize > 2
        scale = 2 if by_logistic else 1
        w = self.w_v.weight.squeeze(0)

        def scores_of(chunk: Tensor, keys: Tensor) -> Tensor:
            summed = chunk.unsqueeze(2) + keys.unsqueeze(1)
            if by_logistic:
                return summed.sigmoid_() @ (2 * w) - w.sum()
            return summed.tanh_() @ w

        return in_chunks(scores_of, scale * projected_queries, scale * projected_keys, query_chunk)


class AttentionPooling(Attention):
    """Pool a sequence to one vector: each position is scored by tanh(x Wᵀ) w_v and averaged.

    Args:
        size: components of one position.
        num_hiddens: hidden units of the scoring network.

    Attributes:
        attention_weights: weights of the last call, (batch, length), without gradient.

    Raises:
        TypeError, ValueError: for sizes below 1.

    Source: Yang et al. (2016), section 2.2, without the bias.
    """

    def __init__(self, size: int, num_hiddens: int) -> None:
        super().__init__()
        self.sizes = {
            "size": at_least(self, "size", size),
            "hidden": at_least(self, "num_hiddens", num_hiddens),
        }
        self.W = nn.Linear(size, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)

    @checked
    def forward(
        self, x: Tensor, valid_lens: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor:
        """Return one vector per sequence: the mean of its positions under their weights.

        Shapes:
            x           (batch, length, size)
            valid_lens  (batch), integers from 0 to length
            mask        (batch, length), boolean, sizes may be 1
            activated   (batch, length, hidden)
            weighted    (batch, length, 1)
            scores      (batch, 1, length)
            weights     (batch, 1, length)
            pooled      (batch, 1, size)
            returns     (batch, size)

        Raises:
            ShapeError, TypeError, ValueError: for arguments that do not fit the table.
        """
        row_mask = None if mask is None else mask.unsqueeze(1)  # one learned query per sequence
        seen, _ = zero_unseen(Rule(valid_lens, row_mask), 1, x, x)
        activated = torch.tanh(self.W(seen))
        weighted = self.w_v(activated)
        scores = weighted.transpose(1, 2)
        weights = masked_softmax(scores, valid_lens, mask=row_mask)
        self.attention_weights = weights.squeeze(1).detach()
        pooled = weights @ seen
        return pooled.squeeze(1)

    if TYPE_CHECKING:
        __call__ = forward
