"""Chapter 11: a trained language model that runs in the page, on words of its vocabulary."""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import torch
import traitlets
from matplotlib.figure import Figure as Canvas
from torch import Tensor
from torch.nn import functional as F

from attention_book.figures import parameters
from attention_book.figures.base import (
    Count,
    Figure,
    RefusedError,
    canvas_of,
    control,
    listed,
    shown,
    text_of,
)
from attention_book.language import N_, say
from attention_book.language_model import LanguageModel, likely_tokens
from attention_book.masking import masked_softmax
from attention_book.multihead import MultiHeadAttention

OWNER = "LanguageModelFigure"
MOST_PARAMETERS, MOST_HEADS, MOST_LENGTH, MOST_TOKENS = 120_000, 16, 64, 256
TEMPERATURES = [round(0.1 * i, 1) for i in range(21)]
SHARES = [round(0.05 * i, 2) for i in range(1, 21)]

#: One head: its layer and its number.
Head = tuple[int, int]


def sizes_of(model: LanguageModel) -> dict[str, Any]:
    """What a page must know of a model to compute it, besides its parameters."""
    layer: Any = model.layers[0]
    return {
        "d_model": model.sizes["d_model"],
        "heads": model.sizes["heads"],
        "kv_heads": model.sizes["kv_heads"],
        "hidden": layer.feed_forward.sizes["hidden"],
        "layers": len(model.layers),
        "rotary_base": layer.self_attention.rotary_base,
        "eps": model.norm.eps,
        "tied": model.to_logits is None,
    }


def with_sizes(sizes: dict[str, Any], num_tokens: int) -> LanguageModel:
    """A model of these sizes, in float64."""
    model = LanguageModel(
        num_tokens,
        sizes["d_model"],
        sizes["heads"],
        sizes["hidden"],
        sizes["layers"],
        num_kv_heads=sizes["kv_heads"],
        rotary_base=sizes["rotary_base"],
        eps=sizes["eps"],
        tied=sizes["tied"],
    )
    return model.double().eval()


def packed(model: LanguageModel, vocabulary: Sequence[str], *, longest: int) -> dict[str, Any]:
    """The model as the page takes it: `parameters.packed` and what its sizes do not say.

    Args:
        vocabulary: the word that each token stands for, without spaces.
        longest: number of words of the longest text that the figure reads.

    Raises:
        TypeError: for what is not a LanguageModel of the package, and a vocabulary that is no list
            of words.
        ValueError: for another number of words than the model has tokens, words that are empty,
            contain spaces or come twice, and for a model that is too large for a page.
    """
    if not isinstance(model, LanguageModel):
        raise TypeError(f"{OWNER}: model must be a LanguageModel, but is {type(model).__name__}")
    words = listed(vocabulary)
    if isinstance(vocabulary, str) or not isinstance(words, list):
        raise TypeError(f"{OWNER}: vocabulary must be a list of words, but is {vocabulary!r:.60}")
    sizes, num_layers = model.sizes, len(model.layers)
    if len(words) != sizes["tokens"] or len(words) > MOST_TOKENS:
        raise ValueError(
            f"{OWNER}: {len(words)} words for a model of {sizes['tokens']} tokens; the figure "
            f"needs one for each, and has room for {MOST_TOKENS}"
        )
    for i, word in enumerate(words):
        if not isinstance(word, str) or not word or word.split() != [word] or word in words[:i]:
            raise ValueError(
                f"{OWNER}: the words of the vocabulary must differ and contain no spaces, but "
                f"number {i} is {word!r:.60}"
            )
    if num_layers * sizes["heads"] > MOST_HEADS:
        raise ValueError(
            f"{OWNER}: the model has {num_layers} layers of {sizes['heads']} heads; there is room "
            f"for {MOST_HEADS} heads in all"
        )
    if not isinstance(longest, int) or not 2 <= longest <= MOST_LENGTH:
        raise ValueError(f"{OWNER}: longest must be from 2 to {MOST_LENGTH}, but is {longest!r}")
    return {
        **sizes_of(model),
        "vocabulary": words,
        "longest": longest,
        **parameters.packed(OWNER, model, MOST_PARAMETERS),
    }


