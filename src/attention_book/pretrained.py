"""Published parameters: a folder of the Llama family in the format of Hugging Face, read whole."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from attention_book.positions import Llama3Scaling

OWNER = "LanguageModel.from_pretrained"

#: Parts of a parameter's name: ours, and that of Hugging Face's Llama.
_NAMES = {
    "embedding": "model.embed_tokens",
    "layers": "model.layers",
    "norm": "model.norm",
    "to_logits": "lm_head",
    "self_attention.W_q": "self_attn.q_proj",
    "self_attention.W_k": "self_attn.k_proj",
    "self_attention.W_v": "self_attn.v_proj",
    "self_attention.W_o": "self_attn.o_proj",
    "norm_1": "input_layernorm",
    "norm_2": "post_attention_layernorm",
    "feed_forward.gate": "mlp.gate_proj",
    "feed_forward.up": "mlp.up_proj",
    "feed_forward.down": "mlp.down_proj",
}

#: Settings that a `LanguageModel` has no place for, and the only value that it equals.
_FIXED = {
    "model_type": "llama",
    "hidden_act": "silu",
    "attention_bias": False,
    "mlp_bias": False,
    "attention_dropout": 0,
    "quantization_config": None,
}


def read_options(folder: Path) -> dict[str, Any]:
    """The arguments of a `LanguageModel` that config.json describes.

    Raises:
        FileNotFoundError: where there is no such folder, or no config.json in it.
        ValueError: for a setting that no `LanguageModel` has.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{OWNER}: {folder} is not a folder, and nothing is downloaded")
    config = _read_json(folder / "config.json")
    for name, value in _FIXED.items():
        found = config.get(name, None if name == "model_type" else value)
        if found != value:
            raise ValueError(
                f"{OWNER}: {name} is {_short(found)} in config.json, "
                f"but a LanguageModel has only {value!r}"
            )
    sizes = {
        "num_tokens": "vocab_size",
        "d_model": "hidden_size",
        "num_heads": "num_attention_heads",
        "num_hiddens": "intermediate_size",
        "num_layers": "num_hidden_layers",
    }
    missing = [theirs for theirs in sizes.values() if theirs not in config]
    if missing:
        raise ValueError(f"{OWNER}: config.json does not say {missing[0]}")
    options = {ours: config[theirs] for ours, theirs in sizes.items()}
    head_dim, by_heads = config.get("head_dim"), options["d_model"] / options["num_heads"]
    if head_dim not in (None, by_heads):
        raise ValueError(
            f"{OWNER}: head_dim is {head_dim} in config.json, but a LanguageModel has only "
            f"hidden_size / num_attention_heads = {by_heads:g}"
        )
    return {
        **options,
        "num_kv_heads": config.get("num_key_value_heads"),
        "eps": config.get("rms_norm_eps", 1e-6),
        "tied": config.get("tie_word_embeddings", False),
        **_rotary_options(config),
    }


def _rotary_options(config: Mapping[str, Any]) -> dict[str, Any]:
    """Base and scaling, in today's form (rope_parameters) or the older one (rope_scaling)."""
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    base = rope.get("rope_theta", config.get("rope_theta", 10000.0))
    kind = rope.get("rope_type", rope.get("type", "default"))
    part = rope.get("partial_rotary_factor", config.get("partial_rotary_factor", 1.0))
    if part != 1.0:
        raise ValueError(
            f"{OWNER}: partial_rotary_factor is {part} in config.json, "
            f"but a LanguageModel rotates all features of a head"
        )
    if kind == "default":
        return {"rotary_base": base}
    if kind != "llama3":
        raise ValueError(
            f"{OWNER}: rope_type is {kind!r} in config.json, "
            f"but a LanguageModel knows only 'default' and 'llama3'"
        )
    rope = {"original_max_position_embeddings": config.get("max_position_embeddings"), **rope}
    needed = ["factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"]
    for name in needed:
        if rope.get(name) is None:
            raise ValueError(
                f"{OWNER}: config.json does not say {name}, as rope_type 'llama3' must"
            )
    return {"rotary_base": base, "rotary_scaling": Llama3Scaling(*(rope[n] for n in needed))}


