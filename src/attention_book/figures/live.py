"""Chapter 9 and the start page: a trained Transformer that runs in the page, on any short word."""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
import traitlets
from matplotlib.figure import Figure as Canvas
from torch import Tensor, nn

from attention_book.data import END, LETTERS, START
from attention_book.figures import parameters
from attention_book.figures.base import (
    Figure,
    RefusedError,
    canvas_of,
    control,
    listed,
    shown,
    text_of,
)
from attention_book.language import N_, say
from attention_book.plots import draw_weights
from attention_book.transformer import Transformer

#: The longest word that has room in the figure, and how many more tokens the model may write.
MOST_LETTERS, MARGIN = 12, 2
MOST_PARAMETERS, MOST_HEADS = 100_000, 8

#: One head: its use of attention ("encoder", "decoder" or "cross"), its layer and its number.
Head = tuple[str, int, int]


def packed(model: Transformer, *, shortest: int = 3, longest: int = 6) -> dict[str, Any]:
    """The model as the page takes it: `parameters.packed` and what its sizes do not say.

    Args:
        shortest, longest: number of letters of the words in its training.

    Raises:
        TypeError: for what is not a Transformer of the package.
        ValueError: for one of another number of tokens, of more than 100,000 parameters or more
            than 8 heads in all its layers, and with parameters that are NaN or infinite.
    """
    if not isinstance(model, Transformer):
        raise TypeError(
            f"LiveTransformer: model must be a Transformer, but is {type(model).__name__}"
        )
    if model.sizes["tokens"] != len(LETTERS) + 2:
        raise ValueError(
            f"LiveTransformer: the model has {model.sizes['tokens']} tokens; the figure needs "
            f"{len(LETTERS) + 2}: the letters a to z, the start and the end"
        )
    num_heads = model.sizes["heads"]
    if num_heads * len(model.encoder) > MOST_HEADS:
        raise ValueError(
            f"LiveTransformer: the model has {len(model.encoder)} layers of {num_heads} heads; "
            f"there is room for {MOST_HEADS} heads in all"
        )
    return {
        "d_model": model.sizes["d_model"],
        "heads": num_heads,
        "layers": len(model.encoder),
        "letters": LETTERS,
        "shortest": shortest,
        "longest": longest,
        **parameters.packed("LiveTransformer", model, MOST_PARAMETERS),
    }


def unpacked(data: dict[str, Any]) -> Transformer:
    """The model that a page runs, in float64: a Transformer with the rounded parameters."""
    tensors = parameters.unpacked(data)
    hidden = len(tensors["encoder.0.feed_forward.W_1.bias"])
    model = Transformer(
        len(data["letters"]) + 2, data["d_model"], data["heads"], hidden, data["layers"]
    )
    model.double().load_state_dict(tensors)
    return model.eval()


def shipped() -> dict[str, Any]:
    """The trained model that comes with the package; `tools/live.py` made it."""
    return json.loads(text_of("live.json"))


class Run(NamedTuple):
    """What a model does with one word."""

    written: list[int]  # tokens, the end included where the model wrote it
    says: list[int]  # the token named at each position when what is shown is read in one pass
    maps: dict[Head, Tensor]  # of that pass; weights (queries, keys)


class _WithoutPositions(Transformer):
    """A Transformer whose embeddings say nothing about the order."""

    def _embed(self, tokens: Tensor, embedding: nn.Embedding, offset: int = 0) -> Tensor:
        return embedding(tokens)


@torch.no_grad()
def run(
    model: Transformer,
    word: str,
    *,
    num_shown: int = MOST_LETTERS + MARGIN,
    positions: bool = True,
    causal: bool = True,
    off: Collection[Head] = (),
) -> Run:
    """Let the model write for `word`, then read the first `num_shown` tokens in one pass.

    Without `positions` nothing is added to the embeddings; the output of a head in `off` is 0.
    Without `causal` each position of that one pass may attend to all. The writing uses a key–value
    cache and is causal either way: when a token is chosen, no later one exists.
    """
    model = copy.deepcopy(model)
    if not positions:
        model.__class__ = _WithoutPositions
    encoder: Any = model.encoder
    decoder: Any = model.decoder
    attentions = {
        "encoder": [layer.self_attention for layer in encoder],
        "decoder": [layer.self_attention for layer in decoder],
        "cross": [layer.cross_attention for layer in decoder],
    }
    for use, layer, head in off:
        W_o = attentions[use][layer].W_o
        size = W_o.in_features // model.sizes["heads"]
        W_o.weight[:, head * size : (head + 1) * size] = 0

    sources = torch.tensor([[LETTERS.index(letter) for letter in word]])
    written = model.greedy_decode(sources, start=START, num_steps=len(word) + MARGIN)[0].tolist()
    if END in written:
        written = written[: written.index(END) + 1]
    read = [START, *written[:-1]][: max(num_shown, 1)]
    logits = model(sources, torch.tensor([read]), causal=causal)
    maps = {
        (use, layer, head): weights
        for use, layers in attentions.items()
        for layer, attention in enumerate(layers)
        for head, weights in enumerate(attention.attention_weights[0])
    }
    return Run(written, logits[0].argmax(dim=-1).tolist(), maps)


