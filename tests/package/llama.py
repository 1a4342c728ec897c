"""A Llama in NumPy, written for the tests alone; each named slip can be made in it."""

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

Array = NDArray[np.float64]


def softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


class Llama:
    """Logits and hidden states of a folder of the Llama family, in float64.

    `slip` is the name of a mistake to make, or nothing; `detail` says which base, epsilon or rows.
    """

    def __init__(self, folder: Path, slip: str = "", detail: str = "") -> None:
        self.config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        stored = load_file(folder / "model.safetensors")
        self.stored = {name: part.astype(np.float64) for name, part in stored.items()}
        self.slip, self.detail, self.heads = slip, detail, self.config["num_attention_heads"]
        value = float(detail.replace(",", "")) if slip in ("rotation-base", "norm-epsilon") else 0.0
        self.base = value if slip == "rotation-base" else self.config["rope_theta"]
        self.eps = value if slip == "norm-epsilon" else self.config["rms_norm_eps"]

    def get(self, layer: int, part: str) -> Array:
        if self.slip == "norms-exchanged" and "layernorm" in part:
            names = ["input_layernorm", "post_attention_layernorm"]
            part = names[1 - names.index(part)]
        return self.stored[f"model.layers.{layer}.{part}.weight"]

    def norm(self, x: Array, gain: Array) -> Array:
        if self.slip == "norm-gain-missing" and self.detail == "of all norms":
            gain = np.ones_like(gain)
        return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + self.eps) * gain

    def rotate(self, x: Array) -> Array:
        """Turn the pairs of features of each head, (heads, length, size)."""
        _, length, size = x.shape
        angles = np.arange(length)[:, None] * self.base ** (-np.arange(0, size, 2) / size)
        cos, sin = np.cos(angles), np.sin(angles)
        other = self.slip == "rotation-other-pairing"
        near = other and "neighbours" in self.detail
        if other and not near:  # undo the order of the folder's rows
            x = np.stack(np.split(x, 2, axis=-1), axis=-1).reshape(x.shape)
        a, b = (x[..., ::2], x[..., 1::2]) if near else np.split(x, 2, axis=-1)
        turned = a * cos - b * sin, b * cos + a * sin
        return np.stack(turned, axis=-1).reshape(x.shape) if near else np.concatenate(turned, -1)

    def attention(self, layer: int, x: Array) -> Array:
        length, width = x.shape
        size = width // self.heads

        def project(name: str) -> Array:
            return (x @ self.get(layer, f"self_attn.{name}").T).reshape(length, -1, size)

        q, k, v = (project(name).transpose(1, 0, 2) for name in ("q_proj", "k_proj", "v_proj"))
        if self.slip != "rotation-missing":
            q, k = self.rotate(q), self.rotate(k)
        kv = np.arange(self.heads) // (self.heads // len(k))
        if self.slip == "kv-heads-interleaved-wrongly":
            kv = np.arange(self.heads) % len(k)
        divisors = {"scale-missing": 1, "scale-sqrt-d-model": width}
        scores = q @ k[kv].transpose(0, 2, 1) / divisors.get(self.slip, size) ** 0.5
        if self.slip != "causal-ignored":
            scores += np.triu(np.full((length, length), -np.inf), 1)
        mixed = (softmax(scores) @ v[kv]).transpose(1, 0, 2).reshape(length, width)
        out = self.get(layer, "self_attn.o_proj")
        return mixed @ (out if self.slip == "output-projection-transposed" else out.T)

    def network(self, layer: int, x: Array) -> Array:
        gate, up = (x @ self.get(layer, f"mlp.{name}_proj").T for name in ("gate", "up"))
        if self.slip == "gate-and-up-exchanged":
            gate, up = up, gate
        return (gate / (1 + np.exp(-gate)) * up) @ self.get(layer, "mlp.down_proj").T

    def run(self, tokens: list[int]) -> tuple[Array, Array]:
        """Logits (length, tokens), and the states after each step (layers + 2, length, width)."""
        embedding = self.stored["model.embed_tokens.weight"]
        x = embedding[tokens]
        states = [x]
        for layer in range(self.config["num_hidden_layers"]):
            gain = self.get(layer, "input_layernorm")
            gain = np.ones_like(gain) if self.slip == "norm-gain-missing" else gain
            x = x + self.attention(layer, self.norm(x, gain))
            gain = self.get(layer, "post_attention_layernorm")
            x = x + self.network(layer, self.norm(x, gain))
            states.append(x)
        last = self.slip != "last-norm-missing"
        states.append(self.norm(x, self.stored["model.norm.weight"]) if last else x)
        return states[-1] @ embedding.T, np.stack(states)
