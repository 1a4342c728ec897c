"""Folders in Hugging Face's format of the Llama family: same logits, same texts, clear refusals."""

import json
from pathlib import Path

import pytest
import torch
from cases import close, refuses
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from attention_book import LanguageModel, data

TOKENS = 53
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
#: Options of the five folders, and what writes their parameters in several files.
FOLDERS = {
    "all heads, untied": {"num_key_value_heads": 4, "tie_word_embeddings": False},
    "one head": {"num_key_value_heads": 1, "rms_norm_eps": 1e-5},
    "two heads, large base": {"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}},
    "scaled as in Llama 3.1, untied": {
        "rope_parameters": {"rope_theta": 5e5, **LLAMA3},
        "tie_word_embeddings": False,
    },
    "several files, small base": {"rope_parameters": {"rope_type": "default", "rope_theta": 100.0}},
}


def llama(dtype: torch.dtype = torch.float32, **options: object) -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        **{
            "vocab_size": TOKENS,
            "hidden_size": 48,
            "intermediate_size": 80,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 64,
            "tie_word_embeddings": True,
            "initializer_range": 0.2,
            "eos_token_id": None,
            **options,
        }
    )
    model = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.uniform_(0.5, 1.5)
    return model.to(dtype)


def texts(batch: int, length: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(TOKENS, (batch, length), generator=generator).to(data.device)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that loads, to be spoilt."""
    llama(tie_word_embeddings=False).save_pretrained(tmp_path)
    LanguageModel.from_pretrained(tmp_path)
    return tmp_path


def change(folder: Path, **settings: object) -> None:
    """Change settings in config.json; None takes one out."""
    file = folder / "config.json"
    config = {**json.loads(file.read_text()), **settings}
    file.write_text(json.dumps({k: v for k, v in config.items() if v is not None}))


@torch.no_grad()
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("name", FOLDERS)
def test_logits_and_texts_are_those_of_hugging_face(name: str, fused: bool, tmp_path: Path) -> None:
    theirs, tokens = llama(**FOLDERS[name]).to(data.device), texts(3, 29)
    size = "20KB" if "files" in name else "5GB"
    theirs.save_pretrained(tmp_path, max_shard_size=size)
    assert (len(list(tmp_path.glob("*.safetensors"))) > 1) == ("files" in name)
    ours = LanguageModel.from_pretrained(str(tmp_path), fused=fused).to(data.device)
    truth = theirs(tokens).logits
    close(ours(tokens), truth, reach=float(truth.abs().max()))
    written = theirs.generate(
        tokens,
        attention_mask=torch.ones_like(tokens),
        max_new_tokens=20,
        do_sample=False,
        pad_token_id=0,
    )
    assert torch.equal(ours.generate(tokens, 20), written[:, 29:])


def test_the_older_form_of_the_rotation_is_read_too(tmp_path: Path) -> None:
    rope = {"rope_theta": 5e5, **LLAMA3}
    llama(rope_parameters=rope).save_pretrained(tmp_path)
    today = LanguageModel.from_pretrained(tmp_path)
    change(tmp_path, rope_parameters=None, rope_theta=5e5, rope_scaling=LLAMA3)
    older = LanguageModel.from_pretrained(tmp_path)
    assert torch.equal(older(texts(2, 29)), today(texts(2, 29)))
    change(tmp_path, rope_scaling=None)
    assert not torch.allclose(
        LanguageModel.from_pretrained(tmp_path)(texts(2, 29)), today(texts(2, 29))
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_numbers_keep_the_format_in_which_they_are_stored(
    dtype: torch.dtype, tmp_path: Path
) -> None:
    theirs = llama(dtype)
    theirs.save_pretrained(tmp_path)
    ours = LanguageModel.from_pretrained(tmp_path)
    assert {p.dtype for p in ours.parameters()} == {dtype}
    assert all(p.requires_grad and not p.is_meta for p in ours.parameters())
    with torch.no_grad():
        truth = theirs(texts(2, 7)).logits
        close(ours(texts(2, 7)), truth, dtype, reach=10 * float(truth.abs().max()))


def test_a_tied_matrix_may_be_stored_twice_if_it_is_the_same(tmp_path: Path) -> None:
    llama().save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    tensors = load_file(file)
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
    tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(6)
    save_file(tensors, file)
    LanguageModel.from_pretrained(tmp_path)
    tensors["lm_head.weight"] += 1
    save_file(tensors, file)
    with refuses(ValueError, "tie_word_embeddings", "lm_head.weight differs"):
        LanguageModel.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("settings", "pieces"),
    [
        ({"model_type": "gpt2"}, ["model_type is 'gpt2'", "'llama'"]),
        ({"model_type": None}, ["model_type is None"]),
        ({"attention_bias": True}, ["attention_bias is True"]),
        ({"mlp_bias": True}, ["mlp_bias is True"]),
        ({"hidden_act": "gelu"}, ["hidden_act is 'gelu'", "'silu'"]),
        ({"attention_dropout": 0.1}, ["attention_dropout is 0.1"]),
        ({"quantization_config": {"bits": 4}}, ["quantization_config is {'bits': 4}"]),
        ({"head_dim": 16}, ["head_dim is 16", 12]),
        ({"hidden_size": None}, ["does not say hidden_size"]),
        ({"num_key_value_heads": 3}, ["num_kv_heads", 3]),
        ({"rope_parameters": {"rope_type": "yarn"}}, ["rope_type is 'yarn'", "'llama3'"]),
        ({"rope_parameters": {"rope_type": "llama3", "factor": 8}}, ["low_freq_factor"]),
        ({"rope_parameters": {"rope_theta": 0}}, ["rotary_base must be above 0"]),
        ({"rope_parameters": None, "rope_scaling": {"type": "linear"}}, ["rope_type is 'linear'"]),
        ({"partial_rotary_factor": 0.5}, ["partial_rotary_factor is 0.5"]),
        (
            {"intermediate_size": 64},
            ["model.layers.0.mlp.gate_proj.weight", "(80, 48)", "(64, 48)"],
        ),
        (
            {"num_hidden_layers": 2},
            ["no place for the tensor model.layers.2.input_layernorm.weight", "8 more"],
        ),
        (
            {"num_hidden_layers": 4},
            ["the tensor model.layers.3.input_layernorm.weight is missing, and 8 more"],
        ),
        ({"tie_word_embeddings": True}, ["tie_word_embeddings", "lm_head.weight differs"]),
    ],
)
def test_what_a_language_model_cannot_represent_is_refused(
    settings: dict[str, object], pieces: list[object], folder: Path
) -> None:
    change(folder, **settings)
    with refuses(ValueError, *pieces):
        LanguageModel.from_pretrained(folder)


def test_a_tensor_that_is_missing_or_too_many_is_named(folder: Path) -> None:
    file = folder / "model.safetensors"
    tensors = load_file(file)
    bias = "model.layers.0.self_attn.q_proj.bias"
    save_file({**tensors, bias: torch.ones(48)}, file)
    with refuses(ValueError, f"no place for the tensor {bias}"):
        LanguageModel.from_pretrained(folder)
    norm = tensors.pop("model.norm.weight")
    save_file(tensors, file)
    with refuses(ValueError, "the tensor model.norm.weight is missing"):
        LanguageModel.from_pretrained(folder)
    save_file({**tensors, "model.norm.weight": norm.to(torch.int8)}, file)
    with refuses(ValueError, "the tensor model.norm.weight holds torch.int8"):
        LanguageModel.from_pretrained(folder)


def test_a_folder_that_is_not_there_or_not_whole_is_refused(folder: Path) -> None:
    with refuses(FileNotFoundError, "HuggingFaceTB/SmolLM2-135M is not a folder", "downloaded"):
        LanguageModel.from_pretrained("HuggingFaceTB/SmolLM2-135M")
    (folder / "model.safetensors").write_bytes(b"no tensors")
    with refuses(ValueError, "model.safetensors cannot be read"):
        LanguageModel.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    with refuses(FileNotFoundError, "has no model.safetensors"):
        LanguageModel.from_pretrained(folder)
    (folder / "config.json").write_text("{")
    with refuses(ValueError, "config.json is not JSON"):
        LanguageModel.from_pretrained(folder)
    (folder / "config.json").unlink()
    with refuses(FileNotFoundError, "has no config.json"):
        LanguageModel.from_pretrained(folder)


def test_a_missing_file_of_several_is_named(tmp_path: Path) -> None:
    llama().save_pretrained(tmp_path, max_shard_size="20KB")
    last = sorted(tmp_path.glob("*.safetensors"))[-1]
    last.unlink()
    with refuses(FileNotFoundError, f"has no {last.name}"):
        LanguageModel.from_pretrained(tmp_path)


@torch.no_grad()
def test_swapped_queries_and_keys_would_be_seen(tmp_path: Path) -> None:
    """So that equality with Hugging Face says something of the names."""
    theirs = llama(num_key_value_heads=4)
    theirs.save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    tensors = load_file(file)
    for name in [name for name in tensors if "q_proj" in name]:
        other = name.replace("q_proj", "k_proj")
        tensors[name], tensors[other] = tensors[other], tensors[name]
    save_file(tensors, file)
    swapped = LanguageModel.from_pretrained(tmp_path)(texts(2, 9))
    assert not torch.allclose(swapped, theirs(texts(2, 9)).logits, atol=0.1)
