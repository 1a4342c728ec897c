"""Train chapter 11's model from ten starts and store what came of each: `python tools/starts.py`.

Some half an hour. The chapter shows the table from the stored file, and trains one of the starts
itself; a test trains a part of another again. Each start is a seed of the model's parameters and
of its texts.
"""

from __future__ import annotations

import json

import torch

from attention_book import LanguageModel, data, train
from attention_book.training import continuation_loss, in_float64

STARTS, STEPS, EVERY = 10, 600, 25
LONG = 5 * STEPS  #: for models of one layer, once more
#: What the chapter calls the jump: the share of known things that are right first reaches this.
JUMPED = 0.9


def new_model(seed: int, num_layers: int = 2) -> LanguageModel:
    """The chapter's model before its training."""
    torch.manual_seed(seed)
    with in_float64():
        return LanguageModel(len(data.WORDS), 64, 4, 128, num_layers, num_kv_heads=2)


def share_right(model: LanguageModel, orders: data.Orders, *off: tuple[int, int]) -> float:
    """The share of known things that the model names, without the heads `off`, (layer, head)."""
    kept = {layer: model.layers[layer].self_attention.W_o.weight.clone() for layer, _ in off}
    with torch.no_grad():
        for layer, head in off:
            model.layers[layer].self_attention.W_o.weight[:, 16 * head : 16 * (head + 1)] = 0
        named = model(orders.tokens)[:, 1::4].argmax(dim=-1)
        for layer, weight in kept.items():
            model.layers[layer].self_attention.W_o.weight.copy_(weight)
    right = named == orders.tokens[:, 2::4]
    return right[orders.is_known].double().mean().item()


def shares_apart(model: LanguageModel, orders: data.Orders) -> list[float]:
    """The share right where the person has just ordered, and at all other known things."""
    with torch.no_grad():
        named = model(orders.tokens)[:, 1::4].argmax(dim=-1)
    right = named == orders.tokens[:, 2::4]
    again = orders.first == orders.first.roll(1, dims=1)
    return [right[orders.is_known & which].double().mean().item() for which in (again, ~again)]


def label_weights(model: LanguageModel, orders: data.Orders) -> list[float]:
    """How much each head of layer 0 looks from a thing to the name before it, a mean weight."""
    with torch.no_grad():
        model(orders.tokens)
    weights = model.layers[0].self_attention.attention_weights
    things = torch.arange(2, orders.tokens.shape[1], 4)
    return weights[:, :, things, things - 1].mean(dim=(0, 2)).tolist()


def unseen() -> data.Orders:
    """The texts that every model is tested on."""
    return data.orders(200, generator=torch.Generator().manual_seed(99))


def trained(seed: int, num_layers: int = 2, num_steps: int = STEPS) -> tuple[LanguageModel, list]:
    """Train from one start; also returns the share right after each 25 steps."""
    model, texts = new_model(seed, num_layers), unseen()
    batches = torch.Generator().manual_seed(seed)
    shares: list[float] = []
    count = 0

    def draw() -> data.Orders:
        nonlocal count
        if count and count % EVERY == 0:
            shares.append(share_right(model, texts))
        count += 1
        return data.orders(32, generator=batches)

    train(model, draw, num_steps, loss=continuation_loss, learning_rate=0.003, eps=1e-8)
    return model, [*shares, share_right(model, texts)]


def row(seed: int) -> dict:
    """What is stored of one start."""
    model, shares = trained(seed)
    texts = unseen()
    reached = [EVERY * (i + 1) for i, share in enumerate(shares) if share >= JUMPED]
    without = [
        [round(share_right(model, texts, (layer, head)), 3) for head in range(4)]
        for layer in range(2)
    ]
    labels = label_weights(model, texts)
    two = sorted(range(4), key=labels.__getitem__)[2:]
    without_two = share_right(model, texts, *((0, head) for head in two))
    all_of = [share_right(model, texts, *((layer, head) for head in range(4))) for layer in (0, 1)]
    with torch.no_grad():
        loss = continuation_loss(model, texts).item()
    one_layer, one_layer_shares = trained(seed, num_layers=1)
    longer, longer_shares = trained(seed, num_layers=1, num_steps=LONG)
    return {
        "seed": seed,
        "jump": reached[0] if reached else None,
        "share": round(shares[-1], 3),
        "loss": round(loss, 3),
        "without": without,
        "labels": [round(weight, 3) for weight in labels],
        "without_two": round(without_two, 3),
        "without_layer": [round(share, 3) for share in all_of],
        "one_layer": round(one_layer_shares[-1], 3),
        "one_layer_apart": [round(share, 3) for share in shares_apart(one_layer, texts)],
        "longer_steps": LONG,
        "longer": round(longer_shares[-1], 3),
        "longer_apart": [round(share, 3) for share in shares_apart(longer, texts)],
    }


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    for seed in range(STARTS):
        rows.append(row(seed))
        print(rows[-1], flush=True)
    text = json.dumps(rows, indent=1)
    data.STARTS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
