"""Several heads: split the width, attend in each head, merge the width again."""

from __future__ import annotations

from torch import Tensor, nn

from attention_book.attention import DotProductAttention
from attention_book.shapes import checked, positive


@checked
def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """Cut the width of each position into heads, and move the heads before the positions.

    Shapes:
        x           (batch, length, heads*size)
        by_head     (batch, length, heads, size)
        returns     (batch, heads, length, size)

    Raises:
        ShapeError: for a width that is no multiple of `num_heads`.
    """
    by_head = x.unflatten(-1, (positive("num_heads", num_heads), -1))
    return by_head.transpose(1, 2)


@checked
def merge_heads(x: Tensor) -> Tensor:
    """Undo `split_heads`: move the heads behind the positions, and join their widths.

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
        d_model: numbers in one position of the output.
        num_heads: number of heads, h.
        d_k, d_v: size of keys and of values of one head; d_model / num_heads where not given.
        dropout: probability of dropping each single weight while training.
        bias: whether the four Linears have biases.
        query_size, key_size, value_size: sizes of the inputs; d_model where not given.
        fused: as for `DotProductAttention`.

    Attributes:
        attention_weights: (batch, heads, queries, keys), weights of the last call before dropout,
            without gradient; None when fused.

    Raises:
        TypeError, ValueError: for sizes below 1, a d_model that the heads do not divide where d_k
            or d_v rests on it, and a dropout that is no probability.

    Source: Vaswani et al. (2017), section 3.2.2.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        d_k: int | None = None,
        d_v: int | None = None,
        dropout: float = 0.0,
        bias: bool = False,
        query_size: int | None = None,
        key_size: int | None = None,
        value_size: int | None = None,
        fused: bool = False,
    ) -> None:
        super().__init__()
        positive("d_model", d_model)
        self.num_heads = positive("num_heads", num_heads)
        if (d_k is None or d_v is None) and d_model % num_heads:
            raise ValueError(
                f"d_model = {d_model} is no multiple of num_heads = {num_heads}: "
                "choose another number of heads, or give d_k and d_v"
            )
        d_k = d_model // num_heads if d_k is None else positive("d_k", d_k)
        d_v = d_model // num_heads if d_v is None else positive("d_v", d_v)
        query_size = d_model if query_size is None else positive("query_size", query_size)
        key_size = d_model if key_size is None else positive("key_size", key_size)
        value_size = d_model if value_size is None else positive("value_size", value_size)
        self.sizes = {
            "query_size": query_size,
            "key_size": key_size,
            "value_size": value_size,
            "heads": num_heads,
            "d_k": d_k,
            "d_v": d_v,
            "d_model": d_model,
        }
        self.W_q = nn.Linear(query_size, num_heads * d_k, bias=bias)
        self.W_k = nn.Linear(key_size, num_heads * d_k, bias=bias)
        self.W_v = nn.Linear(value_size, num_heads * d_v, bias=bias)
        self.W_o = nn.Linear(num_heads * d_v, d_model, bias=bias)
        self.attention = DotProductAttention(dropout, fused=fused)

    @property
    def attention_weights(self) -> Tensor | None:
        return self.attention.attention_weights

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
        """Attend in every head at once, and mix the heads' results.

        Shapes:
            queries            (batch, queries, query_size)
            keys               (batch, keys, key_size)
            values             (batch, keys, value_size)
            valid_lens         (batch) or (batch, queries), integers from 0 to keys
            mask               (queries, keys) or (batch, queries, keys)
                               or (batch, heads, queries, keys), boolean, sizes may be 1
            projected_queries  (batch, queries, heads*d_k)
            projected_keys     (batch, keys, heads*d_k)
            projected_values   (batch, keys, heads*d_v)
            head_queries       (batch, heads, queries, d_k)
            head_keys          (batch, heads, keys, d_k)
            head_values        (batch, heads, keys, d_v)
            head_outputs       (batch, heads, queries, d_v)
            merged             (batch, queries, heads*d_v)
            output             (batch, queries, d_model)
            returns            (batch, queries, d_model)

        Raises:
            ShapeError, TypeError, ValueError: for arguments that do not fit the table.
        """
        projected_queries = self.W_q(queries)
        projected_keys = self.W_k(keys)
        projected_values = self.W_v(values)
        head_queries = split_heads(projected_queries, self.num_heads)
        head_keys = split_heads(projected_keys, self.num_heads)
        head_values = split_heads(projected_values, self.num_heads)
        head_outputs = self.attention(head_queries, head_keys, head_values, valid_lens, mask=mask)
        merged = merge_heads(head_outputs)
        output = self.W_o(merged)
        return output