def read_parameters(folder: Path, shapes: Mapping[str, torch.Size]) -> dict[str, Tensor]:
    """The tensors of a folder, under our names, in the number format of the first of them.

    `shapes` says which there must be, and of which shape.

    Raises:
        FileNotFoundError: for a file that is missing.
        ValueError: for a tensor that is missing, too many, of another shape, or not of
            floating-point numbers, and for a file that cannot be read.
    """
    stored = _tensors_by_file(folder)
    wanted = {_their_name(ours): ours for ours in shapes}
    missing = [name for name in wanted if name not in stored]
    if missing:
        raise ValueError(f"{OWNER}: the tensor {missing[0]} is missing{_more(missing)}")
    tied = {"lm_head.weight": "model.embed_tokens.weight"}  # stored though it is the other one
    extra = [name for name in stored if name not in wanted and name not in tied]
    # Older folders store the frequencies of the rotation, which follow from the base.
    extra = [name for name in extra if not name.endswith("rotary_emb.inv_freq")]
    if extra:
        raise ValueError(
            f"{OWNER}: a LanguageModel has no place for the tensor {extra[0]}{_more(extra)}"
        )
    found: dict[str, Tensor] = {}
    for file in sorted(set(stored.values())):
        with safe_open(file, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118, it is no dict
                if name in wanted or name in tied:
                    found[name] = tensors.get_tensor(name)
    for name, ours in wanted.items():
        tensor = found[name]
        if tensor.shape != shapes[ours]:
            raise ValueError(
                f"{OWNER}: the tensor {name} is of shape {tuple(tensor.shape)}, "
                f"but config.json says {tuple(shapes[ours])}"
            )
        if tensor.dtype not in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
            raise ValueError(f"{OWNER}: the tensor {name} holds {tensor.dtype}")
    for name, other in tied.items():
        if name in found and name not in wanted and not torch.equal(found[name], found[other]):
            raise ValueError(
                f"{OWNER}: tie_word_embeddings is true in config.json, "
                f"but the tensor {name} differs from {other}"
            )
    dtype = found[next(iter(wanted))].dtype
    return {ours: found[name].to(dtype) for name, ours in wanted.items()}


def _tensors_by_file(folder: Path) -> dict[str, Path]:
    """The file of each stored tensor: of one file, or of those that an index names."""
    index, single = folder / "model.safetensors.index.json", folder / "model.safetensors"
    if index.exists() and not single.exists():
        files = {folder / Path(name).name for name in _read_json(index)["weight_map"].values()}
    else:
        files = {single}
    stored: dict[str, Path] = {}
    for file in sorted(files):
        if not file.exists():
            raise FileNotFoundError(f"{OWNER}: {folder} has no {file.name}")
        try:
            with safe_open(file, framework="pt") as tensors:
                stored |= dict.fromkeys(tensors.keys(), file)
        except SafetensorError as error:
            raise ValueError(f"{OWNER}: {file.name} cannot be read: {error}") from error
    return stored


def _their_name(ours: str) -> str:
    """'layers.0.norm_1.weight' is 'model.layers.0.input_layernorm.weight'."""
    first, *rest = ours.removesuffix(".weight").split(".", 2)
    if not rest:
        return f"{_NAMES[first]}.weight"
    number, part = rest
    return f"{_NAMES[first]}.{number}.{_NAMES[part]}.weight"


def our_name(theirs: str) -> str:
    """'model.layers.0.input_layernorm.weight' is 'layers.0.norm_1.weight'."""
    ours = {name: part for part, name in _NAMES.items()}
    stem = theirs.removesuffix(".weight")
    if stem in ours:
        return f"{ours[stem]}.weight"
    number, part = stem.removeprefix("model.layers.").split(".", 1)
    return f"layers.{number}.{ours[part]}.weight"


def _read_json(file: Path) -> dict[str, Any]:
    if not file.exists():
        raise FileNotFoundError(f"{OWNER}: {file.parent} has no {file.name}")
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{OWNER}: {file.name} is not JSON: {error}") from error


def _more(names: Iterable[str]) -> str:
    others = len(list(names)) - 1
    return f", and {others} more" if others else ""


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
