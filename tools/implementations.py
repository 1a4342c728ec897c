"""Public implementations of attention, each as `make examined` calls it.

Each function gives back what is examined, in the way that its documentation says, small and with
random parameters. An adapter only renames arguments and moves what is no tensor out of the way.
What a documentation says is a convention: `allow` names it, so that it is told as a note.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch


class Implementation(NamedTuple):
    """Something that is examined; `environment` is where its distribution is installed."""

    distribution: str
    called: str
    kind: str
    options: dict[str, Any]
    make: Callable[[], Any]
    environment: str


IMPLEMENTATIONS: list[Implementation] = []
#: Conventions that PyTorch documents and others follow: notes, whoever has them.
CONVENTIONS = ("empty-row-nan", "causal-aligned-to-first")


def of(
    distribution: str, called: str, kind: str, environment: str = "main", **options: Any
) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    options["allow"] = [*CONVENTIONS, *options.get("allow", ())]

    def kept(make: Callable[[], Any]) -> Callable[[], Any]:
        IMPLEMENTATIONS.append(
            Implementation(distribution, called, kind, options, make, environment)
        )
        return make

    return kept


def import_torchvision() -> None:
    """Import it although the index's build, beside a CPU build of PyTorch, lacks its operators.

    Nothing that is examined uses these, but several distributions import torchvision.
    """
    register = torch.library.register_fake
    torch.library.register_fake = lambda *_, **__: lambda function: function
    try:
        import torchvision  # noqa: F401
    finally:
        torch.library.register_fake = register


# --- PyTorch --------------------------------------------------------------------------------------


@of("torch", "nn.functional.scaled_dot_product_attention", "attention")
def _() -> Any:
    return torch.nn.functional.scaled_dot_product_attention


@of("torch", "nn.MultiheadAttention", "heads", mask="blocked", heads=3)
def _() -> Any:
    return torch.nn.MultiheadAttention(12, 3, batch_first=True)


# --- transformers ---------------------------------------------------------------------------------


def eager(family: str) -> Any:
    module = __import__(f"transformers.models.{family}.modeling_{family}", fromlist=["x"])
    owner = torch.nn.Module()
    owner.num_key_value_groups = 1
    owner.eval()
    owner.scale_attn_weights = True

    def attention(query, key, value, attention_mask=None):
        size = query.shape[-1]
        output = module.eager_attention_forward(
            owner, query, key, value, attention_mask, scaling=size**-0.5, dropout=0.0
        )[0]
        return output.transpose(1, 2)

    return attention


for family in ("bert", "gpt2", "llama", "qwen3", "gpt_neox"):
    of(
        "transformers",
        f"{family}: eager_attention_forward",
        "attention",
        mask="added",
        layout="bhld",
    )(functools.partial(eager, family))


@of("transformers", "llama: apply_rotary_pos_emb", "rotation")
def _() -> Any:
    from transformers.models.llama import modeling_llama as llama

    def rotate(x, positions):
        size = x.shape[-1]
        inverse = 10000.0 ** (-torch.arange(0, size, 2, dtype=x.dtype) / size)
        angles = positions.to(x.dtype)[..., None] * inverse
        angles = torch.cat((angles, angles), dim=-1)
        angles = angles if angles.dim() == 3 else angles[None]
        return llama.apply_rotary_pos_emb(x, x, angles.cos(), angles.sin())[0]

    return rotate


def causal_model(family: str, **more: Any) -> Any:
    import transformers

    sizes = {
        "vocab_size": 23, "hidden_size": 24, "num_attention_heads": 4, "num_hidden_layers": 2,
        "intermediate_size": 36, "max_position_embeddings": 64, **more,
    }  # fmt: skip
    config = getattr(transformers, f"{family}Config")(**sizes)
    config._attn_implementation = "eager"
    name = f"{family}LMHeadModel" if family == "GPT2" else f"{family}ForCausalLM"
    return getattr(transformers, name)(config)


for family, more in {
    "GPT2": {"bos_token_id": 0, "eos_token_id": 0},
    "Llama": {"num_key_value_heads": 2, "pad_token_id": None},
    "Mistral": {"num_key_value_heads": 2, "sliding_window": None},
    "Qwen2": {"num_key_value_heads": 2},
    "GPTNeoX": {"rotary_pct": 0.5},
    "OPT": {"ffn_dim": 36, "word_embed_proj_dim": 24, "bos_token_id": 0, "eos_token_id": 0,
            "pad_token_id": 1},
}.items():  # fmt: skip
    of("transformers", f"{family}, its causal language model", "decoder")(
        functools.partial(causal_model, family, **more)
    )


# --- x-transformers, vit-pytorch, rotary-embedding-torch, and others by the same author -----------


@of("x-transformers", "attend.Attend", "attention", mask="allowed", layout="bhld")
def _() -> Any:
    from x_transformers.attend import Attend

    attend = Attend(dropout=0.0)

    def attention(q, k, v, mask=None):
        return attend(q, k, v, mask=mask)[0]

    return attention


@of("x-transformers", "Attention", "heads", mask="allowed", heads=3)
def _() -> Any:
    from x_transformers.x_transformers import Attention

    class Called(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = Attention(dim=12, heads=3, dim_head=4)

        def forward(self, x, context, context_mask=None):
            return self.layer(x, context, context_mask=context_mask)

    return Called()


@of("x-transformers", "RotaryEmbedding, apply_rotary_pos_emb", "rotation")
def _() -> Any:
    from x_transformers.x_transformers import RotaryEmbedding, apply_rotary_pos_emb

    def rotate(x, positions):
        angles, scale = RotaryEmbedding(x.shape[-1]).to(x.dtype)(positions)
        return apply_rotary_pos_emb(x, angles, scale)

    return rotate


@of("x-transformers", "TransformerWrapper of a Decoder", "decoder")
def _() -> Any:
    from x_transformers import Decoder, TransformerWrapper

    layers = Decoder(dim=24, depth=2, heads=4, attn_dim_head=6)
    model = TransformerWrapper(num_tokens=23, max_seq_len=64, attn_layers=layers)

    class Called(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, tokens, cache=None):
            return self.model(
                tokens, return_intermediates=True, cache=cache, input_not_include_cache=True
            )

    return Called()


@of("vit-pytorch", "vit.Attention, without its norm", "heads", heads=3)
def _() -> Any:
    from vit_pytorch.vit import Attention

    layer = Attention(12, heads=3, dim_head=4)
    layer.norm = torch.nn.Identity()
    return layer


@of("vit-pytorch", "cross_vit.Attention, without its norm", "heads", heads=3)
def _() -> Any:
    from vit_pytorch.cross_vit import Attention

    layer = Attention(12, heads=3, dim_head=4)
    layer.norm = torch.nn.Identity()
    return layer


@of("rotary-embedding-torch", "RotaryEmbedding.rotate_queries_or_keys", "rotation")
def _() -> Any:
    from rotary_embedding_torch import RotaryEmbedding

    def rotate(x, offset=0):
        return RotaryEmbedding(x.shape[-1]).rotate_queries_or_keys(x, offset=offset)

    return rotate


@of("memory-efficient-attention-pytorch", "memory_efficient_attention", "attention",
    mask="allowed", layout="bhld")  # fmt: skip
def _() -> Any:
    from memory_efficient_attention_pytorch.memory_efficient_attention import (
        memory_efficient_attention,
    )

    def attention(q, k, v, mask=None, causal=False):
        return memory_efficient_attention(
            q, k, v, mask=mask, causal=causal, q_bucket_size=2, k_bucket_size=3
        )

    return attention


@of("perceiver-pytorch", "Attention", "heads", mask="allowed", heads=3)
def _() -> Any:
    from perceiver_pytorch.perceiver_pytorch import Attention

    return Attention(12, heads=3, dim_head=4)


# --- labml, bert-pytorch, d2l, LLMs-from-scratch: code that people learn from ---------------------


@of(
    "labml-nn",
    "transformers.mha.MultiHeadAttention",
    "heads",
    mask="allowed",
    layout="lbd",
    heads=3,
)
def _() -> Any:
    from labml_nn.transformers.mha import MultiHeadAttention

    layer = MultiHeadAttention(3, 12, dropout_prob=0.0)

    class Called(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, query, key, value, mask=None):
            return self.layer(query=query, key=key, value=value, mask=mask)

    return Called()


@of("labml-nn", "transformers.rope.RotaryPositionalEmbeddings", "rotation")
def _() -> Any:
    from labml_nn.transformers.rope import RotaryPositionalEmbeddings

    def rotate(x):  # theirs is (length, batch, heads, size)
        turned = RotaryPositionalEmbeddings(x.shape[-1])(x.permute(2, 0, 1, 3))
        return turned.permute(1, 2, 0, 3)

    return rotate


@of("bert-pytorch", "model.attention.single.Attention", "attention", mask="allowed", layout="bhld")
def _() -> Any:
    from bert_pytorch.model.attention.single import Attention

    return Attention()


@of(
    "bert-pytorch",
    "model.attention.multi_head.MultiHeadedAttention",
    "heads",
    mask="allowed",
    heads=3,
)
def _() -> Any:
    from bert_pytorch.model.attention.multi_head import MultiHeadedAttention

    return MultiHeadedAttention(3, 12)


@of("d2l", "torch.masked_softmax", "softmax", "d2l", mask="lengths")
def _() -> Any:
    from d2l import torch as d2l

    return d2l.masked_softmax


@of("d2l", "torch.DotProductAttention", "attention", "d2l", mask="lengths", layout="bld")
def _() -> Any:
    from d2l import torch as d2l

    return d2l.DotProductAttention(0.0)


@of("llms-from-scratch", "ch03.CausalAttention", "heads", heads=1)
def _() -> Any:
    from llms_from_scratch.ch03 import CausalAttention

    return CausalAttention(12, 12, 16, 0.0)


@of("llms-from-scratch", "ch03.MultiHeadAttention", "heads", heads=3)
def _() -> Any:
    from llms_from_scratch.ch03 import MultiHeadAttention

    return MultiHeadAttention(12, 12, 16, 0.0, 3)


@of("llms-from-scratch", "ch04.GPTModel", "decoder")
def _() -> Any:
    from llms_from_scratch.ch04 import GPTModel

    sizes = {"vocab_size": 23, "context_length": 64, "emb_dim": 24, "n_heads": 4, "n_layers": 2}
    return GPTModel({**sizes, "drop_rate": 0.0, "qkv_bias": False})


@of("llms-from-scratch", "llama3.apply_rope", "rotation")
def _() -> Any:
    from llms_from_scratch.llama3 import apply_rope, compute_rope_params

    def rotate(x):
        cos, sin = compute_rope_params(x.shape[-1], context_length=64)
        return apply_rope(x, cos, sin)

    return rotate


# --- timm, torchtune, Keras, kornia, diffusers, MONAI, torchscale ----------------------


@of("timm", "layers.Attention", "heads", heads=3)
def _() -> Any:
    from timm.layers import Attention

    return Attention(12, num_heads=3)


@of("timm", "layers.apply_rot_embed", "rotation")
def _() -> Any:
    from timm.layers import apply_rot_embed

    def rotate(x, positions):
        size = x.shape[-1]
        inverse = 10000.0 ** (-torch.arange(0, size, 2, dtype=x.dtype) / size)
        angles = (positions.to(x.dtype)[..., None] * inverse).repeat_interleave(2, dim=-1)
        return apply_rot_embed(x, angles.sin(), angles.cos())

    return rotate


@of("torchtune", "modules.RotaryPositionalEmbeddings", "rotation", layout="blhd")
def _() -> Any:
    from torchtune.modules import RotaryPositionalEmbeddings

    def rotate(x, positions=None):
        return RotaryPositionalEmbeddings(x.shape[-1])(x, input_pos=positions)

    return rotate


@of("torchtune", "modules.MultiHeadAttention", "heads", mask="allowed", heads=3)
def _() -> Any:
    from torchtune.modules import MultiHeadAttention

    maps = [torch.nn.Linear(12, 12, bias=False) for _ in range(4)]
    return MultiHeadAttention(
        embed_dim=12, num_heads=3, num_kv_heads=3, head_dim=4, q_proj=maps[0], k_proj=maps[1],
        v_proj=maps[2], output_proj=maps[3], is_causal=False,
    )  # fmt: skip


def keras() -> Any:
    """Keras on PyTorch. Its promotion of types makes 32 bits of 64, whatever the type is set to."""
    import os

    os.environ["KERAS_BACKEND"] = "torch"
    import keras

    keras.config.set_floatx("float64")
    return keras


@of("keras", "layers.Softmax", "softmax", mask="allowed")
def _() -> Any:
    layer = keras().layers.Softmax()

    def softmax(scores, mask=None):
        return layer(scores, mask=mask)

    return softmax


@of("keras", "ops.dot_product_attention", "attention", mask="allowed", layout="blhd",
    allow=["dtype-changed"])  # fmt: skip
def _() -> Any:
    ops = keras().ops

    def attention(query, key, value, mask=None, is_causal=False):
        return ops.dot_product_attention(query, key, value, mask=mask, is_causal=is_causal)

    return attention


@of("keras", "layers.Attention, with its own scale", "attention", mask="allowed", layout="bld",
    allow=["scale-missing", "dtype-changed"])  # fmt: skip
def _() -> Any:
    layers = keras().layers

    def attention(query, key, value, mask=None, causal=False):
        given = None if mask is None else [None, mask]
        return layers.Attention()([query, value, key], mask=given, use_causal_mask=causal)

    return attention


@of("kornia", "feature.loftr: FullAttention", "attention", mask="allowed", layout="blhd")
def _() -> Any:
    from kornia.feature.loftr.loftr_module.linear_attention import FullAttention

    layer = FullAttention()

    def attention(queries, keys, values, kv_mask=None):
        return layer(queries, keys, values, kv_mask=kv_mask)

    return attention


@of("kornia", "feature.loftr: FullAttention, with both masks", "attention",
    mask="allowed", layout="blhd")  # fmt: skip
def _() -> Any:
    from kornia.feature.loftr.loftr_module.linear_attention import FullAttention

    layer = FullAttention()

    def attention(queries, keys, values, kv_mask=None):
        q_mask = None if kv_mask is None else kv_mask.new_ones(queries.shape[:2])
        return layer(queries, keys, values, q_mask=q_mask, kv_mask=kv_mask)

    return attention


@of("diffusers", "models.attention_processor.Attention", "heads", heads=3)
def _() -> Any:
    from diffusers.models.attention_processor import Attention

    layer = Attention(query_dim=12, cross_attention_dim=None, heads=3, dim_head=4)

    class Called(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, hidden_states, encoder_hidden_states=None):
            return self.layer(hidden_states, encoder_hidden_states)

    return Called()


@of("monai", "networks.blocks.SABlock", "heads", heads=3)
def _() -> Any:
    from monai.networks.blocks.selfattention import SABlock

    return SABlock(hidden_size=12, num_heads=3)


@of("torchscale", "component.MultiheadAttention", "heads", heads=3)
def _() -> Any:
    from torchscale.architecture.config import EncoderConfig
    from torchscale.component.multihead_attention import MultiheadAttention

    layer = MultiheadAttention(EncoderConfig(), 12, 3, self_attention=True)

    class Called(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, query, key, value, attn_mask=None):
            return self.layer(query, key, value, attn_mask=attn_mask)[0]

    return Called()


# --- OpenCLIP -------------------------------------------------------------------------------------


@of("open-clip-torch", "transformer.Attention", "heads", mask="added", heads=3)
def _() -> Any:
    from open_clip.transformer import Attention

    return Attention(12, num_heads=3)


@of("open-clip-torch", "transformer.TextTransformer, a state for each token", "decoder")
def _() -> Any:
    from open_clip.transformer import TextTransformer

    return TextTransformer(
        context_length=9, vocab_size=23, width=24, heads=4, layers=2, output_tokens=True
    )
