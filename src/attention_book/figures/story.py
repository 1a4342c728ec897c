"""Chapter 12: a published language model continues the reader's story in the page."""

from __future__ import annotations

import json
import re
import struct
import textwrap
from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar

import numpy as np
import traitlets
from matplotlib.figure import Figure as Canvas

from attention_book.data import STORIES_FOLDER, stories
from attention_book.figures import parameters
from attention_book.figures.base import (
    Figure,
    RefusedError,
    canvas_of,
    control,
    listed,
    rounded,
    shown,
)
from attention_book.figures.language_model import (
    Head,
    Run,
    checked_heads,
    run,
    sizes_of,
    with_sizes,
)
from attention_book.language import N_, say
from attention_book.language_model import LanguageModel
from attention_book.pretrained import our_name
from attention_book.tokenizer import BEGIN, FIRST_BYTE, FIRST_PIECE, Tokenizer

OWNER = "StoryFigure"
MOST_PARAMETERS, MOST_HEADS, MOST_TOKENS = 500_000, 64, 4096
#: The model was trained on texts of so many tokens.
LONGEST = 512
SHOWN = 6  # of the pieces that may come next
LOADED = " (0.5 MB on your first tap)"
#: The file that a page loads when the reader begins, without its ending.
FILE = "stories260k"
#: How stories may begin: the first opens the figure. Without head 4 of layer 4 it loses its name,
#: and without any other it keeps it.
BEGINNINGS = {
    N_("a child, Max"): "Once upon a time, there was a little child named Max. The child liked to "
    "play in the park. One day,",
    N_("Lily and Ben"): "Lily and Ben went to the park. They saw a big",
    N_("Tim’s ball"): "Tim had a big red ball. He",
    N_("no words"): "",
}
#: What separates words in the sentence of the figure, in Python as in the page.
WHITE = re.compile(r"[ \t\r\n]+")
#: A run of a story: what the reader wrote, or the tokens that the model wrote.
Part = str | list[int]


def spelled(tokenizer: Tokenizer) -> dict[str, Any]:
    """What the page's tokenizer is made from."""
    pieces = sorted(tokenizer.vocab, key=lambda piece: tokenizer.vocab[piece])[FIRST_PIECE:]
    return {"pieces": pieces, "merges": [*map(list, tokenizer.ranks)]}


def stories_file() -> str:
    """The script with the parameters of stories260K in 16 bits and its tokens; a page loads it
    when the reader begins. Written without PyTorch, which a build of the book does without."""
    stored = (STORIES_FOLDER / "model.safetensors").read_bytes()
    [size] = struct.unpack("<Q", stored[:8])
    numbers = stored[8 + size :]
    tensors = {
        our_name(name): np.frombuffer(numbers[slice(*about["data_offsets"])], "<f4").reshape(
            about["shape"]
        )
        for name, about in json.loads(stored[8 : 8 + size]).items()
        if name != "__metadata__"
    }
    tokens = json.loads((STORIES_FOLDER / "tokenizer.json").read_text(encoding="utf-8"))
    model = parameters.halves(OWNER, tensors, MOST_PARAMETERS) | spelled(Tokenizer(tokens["model"]))
    text = json.dumps(model, separators=(",", ":"), ensure_ascii=False)
    return f"attentionFigures.files.{FILE} = {text};\n"


@cache
def published() -> tuple[LanguageModel, Tokenizer]:
    """The model that comes with the package, rounded as a page rounds it, and its tokenizer."""
    folder, encode, _ = stories()
    tokenizer: Any = getattr(encode, "__self__")  # noqa: B009, a method
    return in_halves(LanguageModel.from_pretrained(folder)), tokenizer


def in_halves(model: LanguageModel) -> LanguageModel:
    """The model with its parameters rounded to 16 bits, in float64."""
    made = with_sizes(sizes_of(model), model.sizes["tokens"])
    made.load_state_dict({name: part.half() for name, part in model.state_dict().items()})
    return made


def checked_model(model: Any, encode: Any) -> Tokenizer:
    """The tokenizer to which an encoder belongs, where a page can run the model with it.

    Raises:
        TypeError: for what is not a LanguageModel, or not a `Tokenizer` of the package or its
            `encode`.
        ValueError: for a model with another number of tokens than the encoder, and for one that is
            too large for the page.
    """
    if not isinstance(model, LanguageModel):
        raise TypeError(f"{OWNER}: model must be a LanguageModel, but is {type(model).__name__}")
    tokenizer = getattr(encode, "__self__", encode)
    if not isinstance(tokenizer, Tokenizer):
        raise TypeError(
            f"{OWNER}: encode must be a Tokenizer of the package or its method encode, but is "
            f"{type(encode).__name__}"
        )
    sizes, known = model.sizes, len(tokenizer.vocab)
    if sizes["tokens"] != known or known > MOST_TOKENS:
        raise ValueError(
            f"{OWNER}: the encoder has {known} tokens and the model {sizes['tokens']}; the figure "
            f"needs one for each, and has room for {MOST_TOKENS}"
        )
    heads = len(model.layers) * sizes["heads"]
    if heads > MOST_HEADS:
        raise ValueError(
            f"{OWNER}: the model has {heads} heads in all; there is room for {MOST_HEADS}"
        )
    return tokenizer


