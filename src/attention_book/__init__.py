"""Attention, shape by shape: the tested code behind the book."""

from attention_book.attention import AdditiveAttention, AttentionPooling, DotProductAttention
from attention_book.block import LayerNorm, SelfAttentionBlock
from attention_book.cache import KeyValueCache
from attention_book.language_model import LanguageModel
from attention_book.maps import capture, without
from attention_book.masking import causal_mask, length_mask, masked_softmax
from attention_book.multihead import MultiHeadAttention, merge_heads, split_heads
from attention_book.positions import Llama3Scaling, rotary_embedding, sinusoidal_positions
from attention_book.scoring import (
    additive_scores,
    bilinear_scores,
    distance_scores,
    dot_product_scores,
    scaled_dot_product_scores,
)
from attention_book.shapes import ShapeError, trace
from attention_book.training import train
from attention_book.transformer import Transformer

__all__ = [
    "AdditiveAttention",
    "AttentionPooling",
    "DotProductAttention",
    "KeyValueCache",
    "LanguageModel",
    "LayerNorm",
    "Llama3Scaling",
    "MultiHeadAttention",
    "SelfAttentionBlock",
    "ShapeError",
    "Transformer",
    "additive_scores",
    "bilinear_scores",
    "capture",
    "causal_mask",
    "distance_scores",
    "dot_product_scores",
    "length_mask",
    "masked_softmax",
    "merge_heads",
    "rotary_embedding",
    "scaled_dot_product_scores",
    "sinusoidal_positions",
    "split_heads",
    "trace",
    "train",
    "without",
]
