"""The self-attention block against the same half of a real BERT layer, with its parameters."""

import pytest
import torch
from torch import Tensor
from transformers import BertConfig
from transformers.models.bert.modeling_bert import BertAttention

from attention_book import SelfAttentionBlock, data, length_mask

SIZE, HEADS = 24, 3


def layer_and_block(dtype: torch.dtype) -> tuple[BertAttention, SelfAttentionBlock]:
    """The attention half of BERT's layer, and our block, with the same random parameters."""
    config = BertConfig(hidden_size=SIZE, num_attention_heads=HEADS, attn_implementation="eager")
    layer = BertAttention(config).to(data.device, dtype).eval()
    for seed, parameter in enumerate(layer.parameters()):
        generator = torch.Generator().manual_seed(seed)
        parameter.data = data.normal(*parameter.shape, generator=generator, dtype=dtype) / 2
    names = {"self.": "", "output.": "", "LayerNorm": "layer_norm"}
    weights = {}
    for name, tensor in layer.state_dict().items():
        for theirs, ours in names.items():
            name = name.replace(theirs, ours)
        weights[name] = tensor
    block = SelfAttentionBlock(SIZE, HEADS, eps=config.layer_norm_eps).to(data.device, dtype)
    block.load_state_dict(weights)  # strict: every weight of one is a weight of the other
    return layer, block.eval()


def largest(difference: Tensor) -> float:
    return difference.abs().max().item()


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-12), (torch.float32, 1e-6)])
def test_the_block_gives_what_a_bert_layer_gives(dtype: torch.dtype, bound: float) -> None:
    layer, block = layer_and_block(dtype)
    x = data.normal(2, 7, SIZE, generator=torch.Generator().manual_seed(99), dtype=dtype)
    theirs, their_weights = layer(x)
    assert largest(block(x) - theirs) < bound
    assert largest(block.attention_weights - their_weights) < bound


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-12), (torch.float32, 1e-6)])
def test_lengths_are_its_additive_mask_of_one_query_axis(dtype: torch.dtype, bound: float) -> None:
    layer, block = layer_and_block(dtype)
    x = data.normal(2, 7, SIZE, generator=torch.Generator().manual_seed(99), dtype=dtype)
    valid_lens = torch.tensor([7, 3], device=data.device)
    allowed = length_mask(valid_lens, 7).unsqueeze(1)  # (batch, 1, 1, length)
    additive = torch.zeros(allowed.shape, dtype=dtype, device=data.device)
    additive = additive.masked_fill(~allowed, torch.finfo(dtype).min)
    theirs, their_weights = layer(x, additive)
    assert largest(block(x, valid_lens) - theirs) < bound
    assert largest(block.attention_weights - their_weights) < bound