def unpacked(data: dict[str, Any]) -> LanguageModel:
    """The model that a page runs, in float64: a LanguageModel with the rounded parameters."""
    model = with_sizes(data, len(data["vocabulary"]))
    model.load_state_dict(parameters.unpacked(data))
    return model


def shipped() -> dict[str, Any]:
    """The trained model that comes with the package; `tools/language_model.py` made it."""
    return json.loads(text_of("language_model.json"))


def checked_heads(figure: Figure, value: Any) -> list[list[int]]:
    """The heads that are to be off, or one sentence on one that there is not."""
    heads = [listed(head) for head in value]
    known = [
        [n, head] for n in range(figure.data["layers"]) for head in range(figure.data["heads"])
    ]
    for head in heads:
        if head not in known:
            raise RefusedError(
                f"{type(figure).__name__}: off must list heads such as {tuple(known[-1])}, but has "
                f"{head!r}"
            )
    return heads


class Run(NamedTuple):
    """What a model does with a text."""

    written: list[int]  # tokens after the prompt
    logits: Tensor  # of the whole text, read once: (length, tokens)
    weights: Tensor  # of that reading: (layers, heads, queries, keys)
    chances: Tensor  # with which each token is drawn next: (tokens)
    kept: int  # how many tokens may be drawn


class _Unmasked(MultiHeadAttention):
    """An attention whose queries see all keys, also where a causal one was asked for."""

    def forward(self, *args: Any, causal: bool = False, **kwargs: Any) -> Tensor:
        return super().forward(*args, causal=False, **kwargs)


@torch.no_grad()
def run(
    model: LanguageModel,
    prompt: Sequence[int],
    *,
    num_written: int = 0,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    seed: int = 0,
    causal: bool = True,
    off: Collection[Head] = (),
) -> Run:
    """Let the model continue a prompt as `LanguageModel.generate` does, then read the whole text.

    The output of a head in `off` is 0. Without `causal` every position sees all of the text.
    """
    model = copy.deepcopy(model)
    layers: Any = model.layers
    for layer, head in off:
        W_o = layers[layer].self_attention.W_o
        size = W_o.in_features // model.sizes["heads"]
        W_o.weight[:, head * size : (head + 1) * size] = 0
    if not causal:
        for layer in layers:
            layer.self_attention.__class__ = _Unmasked
    text, written = torch.tensor([list(prompt)]), torch.empty(1, 0, dtype=torch.long)
    if num_written:
        written = model.generate(
            text,
            num_written,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            generator=torch.Generator().manual_seed(seed),
            use_cache=causal,  # a cached position does not see those after it
        )
    logits = model(torch.cat([text, written], dim=1))[0]
    weights = torch.stack([layer.self_attention.attention_weights[0] for layer in layers])
    if temperature == 0:
        chances, kept = F.one_hot(logits[-1].argmax(), logits.shape[-1]).double(), 1
    else:
        scores = (logits[-1] / temperature)[None, None]
        mask = likely_tokens(scores, top_k, top_p)
        chances, kept = masked_softmax(scores, mask=mask)[0, 0], int(mask.sum())
    return Run(written[0].tolist(), logits, weights, chances, kept)


