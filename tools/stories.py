"""Convert stories260K into the folder that the package ships: `python tools/stories.py FOLDER`.

FOLDER contains stories260K.bin and tok512.bin as A. Karpathy published them (the folder
stories260K of https://huggingface.co/karpathy/tinyllamas; also in the repository
https://github.com/ytmytm/llama2.c64). Files with other checksums are refused. What is written is
the same on each machine; the last lines print the checksums that `attention_book/data.py` compares.

The formats are those of llama2.c (run.c, tokenizer.py). Its rotation pairs the features 2i and
2i + 1 of a head, and Hugging Face's pairs i and i + d_k / 2, so the rows of W_q and W_k change
their order here.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import struct
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

SOURCES = {
    "stories260K.bin": "b0a507e7ad0f626624f17112325e66691f9076d622e1d3274d103d00299f2696",
    "tok512.bin": "037cb335abb25d1fa9e8ecae30ed2a3a8ace9302862ebcdc05d51a6bbb10c312",
}
TARGET = Path(__file__).resolve().parent.parent / "src/attention_book/stories260k"
#: The tokens that stand for no text, then those for the 256 bytes.
SPECIAL, BYTES = ["<unk>", "<s>", "</s>"], [f"<0x{byte:02X}>" for byte in range(256)]


def source(folder: Path, name: str) -> bytes:
    """The bytes of a published file.

    Raises:
        SystemExit: if its checksum is another one.
    """
    data = (folder / name).read_bytes()
    if hashlib.sha256(data).hexdigest() != SOURCES[name]:
        raise SystemExit(f"{folder / name} is not the published file: its checksum differs")
    return data


def halves(rows: Tensor, heads: int) -> Tensor:
    """In each head, rows 0, 2, 4 … first and then rows 1, 3, 5 …"""
    size, columns = len(rows) // heads, rows.shape[1]
    return rows.view(heads, size // 2, 2, columns).transpose(1, 2).reshape(len(rows), columns)


def parameters(data: bytes) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The settings and the tensors, both as Hugging Face's Llama names them."""
    width, hidden, layers, heads, kv_heads, tokens, places = struct.unpack("<7i", data[:28])
    numbers = torch.frombuffer(bytearray(data[28:]), dtype=torch.float32)
    head, at = width // heads, 0

    def take(*shape: int) -> Tensor:
        nonlocal at
        at += math.prod(shape)
        return numbers[at - math.prod(shape) : at].view(shape)

    tensors = {"model.embed_tokens": take(tokens, width)}
    for name, shape in {
        "input_layernorm": (width,),
        "self_attn.q_proj": (width, width),
        "self_attn.k_proj": (kv_heads * head, width),
        "self_attn.v_proj": (kv_heads * head, width),
        "self_attn.o_proj": (width, width),
        "post_attention_layernorm": (width,),
        "mlp.gate_proj": (hidden, width),
        "mlp.down_proj": (width, hidden),
        "mlp.up_proj": (hidden, width),
    }.items():
        rotated = {"self_attn.q_proj": heads, "self_attn.k_proj": kv_heads}.get(name)
        for i, tensor in enumerate(take(layers, *shape)):
            tensors[f"model.layers.{i}.{name}"] = halves(tensor, rotated) if rotated else tensor
    tensors["model.norm"] = take(width)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "bos_token_id": 1,
        "dtype": "float32",
        "eos_token_id": 2,
        "hidden_act": "silu",
        "hidden_size": width,
        "intermediate_size": hidden,
        "max_position_embeddings": places,
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": heads,
        "num_hidden_layers": layers,
        "num_key_value_heads": kv_heads,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        "vocab_size": tokens,
    }
    return config, {f"{name}.weight": tensor.contiguous() for name, tensor in tensors.items()}


def tokenizer(data: bytes, num_tokens: int) -> dict[str, Any]:
    """The pieces and their merges, as the library `tokenizers` reads them.

    A space is a space here, not "▁", so a text may contain that character too. The special tokens
    are not among the added ones, so "<s>" written out is text.
    """
    scores, at = {}, 4
    for i in range(num_tokens):
        score, length = struct.unpack("<fi", data[at : at + 8])
        at += 8 + length
        if i >= len(SPECIAL) + len(BYTES):
            scores[data[at - length : at].decode()] = score
    merges = [
        (left, piece[len(left) :])
        for piece in sorted(scores, key=lambda piece: -scores[piece])
        for left in itertools.accumulate(piece[:-1])
        if left in scores and piece[len(left) :] in scores
    ]
    pieces = [*SPECIAL, *BYTES, *scores]
    begin = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Prepend", "prepend": " "},
        "pre_tokenizer": None,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": begin,
            "pair": [*begin, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}},
        },
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "<unk>",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": {piece: i for i, piece in enumerate(pieces)},
            "merges": merges,
        },
    }


def main(folder: Path) -> None:
    config, tensors = parameters(source(folder, "stories260K.bin"))
    pieces = tokenizer(source(folder, "tok512.bin"), config["vocab_size"])
    files = {
        "config.json": (json.dumps(config, indent=2) + "\n").encode(),
        "model.safetensors": save(tensors, metadata={"format": "pt"}),
        "tokenizer.json": (json.dumps(pieces, indent=1, ensure_ascii=False) + "\n").encode(),
    }
    for name, content in files.items():
        (TARGET / name).write_bytes(content)
        print(f"{hashlib.sha256(content).hexdigest()}  {name}, {len(content):,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