class LiveTransformer(Figure):
    """Type a word, and see a trained Transformer write it backwards with all its attention maps.

    `model` is a Transformer that you have trained on words of `shortest` to `longest` letters, with
    the tokens of `words_to_reverse`; without it the figure runs the one that comes with the
    package. The parameters are rounded to 8 bits; see `packed`. `word`, `written` (how many tokens
    are shown), `positions`, `causal` and `off` (heads that are switched off, such as
    `("cross", 0, 1)`: use, layer, head) follow the controls and may be set. With `asks=False` the
    figure opens without its question.

    Raises:
        TypeError, ValueError: for a model that the page cannot run; traitlets.TraitError: for a
            word of other signs than a to z or of more than 12, and for a head that there is not.
    """

    kind = "live"
    needs = ("numbers.js", "network.js")
    word = traitlets.Unicode().tag(sync=True)
    written = control(MOST_LETTERS + MARGIN, range(MOST_LETTERS + MARGIN + 1), N_("tokens written"))
    positions = control(True, [False, True], N_("positions"))
    causal = control(True, [False, True], N_("causal mask"))
    off: Any = traitlets.List().tag(sync=True)
    phrases: ClassVar = {
        "read": N_("The encoder has read “{0}”. Nothing is written yet."),
        "some": N_("{0} of {1} tokens are written."),
        "looked": N_("For “{0}”, token {1} of {2}, the model looked most at “{3}” ({4})."),
        "right": N_("The model reads “{0}” and writes “{1}”: right."),
        "wrong": N_("The model reads “{0}” and writes “{1}” instead of “{2}”."),
        "endless": N_("The model reads “{0}” and writes “{1}”, without an end token."),
        "wrong and endless": N_(
            "The model reads “{0}” and writes “{1}” instead of “{2}”, without an end token."
        ),
        "empty": N_("The model reads “{0}” and writes nothing instead of “{1}”."),
        "one off": N_("One head is off."),
        "some off": N_("{0} heads are off."),
        "no positions": N_(
            "Without positions it writes the same for every order of its letters (chapter 8)."
        ),
        "as reversed": N_(
            "Without positions “{0}” gives “{1}” too, like every order of its letters (chapter 8)."
        ),
        "long": N_("No word in its training had more than {0} letters."),
        "short": N_("No word in its training had fewer than {0} letters."),
        "unmasked": N_("Writing needs no mask, because no later token exists yet."),
        "in one pass": N_(
            "But when the decoder reads all its tokens again in one pass, as in training, each "
            "position sees those after it, and {0} of {1} predict another token (the small ones)."
        ),
    }

    def __init__(
        self,
        model: Transformer | None = None,
        *,
        shortest: int = 3,
        longest: int = 6,
        word: str = "live",
        written: int = MOST_LETTERS + MARGIN,
        positions: bool = True,
        causal: bool = True,
        off: Sequence[Head] = (),
        asks: bool = True,
    ) -> None:
        data = shipped() if model is None else packed(model, shortest=shortest, longest=longest)
        self._model = unpacked(data)
        number = sum(part.numel() for part in self._model.parameters())
        super().__init__(
            data={**data, "asks": asks},
            word=word,
            written=written,
            positions=positions,
            causal=causal,
            off=off,
            caption=f"A Transformer with {number:,} parameters runs in this page. It was trained "
            f"to write words of {data['shortest']} to {data['longest']} random letters backwards. "
            "The threads lead from what it writes to the letters that it looks at, and nobody told "
            "it where to look. They are the weights of its cross-attention. In the maps rows are "
            "queries, columns are keys, and ▷ is the start.",
        )

    @traitlets.validate("word")
    def _check_word(self, proposal: Any) -> str:
        word = proposal["value"]
        if not 1 <= len(word) <= MOST_LETTERS or not set(word) <= set(LETTERS):
            raise RefusedError(
                f"LiveTransformer: word must be 1 to {MOST_LETTERS} of the letters a to z, but is "
                f"{word[:40]!r}"
            )
        return word

    @traitlets.validate("off")
    def _check_off(self, proposal: Any) -> list[list[Any]]:
        heads = [listed(head) for head in proposal["value"]]
        uses, layers = ("encoder", "decoder", "cross"), range(self.data["layers"])
        known = [
            [use, n, head] for use in uses for n in layers for head in range(self.data["heads"])
        ]
        for head in heads:
            if head not in known:
                raise RefusedError(
                    f"LiveTransformer: off must list heads such as {tuple(known[0])}, but has "
                    f"{head!r}"
                )
        return heads

    def run(self) -> Run:
        """What the model of the figure does with the word, under the switches."""
        return run(
            self._model,
            self.word,
            num_shown=self.written,
            positions=self.positions,
            causal=self.causal,
            off=[(use, layer, head) for use, layer, head in self.off],
        )

    def describe(self) -> str:
        now = self.run()
        row = now.maps["cross", self.data["layers"] - 1, 0][0]
        most = int(row.argmax())
        return (
            f"Attention maps of a Transformer. For its first token, head 0 of the cross-attention "
            f"looks most at {self.word[most]} ({most}), with weight {shown(row[most].item())}. "
            f"{self._tell(now)}"
        )

    def _looks(self, now: Run, position: int) -> Tensor | None:
        """The mean weights with which a token was written, of the heads of the last
        cross-attention that are on; None where the maps are those of a pass without the mask."""
        last = self.data["layers"] - 1
        on = [n for n in range(self.data["heads"]) if ["cross", last, n] not in self.off]
        rows = [now.maps["cross", last, head][position] for head in on]
        return torch.stack(rows).mean(dim=0) if rows and self.causal else None

    def _tell(self, now: Run) -> str:
        """The sentences that the module shows: what the model does with the word, and why."""
        word, total = self.word, len(now.written)
        number = min(self.written, total)
        ended = now.written[-1] == END
        spelled = [*LETTERS, "start", "end"]
        text = "".join(spelled[token] for token in (now.written[:-1] if ended else now.written))
        if not number:
            return self.phrase("read", word)
        wanted, is_whole = word[::-1], number == total
        if not is_whole:
            looks = self._looks(now, number - 1)
            name = spelled[now.written[number - 1]]
            if looks is None:
                sentences = [self.phrase("some", number, total)]
            else:
                most = int(looks.argmax())
                ends = word[most], shown(looks[most].item())
                sentences = [self.phrase("looked", name, number, total, *ends)]
        elif ended and text == wanted:
            sentences = [self.phrase("right", word, text)]
        elif ended and not text:
            sentences = [self.phrase("empty", word, wanted)]
        elif ended:
            sentences = [self.phrase("wrong", word, text, wanted)]
        elif text == wanted:
            sentences = [self.phrase("endless", word, text)]
        else:
            sentences = [self.phrase("wrong and endless", word, text, wanted)]
        if self.off:
            one = len(self.off) == 1
            sentences.append(self.phrase("one off" if one else "some off", len(self.off)))
        if is_whole and not self.positions:
            other = self.phrase("as reversed", wanted, text)
            is_named = text and word != wanted
            sentences.append(other if is_named else self.phrase("no positions"))
        if is_whole and len(word) > self.data["longest"]:
            sentences.append(self.phrase("long", self.data["longest"]))
        if is_whole and len(word) < self.data["shortest"]:
            sentences.append(self.phrase("short", self.data["shortest"]))
        if not self.causal:
            pairs = zip(now.says, now.written, strict=False)
            others = sum(named != token for named, token in pairs)
            sentences += [self.phrase("unmasked"), self.phrase("in one pass", others, number)]
        return " ".join(sentences)

    def picture(self) -> Canvas:
        now = self.run()
        signs = [*LETTERS, "▷", "□"]
        source, target = list(self.word), [signs[token] for token in [START, *now.written]]
        heads, last = range(self.data["heads"]), self.data["layers"] - 1
        canvas, axes = canvas_of(len(heads), 3, (9.6, 3.3 * len(heads)))
        for row, head in enumerate(heads):
            for column, use in enumerate((N_("encoder"), N_("decoder"), N_("cross"))):
                weights = now.maps[use, last, head].round(decimals=3)
                num_queries, num_keys = weights.shape
                is_off = [use, last, head] in self.off
                off = say(" (off)") if is_off else ""
                draw_weights(
                    weights,
                    ax=axes[3 * row + column],
                    queries=(source if use == "encoder" else target)[:num_queries],
                    keys=(target if use == "decoder" else source)[:num_keys],
                    title=say("{0}, head {1}", say(use), head) + off,
                )
        return canvas
