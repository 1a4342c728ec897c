"""Write conformance/stories.json, a part of `make conformance`: two seconds.

The cases hold an implementation of the Llama family against stories260K, the published model of the
package: its tokens, chosen logits, and what each layer returns. Each wrong way to load or to run it
has its numbers and a name of the catalogue, also those whose text still reads well.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import torch
from conformance import FOLDER as CONFORMANCE
from conformance import store
from torch import Tensor

from attention_book import LanguageModel
from attention_book.data import stories

TARGET = CONFORMANCE / "stories.json"
FOLDER, ENCODE, _ = stories()
#: Texts for the tokens: pieces that merge, several bytes, spaces, what looks like a token.
TEXTS = ["Once upon a time", "the  mother", "Zoë 中😀", "<s>\n"]
STORY = "Once upon a time, there was a little girl named Lily. She had a small red ball. Every day"
SHORT = "The cat sat"
#: The components of the hidden states that the file contains.
COMPONENTS = list(range(8))


def base(value: float | None) -> Callable[[LanguageModel], None]:
    def change(model: LanguageModel) -> None:
        for layer in model.layers:
            layer.self_attention.rotary_base = value

    return change


def divisor(root_of: int) -> Callable[[LanguageModel], None]:
    """Divide the scores by the root of another number than the 8 of a head."""

    def change(model: LanguageModel) -> None:
        for layer in model.layers:
            layer.self_attention.W_q.weight.mul_((8 / root_of) ** 0.5)

    return change


def epsilon(model: LanguageModel) -> None:
    for part in model.modules():
        if isinstance(part, torch.nn.RMSNorm):
            part.eps = 1e-2


def gains(model: LanguageModel) -> None:
    for layer in model.layers:
        layer.norm_1.weight.fill_(1)


def all_gains(model: LanguageModel) -> None:
    for part in model.modules():
        if isinstance(part, torch.nn.RMSNorm):
            part.weight.fill_(1)


def last_norm(model: LanguageModel) -> None:
    model.norm = torch.nn.Identity()


def groups(model: LanguageModel) -> None:
    """Give query head i the key head i mod 4, in place of i // 2."""
    order = torch.tensor([4 * (i % 2) + i // 2 for i in range(8)])
    moved = (8 * order.unsqueeze(1) + torch.arange(8)).flatten()
    for layer in model.layers:
        attention = layer.self_attention
        attention.W_q.weight.copy_(attention.W_q.weight[moved])
        attention.W_o.weight.copy_(attention.W_o.weight[:, moved])


def rows(number: int) -> Callable[[LanguageModel], None]:
    """Put rows i, i + number, i + 2 · number … of each head side by side, in W_q and in W_k.

    With 4 this undoes the order that the rotation of halves needs. With 2, halves are rotated as
    neighbours would be without it.
    """

    def change(model: LanguageModel) -> None:
        for layer in model.layers:
            for projection in (layer.self_attention.W_q, layer.self_attention.W_k):
                weight = projection.weight
                heads = weight.view(-1, 8 // number, number, 64)
                weight.copy_(heads.transpose(1, 2).reshape(weight.shape))

    return change


def transposed(model: LanguageModel) -> None:
    for layer in model.layers:
        layer.self_attention.W_o.weight.copy_(layer.self_attention.W_o.weight.T.clone())


def norms(model: LanguageModel) -> None:
    for layer in model.layers:
        layer.norm_1, layer.norm_2 = layer.norm_2, layer.norm_1


def gates(model: LanguageModel) -> None:
    for layer in model.layers:
        network = layer.feed_forward
        network.gate, network.up = network.up, network.gate


def unmasked(model: LanguageModel) -> None:
    for layer in model.layers:
        layer.self_attention.causal = False


#: The slips: the names of each, what is particular to it, and what it changes. A head has 8
#: features here, the root of 64: who divides by one divides by the other.
SLIPS = [
    ("rotation-base", "5,000", base(5e3)),
    ("norm-epsilon", "0.01", epsilon),
    ("scale-missing", "", divisor(1)),
    ("norm-gain-missing", "of the norms before attention", gains),
    ("last-norm-missing", "", last_norm),
    ("rotation-base", "1,000", base(1e3)),
    ("rotation-base", "100,000", base(1e5)),
    ("scale-sqrt-d-model scale-twice", "", divisor(64)),
    ("rotation-base", "500,000", base(5e5)),
    ("rotation-base", "1,000,000", base(1e6)),
    ("kv-heads-interleaved-wrongly", "", groups),
    ("rotation-missing", "", base(None)),
    ("rotation-other-pairing", "rows as first published, halves rotated", rows(4)),
    ("rotation-other-pairing", "rows of this folder, neighbours rotated", rows(2)),
    ("output-projection-transposed", "", transposed),
    ("norms-exchanged", "", norms),
    ("gate-and-up-exchanged", "", gates),
    ("norm-gain-missing", "of all norms", all_gains),
    ("causal-ignored", "", unmasked),
]


def right() -> LanguageModel:
    """The published model, in float64."""
    return LanguageModel.from_pretrained(FOLDER).double().eval()


@torch.no_grad()
def wrong(change: Callable[[LanguageModel], None]) -> LanguageModel:
    """A copy of the model with one slip."""
    model = copy.deepcopy(right())
    change(model)
    return model


@torch.no_grad()
def hidden_states(model: LanguageModel, tokens: Tensor) -> Tensor:
    """The embeddings, what each layer returns, and the last norm of it: (7, length, 64)."""
    states = [model.embedding(tokens)]
    for layer in model.layers:
        states.append(layer(states[-1]))
    return torch.cat([*states, model.norm(states[-1])])


def unspaced(text: str) -> list[int]:
    """The tokens of a text without the space in front: a line break before it takes that."""
    return ENCODE("\n" + text, begin=False)[2:]


def rounded(numbers: Tensor) -> Any:
    return json.loads(json.dumps(numbers.tolist()), parse_float=lambda text: round(float(text), 9))


def token_cases() -> list[dict[str, Any]]:
    cases = []
    for i, text in enumerate(TEXTS):
        ids, begin = ENCODE(text), ENCODE("")
        characters = [token for character in " " + text for token in unspaced(character)]
        slips = {
            "leading-space-missing": begin + unspaced(text),
            "pieces-not-merged": begin + characters,
        }
        cases.append(
            {
                "id": f"tokens-{i}",
                "stage": "tokens",
                "inputs": {"text": text},
                "expected": ids,
                "mistakes": [{"names": [n], "got": got} for n, got in slips.items() if got != ids],
                "accepted": [
                    {"note": "The begin token, 1, is put in front later.", "got": ids[1:]}
                ],
            }
        )
    return cases


def cases() -> list[dict[str, Any]]:
    """All cases, in the order in which a model computes."""
    model, story, short = right(), torch.tensor([ENCODE(STORY)]), torch.tensor([ENCODE(SHORT)])
    places = [1, 10, 25, story.shape[1] - 1]
    with torch.no_grad():
        columns = sorted(model(story)[0, -1].topk(8).indices.tolist())

    def logits(model: LanguageModel) -> Any:
        with torch.no_grad():
            return rounded(model(story)[0][places][:, columns])

    def states(model: LanguageModel) -> Any:
        return rounded(hidden_states(model, short)[:, -1, COMPONENTS])

    def case(name: str, inputs: dict[str, Any], numbers: Callable[[LanguageModel], Any]) -> Any:
        expected, mistakes = numbers(model), []
        for names, detail, change in SLIPS:
            if (got := numbers(wrong(change))) != expected:
                more = {"detail": detail} if detail else {}
                mistakes.append({"names": names.split(), **more, "got": got})
        return {
            "id": name,
            "stage": name,
            "inputs": inputs,
            "expected": expected,
            "mistakes": mistakes,
            "accepted": [],
        }

    last = short.shape[1] - 1
    hidden = {"tokens": short[0].tolist(), "place": last, "components": COMPONENTS}
    chosen = {"tokens": story[0].tolist(), "places": places, "columns": columns}
    return [
        *token_cases(),
        case("hidden-states", {"text": SHORT, **hidden}, states),
        case("logits", {"text": STORY, **chosen}, logits),
    ]


if __name__ == "__main__":
    store("stories", cases())