class StoryFigure(Figure):
    """Begin a story, let a published model continue it piece by piece, and watch its heads.

    The parameters, rounded to 16 bits, come to a page when the reader begins. `model` is a
    `LanguageModel` of your own and `encode` the `Tokenizer` of its tokens, or that one's method
    `encode`; without them the figure runs stories260K, which comes with the package.

    `story` is how it begins, or a list of runs in turn: what the reader wrote, a string, and what
    the model wrote, a list of tokens. `temperature`, `top_p` and `off` (heads that are switched
    off, such as `(4, 4)`: layer, head) follow the controls and may be set. A `small` figure shows
    the story and the next pieces alone. With `asks=False` it opens without its question, which it
    asks of the package's own model alone.

    Raises:
        TypeError, ValueError: for a model or an encoder that the page cannot run, see
            `checked_model`; traitlets.TraitError: for a story that is none or too long, for a head
            that there is not, and for what a control cannot show.
    """

    kind = "story"
    needs = ("numbers.js", "decoder.js", "tokens.js")
    look = "story.css"
    story: Any = traitlets.TraitType([""]).tag(sync=True)
    temperature = control(1.0, [0.0, 1.0, 1.5], N_("temperature"))
    top_p = control(1.0, [0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0], N_("top-p"))
    off: Any = traitlets.List().tag(sync=True)
    phrases: ClassVar = {
        "next": N_("After “{0}” the likeliest piece is “{1}”, with probability {2}."),
        "first": N_("A story begins most likely with “{0}”, with probability {1}."),
        "whole": N_("With all heads: “{0}”, {1}."),
        "some": N_("{0} of {1} pieces may be drawn."),
        "sure": N_("The likeliest piece is always taken."),
        "full": N_("The story is full: the model reads at most {0} pieces."),
    }

    def __init__(
        self,
        model: LanguageModel | None = None,
        encode: Any = None,
        *,
        story: str | Sequence[Part] | None = None,
        temperature: float = 1.0,
        top_p: float = 1.0,
        off: Sequence[Head] = (),
        small: bool = False,
        asks: bool = True,
    ) -> None:
        if (model is None) != (encode is None):
            raise TypeError(f"{OWNER}: give the model and its encoder together, or neither")
        own = model is not None
        if model is not None:
            self._tokens = checked_model(model, encode)
            self._model = in_halves(model)
        else:
            self._model, self._tokens = published()
        beginnings = {"": ""} if own else BEGINNINGS
        if story is None:
            story = "" if own else next(iter(BEGINNINGS.values()))
        number = sum(part.numel() for part in self._model.parameters())
        super().__init__(
            data={
                **sizes_of(self._model),
                "longest": LONGEST,
                "tokens": len(self._tokens.vocab),
                "asks": asks and not own and not small,
                "small": small,
                "file": None if own else FILE,
                "model": self._packed() if own else None,
                "beginnings": [*beginnings.items()],
            },
            story=story,
            temperature=temperature,
            top_p=top_p,
            off=off,
            caption=f"{number:,} parameters run here{'' if own else LOADED}. Your text stays here. "
            "␣ is a space.",
        )
        self.data = {**self.data, "opening": self._opening()}
        self.on_msg(self._hand_over)

    def _packed(self) -> dict[str, Any]:
        """Model and tokenizer as a page takes them."""
        tensors = {name: part.numpy() for name, part in self._model.state_dict().items()}
        return parameters.halves(OWNER, tensors, MOST_PARAMETERS) | spelled(self._tokens)

    def _opening(self) -> dict[str, Any]:
        """What a page shows before the model is there, at the end of the story."""
        now, tokens = self.run(), self.tokens()
        named = {*tokens, *now.logits[-1].topk(SHOWN).indices.tolist()}
        opening = {
            "tokens": tokens,
            "runs": [part if isinstance(part, str) else self._text(part) for part in self.story],
            "logits": rounded(now.logits[-1], 3),
            "names": {token: self._name(token) for token in sorted(named)},
        }
        looks = rounded(now.weights[:, :, -1], 3)
        return opening if self.data["small"] else {**opening, "looks": looks}

    def _hand_over(self, _: Any, content: Any, __: Any = None) -> None:
        """Give the parameters to a page with a kernel, which has no file to load them from."""
        if content == "begin":
            self.send({"model": self._packed()})

    @traitlets.validate("story")
    def _check_story(self, proposal: Any) -> list[Part]:
        value = proposal["value"]
        runs = [value] if isinstance(value, str) else listed(value)
        number = self.data["tokens"]

        def is_run(i: int, run: Any) -> bool:
            if i % 2:
                return isinstance(run, list) and all(
                    type(token) is int and 0 <= token < number for token in run
                )
            # Half of a surrogate pair is in no text.
            return isinstance(run, str) and run.encode(errors="replace").decode() == run

        if not isinstance(runs, list) or not runs or not all(map(is_run, range(len(runs)), runs)):
            raise RefusedError(
                f"{OWNER}: story must be a text, or in turn texts and lists of tokens from 0 to "
                f"{number - 1}, but is {value!r:.60}"
            )
        length = len(self.tokens(runs))
        if length > LONGEST:
            raise RefusedError(
                f"{OWNER}: story must have at most {LONGEST} tokens, but has {length}"
            )
        return runs

    @traitlets.validate("off")
    def _check_off(self, proposal: Any) -> list[list[int]]:
        return checked_heads(self, proposal["value"])

    def tokens(self, story: Sequence[Part] | None = None) -> list[int]:
        """The tokens of a story or, without one, of the figure's."""
        found = [BEGIN]
        for i, part in enumerate(self.story if story is None else story):
            if isinstance(part, str):
                found += self._tokens.encode(part, begin=False, space=i == 0)
            else:
                found += part
        return found

    def run(self, off: Sequence[Any] | None = None) -> Run:
        """What the model makes of the story, under the settings."""
        return run(
            self._model,
            self.tokens(),
            temperature=self.temperature,
            top_p=self.top_p,
            off=[(layer, head) for layer, head in (self.off if off is None else off)],
        )

    def describe(self) -> str:
        text = " ".join(self._tokens.decode(self.tokens()).split())
        if len(text) > 100:
            text = "… " + text[-100:].split(" ", 1)[-1]
        return f"A story: “{text}”. {self._tell(self.run())}"

    def _tell(self, now: Run) -> str:
        """The sentences that the module shows: which piece comes next, and from how many."""

        def best(of: Run) -> tuple[str, str]:
            token = int(of.chances.argmax())
            return self._name(token), shown(of.chances[token].item())

        words = [word for word in WHITE.split(self._tokens.decode(self.tokens())) if word]
        told = [
            self.phrase("next", " ".join(words[-3:])[-40:], *best(now))
            if words
            else self.phrase("first", *best(now))
        ]
        if self.off:
            told.append(self.phrase("whole", *best(self.run([]))))
        if self.temperature == 0:
            told.append(self.phrase("sure"))
        elif now.kept < self.data["tokens"]:
            told.append(self.phrase("some", now.kept, self.data["tokens"]))
        if len(self.tokens()) == LONGEST:
            told.append(self.phrase("full", LONGEST))
        return " ".join(told)

    def _text(self, tokens: Sequence[int]) -> str:
        """The text of tokens with all its spaces."""
        return self._tokens.decode([FIRST_BYTE + ord(" "), *tokens])

    def _name(self, token: int) -> str:
        """A token as a reader sees it."""
        if token < FIRST_BYTE:
            return "■"
        byte = token - FIRST_BYTE
        if token < FIRST_PIECE and byte != ord("\n") and not 32 <= byte <= 126:
            return f"<0x{byte:02X}>"
        return self._text([token]).replace(" ", "␣").replace("\n", "↵")

    def picture(self) -> Canvas:
        now, whole = self.run(), self.run([])
        canvas, [left, right] = canvas_of(1, 2, (9.6, 2.9))
        text = self._tokens.decode(self.tokens())[-400:]
        drawn = "".join(sign if sign < "\u2500" else "□" for sign in text)  # what the font has
        left.text(0, 1, textwrap.fill(drawn, 44), va="top", family="serif", size=13)
        left.set_axis_off()
        best = now.chances.round(decimals=3).argsort(descending=True, stable=True)[:SHOWN].tolist()
        places = range(len(best), 0, -1)
        right.barh(places, now.chances[best].round(decimals=3).tolist())
        if self.off:
            before = whole.chances[best].round(decimals=3).tolist()
            right.barh(places, before, facecolor="none", edgecolor="black")
        right.set_yticks(places, [self._name(token) for token in best])
        right.set(title=say("next piece"), xlabel=say("probability"), xlim=(0, 1))
        return canvas
