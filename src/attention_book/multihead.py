"""Several heads: split the features, attend in each head, merge the features again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn

from attention_book.attention import DotProductAttention, share_heads
from attention_book.cache import KeyValueCache
from attention_book.masking import Rule, zero_unseen
from attention_book.positions import Llama3Scaling, rotary_embedding
from attention_book.shapes import (
    ShapeError,
    at_least,
    checked,
    number,
    probability,
)


@checked
def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """Cut the features of each position into heads, and move the heads before the positions.

    Shapes:
        x           (batch, length, heads*size)
        by_head     (batch, length, heads, size)
        returns     (batch, heads, length, size)

    Raises:
        ShapeError: for a number of features that is not a multiple of `num_heads`.
    """
    by_head = x.unflatten(-1, (at_least("split_heads", "num_heads", num_heads), -1))
    return by_head.transpose(1, 2)


@checked
def merge_heads(x: Tensor) -> Tensor:
    """Undo `split_heads`: move the heads behind the positions, and join their features.

    Shapes:
        x            (batch, heads, length, size)
        by_position  (batch, length, heads, size)
        returns      (batch, length, heads*size)
    """
    by_position = x.transpose(1, 2)
    return by_position.flatten(start_dim=2)


class MultiHeadAttention(nn.Module):
    """Multi-head attention: Concat(head₁, …, head_h) W_o with headᵢ = Attention(QWᵢ, KWᵢ, VWᵢ).

    Args:
        d_model: components of one position of the output.
        num_heads: number of heads, h.
        num_kv_heads: number of heads of keys and values; must divide `num_heads`, which it is
            where not given. Fewer make grouped-query attention, 1 makes multi-query attention:
            query head i uses key and value head i // (num_heads / num_kv_heads).
        d_k, d_v: size of keys and of values of one head; d_model / num_heads where not given.
        dropout: probability of dropping each single weight while training.
        bias: whether the four Linears have biases.
        query_size, key_size, value_size: sizes of the inputs; d_model where not given.
        rotary_base: rotate each head's queries and keys by `rotary_embedding` with this base before
            they meet. The first position is 0 or, with a cache, the number of positions that it
            holds; keys are cached as they were rotated. None rotates nothing.
        rotary_scaling: slows down the rotations, for longer texts than in training.
        fused: as for `DotProductAttention`.

    Attributes:
        attention_weights: (batch, heads, queries, keys), weights of the last call before dropout,
            without gradient; None when fused.

    Raises:
        TypeError, ValueError: for sizes below 1, a `rotary_base` that is not a number above 0, an
            odd d_k with it, and a dropout that is not a probability.
        ShapeError: for a d_model that the heads do not divide where d_k or d_v rests on it, and
            for heads that `num_kv_heads` does not divide.

    Source: Vaswani et al. (2017), section 3.2.2; fewer heads of keys and values, Shazeer (2019)
    and Ainslie et al. (2023); rotation, Su et al. (2021).
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        d_k: int | None = None,
        d_v: int | None = None,
        dropout: float = 0.0,
        bias: bool = False,
        query_size: int | None = None,
        key_size: int | None = None,
        value_size: int | None = None,
        rotary_base: float | None = None,
        rotary_scaling: Llama3Scaling | None = None,
        fused: bool = False,
    ) -> None:
        super().__init__()
        at_least(self, "d_model", d_model)
        at_least(self, "num_heads", num_heads)
        if (d_k is None or d_v is None) and d_model % num_heads:
            raise ShapeError(
                "MultiHeadAttention: d_model = {d_model} is not a multiple of num_heads = "
                "{num_heads}: choose another number of heads, or give d_k and d_v",
                d_model=d_model,
                num_heads=num_heads,
            )
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        if num_heads % at_least(self, "num_kv_heads", num_kv_heads):
            raise ShapeError(
                "MultiHeadAttention: num_heads = {num_heads} is not a multiple of num_kv_heads = "
                "{num_kv_heads}: each head of keys and values serves equally many query heads",
                num_heads=num_heads,
                num_kv_heads=num_kv_heads,
            )
        given = {
            "d_k": (d_k, d_model // num_heads),
            "d_v": (d_v, d_model // num_heads),
            "query_size": (query_size, d_model),
            "key_size": (key_size, d_model),
            "value_size": (value_size, d_model),
        }
        self.sizes = {
            name: default if size is None else at_least(self, name, size)
            for name, (size, default) in given.items()
        }
        d_k, d_v = self.sizes["d_k"], self.sizes["d_v"]
        self.sizes |= {"heads": num_heads, "kv_heads": num_kv_heads, "d_model": d_model}
        if rotary_base is not None:
            if not number(self, "rotary_base", rotary_base) > 0:  # which refuses NaN, too
                raise ValueError(
                    f"MultiHeadAttention: rotary_base must be above 0, but is {rotary_base}"
                )
            if d_k % 2:
                raise ValueError(
                    f"MultiHeadAttention: rotary_base pairs the features of a head, but d_k = "
                    f"{d_k} is odd"
                )
        self.rotary_base = rotary_base
        self.rotary_scaling = rotary_scaling
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.W_q = nn.Linear(self.sizes["query_size"], num_heads * d_k, bias=bias)
        self.W_k = nn.Linear(self.sizes["key_size"], num_kv_heads * d_k, bias=bias)
        self.W_v = nn.Linear(self.sizes["value_size"], num_kv_heads * d_v, bias=bias)
        self.W_o = nn.Linear(num_heads * d_v, d_model, bias=bias)
        self.attention = DotProductAttention(probability(self, "dropout", dropout), fused=fused)

    @property
    def attention_weights(self) -> Tensor | None:
        return self.attention.attention_weights

    def extra_repr(self) -> str:
        heads = f"num_heads={self.num_heads}, num_kv_heads={self.num_kv_heads}"
        return f"{heads}, rotary_base={self.rotary_base}, fused={self.attention.fused}"

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
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Attend in every head at once, and mix the heads' results.

        Shapes:
            queries            (batch, queries, query_size)
            keys               (batch, keys, key_size)
            values             (batch, keys, value_size)
            valid_lens         (batch) or (batch, queries), integers from cached to cached+keys
            mask               (queries, cached+keys) or (batch, queries, cached+keys)
                               or (batch, heads, queries, cached+keys), boolean, sizes may be 1
            projected_queries  (batch, queries, heads*d_k)
            projected_keys     (batch, keys, kv_heads*d_k)
            projected_values   (batch, keys, kv_heads*d_v)
            head_queries       (batch, heads, queries, d_k)
            head_keys          (batch, kv_heads, keys, d_k)
            head_values        (batch, kv_heads, keys, d_v)
            rotated_queries    (batch, heads, queries, d_k)
            rotated_keys       (batch, kv_heads, keys, d_k)
            all_keys           (batch, kv_heads, cached+keys, d_k)
            all_values         (batch, kv_heads, cached+keys, d_v)
            shared_keys        (batch, heads, cached+keys, d_k)
            shared_values      (batch, heads, cached+keys, d_v)
            head_outputs       (batch, heads, queries, d_v)
            merged             (batch, queries, heads*d_v)
            output             (batch, queries, d_model)
            returns            (batch, queries, d_model)

        Args:
            causal: let each query attend to the keys up to its own, the last query to all of them.
            cache: what earlier calls projected. The projected keys and values of this call are
                added to it, and the queries attend to all that it then contains; lengths and mask
                count those keys too. So with `causal=True` a sequence may come token by token, or
                in pieces.

        Raises:
            ShapeError, TypeError, ValueError: for arguments that do not fit the table, and a cache
                of another batch, of other heads, or on another device.
        """
        rule = Rule(valid_lens, mask, causal)
        if cache is None:
            seen_keys, seen_values = zero_unseen(rule, queries.shape[1], keys, values)
        else:  # what this call may not see, a later one may
            seen_keys, seen_values = keys, values
        projected_queries = self.W_q(queries)
        projected_keys = self.W_k(seen_keys)
        projected_values = self.W_v(seen_values)
        head_queries = split_heads(projected_queries, self.num_heads)
        head_keys = split_heads(projected_keys, self.num_kv_heads)
        head_values = split_heads(projected_values, self.num_kv_heads)
        if self.rotary_base is None:
            rotated_queries, rotated_keys = head_queries, head_keys
        else:
            first = 0 if cache is None else cache.length
            base, scaling = self.rotary_base, self.rotary_scaling
            rotated_queries = rotary_embedding(head_queries, first, base, scaling=scaling)
            rotated_keys = rotary_embedding(head_keys, first, base, scaling=scaling)
        if cache is None:
            all_keys, all_values = rotated_keys, head_values
        else:
            all_keys, all_values = cache.append(rotated_keys, head_values)
        if self.attention.fused:  # the kernel reads a head for all that share it
            head_outputs = self.attention._fused_forward(
                rotated_queries, all_keys, all_values, rule
            )
        else:
            shared_keys = share_heads(all_keys, self.num_heads)
            shared_values = share_heads(all_values, self.num_heads)
            head_outputs = self.attention(
                rotated_queries, shared_keys, shared_values, valid_lens, mask=mask, causal=causal
            )
        merged = merge_heads(head_outputs)
        output = self.W_o(merged)
        return output

    if TYPE_CHECKING:
        __call__ = forward