class LanguageModelFigure(Figure):
    """Write words, and see what a trained language model expects next and where its heads look.

    `model` is a `LanguageModel` that you have trained, `vocabulary` the word of each of its tokens,
    and `longest` the length of the texts in its training; without them the figure runs the model
    that comes with the package. The parameters are rounded to 8 bits; see `parameters.packed`.
    `prompt` (words with spaces between them), `written` (how many the model adds), `temperature`,
    `top_k`, `top_p`, `seed`, `causal` and `off` (heads that are switched off, such as `(0, 2)`:
    layer, head) follow the controls and may be set. The text is what `LanguageModel.generate`
    writes with these settings and a generator of this seed. Of the package's own model the figure
    asks which head is needed most, with `asks="mask"` what the causal mask does to the loss, which
    then stands as a bar over each word, and with `asks=False` nothing.

    Raises:
        TypeError, ValueError: for a model or a vocabulary that the page cannot run, see `packed`,
            and for anything else that it should ask;
            traitlets.TraitError: for words that the vocabulary lacks, too many or none, for a head
            that there is not, and for what a slider cannot show.
    """

    kind = "language_model"
    needs = ("numbers.js", "decoder.js")
    look = "language_model.css"
    prompt = traitlets.Unicode().tag(sync=True)
    written = control(0, Count(("longest",), more=1), N_("words written"))
    temperature = control(1.0, TEMPERATURES, N_("temperature"))
    top_k = control(1, Count(("vocabulary",), first=1), N_("top-k"))
    top_p = control(1.0, SHARES, N_("top-p"))
    seed = control(0, range(10), N_("seed"))
    causal = control(True, [False, True], N_("causal mask"))
    off: Any = traitlets.List().tag(sync=True)
    phrases: ClassVar = {
        "next": N_("After “{0}” comes “{1}” with probability {2}."),
        "one off": N_("With 1 head off “{0}” has {1}, with all on {2}."),
        "off": N_("With {0} heads off “{1}” has {2}, with all on {3}."),
        "cost": N_("The words of this text cost {0} nats each on average."),
        "likeliest": N_("At temperature 0 the likeliest word is always taken."),
        "one": N_("Only this word may be drawn."),
        "some": N_("{0} of {1} words may be drawn."),
        "no heads": N_(
            "With every head off no position sees another, so what comes next depends on the last "
            "word alone."
        ),
        "unmasked": N_(
            "Without the mask the words cost {0} nats each, with it {1}: a position can see the "
            "next word."
        ),
        "full": N_("The text is full: no text in its training had more than {0} words."),
    }

    def __init__(
        self,
        model: LanguageModel | None = None,
        vocabulary: Sequence[str] | None = None,
        *,
        longest: int = 48,
        prompt: str | None = None,
        written: int = 0,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float = 1.0,
        seed: int = 0,
        causal: bool = True,
        off: Sequence[Head] = (),
        asks: bool | Literal["mask"] = True,
    ) -> None:
        if asks not in (True, False, "mask"):
            raise ValueError(f"{OWNER}: asks must be True, False or 'mask', but is {asks!r:.60}")
        if (model is None) != (vocabulary is None):
            raise TypeError(f"{OWNER}: give the model and its vocabulary together, or neither")
        if model is None:
            data = shipped()
            start = data["prompt"]
        else:
            data = packed(model, vocabulary or [], longest=longest)
            start = data["vocabulary"][0]
        self._model = unpacked(data)
        drawn = (
            "The bar above it is its loss in nats, dashed the one with the mask. From the word "
            "that you point at, threads lead to those where the heads look: one colour for each "
            "layer, the wider the more weight."
            if model is None and asks == "mask"
            else "The threads lead from the last word, or from the one that you point at, to the "
            "words where its heads look: one colour for each layer, the wider the more weight."
        )
        number = sum(part.numel() for part in self._model.parameters())
        super().__init__(
            data={**data, "asks": model is None and asks},
            prompt=start if prompt is None else prompt,
            written=written,
            temperature=temperature,
            top_k=len(data["vocabulary"]) if top_k is None else top_k,
            top_p=top_p,
            seed=seed,
            causal=causal,
            off=off,
            caption=f"A language model with {number:,} parameters runs in this page. The "
            f"stronger the orange of a word, the less the model expected it. {drawn}",
        )

    @traitlets.validate("prompt")
    def _check_prompt(self, proposal: Any) -> str:
        words = proposal["value"].split()
        for word in words:
            if word not in self.data["vocabulary"]:
                raise RefusedError(
                    f"{OWNER}: prompt must have words of the vocabulary, but has {word[:40]!r}"
                )
        if not 1 <= len(words) <= self.data["longest"]:
            raise RefusedError(
                f"{OWNER}: prompt must have 1 to {self.data['longest']} words, but has {len(words)}"
            )
        return " ".join(words)

    @traitlets.validate("off")
    def _check_off(self, proposal: Any) -> list[list[int]]:
        return checked_heads(self, proposal["value"])

    def run(self) -> Run:
        """What the model of the figure does with the prompt, under the settings."""
        vocabulary = self.data["vocabulary"]
        prompt = [vocabulary.index(word) for word in self.prompt.split()]
        return self._run(prompt, num_written=min(self.written, self.data["longest"] - len(prompt)))

    def _run(self, prompt: Sequence[int], **switches: Any) -> Run:
        settings = {
            "temperature": self.temperature,
            "top_k": self.top_k,
            "top_p": self.top_p,
            "seed": self.seed,
            "causal": self.causal,
            "off": [(layer, head) for layer, head in self.off],
        }
        return run(self._model, prompt, **{**settings, **switches})

    def _text(self, now: Run) -> list[int]:
        vocabulary = self.data["vocabulary"]
        return [*(vocabulary.index(word) for word in self.prompt.split()), *now.written]

    def describe(self) -> str:
        now = self.run()
        words = [self.data["vocabulary"][token] for token in self._text(now)]
        most = now.weights[:, :, -1].flatten().argmax().item()
        head, key = divmod(int(most), len(words))
        layer, head = divmod(head, self.data["heads"])
        return (
            f"A text of {len(words)} words, “{' '.join(words)}”. From the last word, head {head} "
            f"of layer {layer} looks at “{words[key]}” ({key}) with weight "
            f"{shown(now.weights[layer, head, -1, key].item())}. {self._tell(now)}"
        )

    def _tell(self, now: Run) -> str:
        """The sentences that the module shows: what comes next, or what the text costs."""
        vocabulary, text = self.data["vocabulary"], self._text(now)
        best = int(now.chances.argmax())
        chance = shown(now.chances[best].item(), 3)
        costs = [
            shown(F.cross_entropy(one.logits[:-1], torch.tensor(text[1:])).item())
            for one in [now, *([] if self.causal else [self._run(text, causal=True)])]
            if len(text) > 1
        ]
        if len(self.off) == self.data["layers"] * self.data["heads"]:
            sentences = [self.phrase("no heads")]
        elif costs and not self.causal:
            sentences = [self.phrase("unmasked", *costs)]
        elif costs and self.data["asks"] == "mask":
            sentences = [self.phrase("cost", *costs)]
        else:
            sentences = [self.phrase("next", vocabulary[text[-1]], vocabulary[best], chance)]
            if self.off:
                before, num_off = self._run(text, off=()).chances, len(self.off)
                was = int(before.argmax())
                chances = [shown(each[was].item(), 3) for each in (now.chances, before)]
                name, number = ("off", [num_off]) if num_off > 1 else ("one off", [])
                sentences.append(self.phrase(name, *number, vocabulary[was], *chances))
            elif costs:
                sentences.append(self.phrase("cost", *costs))
        if self.temperature == 0:
            sentences.append(self.phrase("likeliest"))
        elif now.kept == 1:
            sentences.append(self.phrase("one"))
        elif now.kept < len(vocabulary):
            sentences.append(self.phrase("some", now.kept, len(vocabulary)))
        if len(text) == self.data["longest"]:
            sentences.append(self.phrase("full", len(text)))
        return " ".join(sentences)

    def picture(self) -> Canvas:
        now = self.run()
        vocabulary, text = self.data["vocabulary"], self._text(now)
        canvas, [left, right] = canvas_of(1, 2, (9.6, 3.3))
        best = now.chances.round(decimals=3).argsort(descending=True, stable=True)[:10]
        names = [vocabulary[i] for i in best.tolist()]
        left.barh(names[::-1], now.chances[best].round(decimals=3).tolist()[::-1])
        left.set(title=say("next word"), xlabel=say("probability"), xlim=(0, 1))
        losses = F.cross_entropy(now.logits[:-1], torch.tensor(text[1:]), reduction="none")
        places = range(1, len(text))
        right.bar(places, losses.round(decimals=3).tolist())
        right.set_xticks(range(len(text)), [vocabulary[i] for i in text], rotation=90)
        right.set(title=say("loss of each word"), ylabel=say("nats"))
        return canvas
