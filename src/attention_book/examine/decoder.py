"""Decoder: tokens in, logits out. No reference knows the model, so it is held against laws.

Change one token and look which logits change; decode with the cache and compare with the model
without; edit the model's own table of positions, and compare again to name the cache's mistake.
"""

from __future__ import annotations

import contextlib
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from attention_book.examine import laws
from attention_book.examine.caches import ROTATES, Decoding
from attention_book.examine.subject import Refused, source_of


class DecoderExamination(Decoding):
    """A language model, held against laws."""

    def run(self) -> None:
        tables = [m.num_embeddings for m in self.subject.parts if isinstance(m, nn.Embedding)]
        self.vocabulary = min(*[n for n in tables if n > 4] or [5], 50)
        self.read()
        self.said = self.told_reading()
        try:
            if self.determined() and self.examples_apart() and self.order():
                self.cached()
                self.left_padding()
        except Refused as error:
            self.unexamined.append(f"what comes after: {error}")
        self.beside()

    def read(self) -> None:
        """Find a call that gives logits."""
        self.turned = self.layout == "lbd"
        names = [name for name in self.subject.required[1:] if name != "*"]
        must: dict[Any, Any] = {name: 0 if name == self.start else None for name in names}
        for dtype, length in product((torch.float64, torch.float32), (9, 6, 4)):
            self.subject.dtype, self.near = dtype, 1e-7 if dtype == torch.float64 else 1e-4
            places = [{**must, self.start: torch.arange(length)}] if self.start in must else []
            for self.fixed in (must, *places):
                if self.tried(self.drawn_tokens(2, length)) is not None:
                    self.length = length
                    return
        raise self.subject.uncalled("decoder")

    def told_reading(self) -> str:
        names = self.subject.names or ["tokens"]
        axes = "(length, batch)" if self.turned else "(batch, length)"
        return f"{names[0]} as {axes}"

    def determined(self) -> bool:
        tokens, thing = self.drawn_tokens(2, self.length), self.subject.fresh()
        name = laws.draws(self.subject, lambda: self.logits(tokens))
        if name is None:
            self.logits(self.drawn_tokens(2, self.length, 1), thing)
            again = self.tried(tokens, thing)
            if again is not None and self.same(self.logits(tokens), again):
                return True
        if name != "dropout-in-eval":
            held = self.cache or self.start
            name = "cache-keeps-across-calls" if held else "remembers-last-call"
        self.tell(name, tokens)
        self.unexamined.append("everything that needs two equal calls")
        return False

    def influence(self) -> tuple[Tensor, bool]:
        """Which logits (of example 0) each of its tokens changes; and whether others' change."""
        tokens = self.drawn_tokens(2, self.length)
        before, rows, mixed = self.logits(tokens), [], False
        for j in range(self.length):
            after = self.logits(self.other(tokens, j))
            changed = self.changes(before, after)
            rows.append(changed[0])
            mixed = mixed or bool(changed[1:].any())
        return torch.stack(rows, dim=1), mixed

    def examples_apart(self) -> bool:
        self.seen, mixed = self.influence()
        if not mixed:
            return True
        tokens = self.drawn_tokens(2, self.length)
        if self.layout is None:
            self.turned = True
            with contextlib.suppress(Refused):
                seen, still = self.influence()
                if not still:
                    self.seen, self.said = seen, self.told_reading()
                    return True
            self.turned = False
        past = bool(self.seen.tril(-1).any())
        name = "examples-mixed" if past else "batch-and-length-mixed"
        a, b = self.logits(tokens), self.logits(self.other(tokens, 0))
        self.tell(name, tokens, a[1:], b[1:])
        return False

    def order(self) -> bool:
        """Whether each output depends on what came before, and on nothing that comes after."""
        future, past = self.seen.triu(1), self.seen.tril(-1)
        if past.any() and not future.any():
            self.places()
            return True
        name, place, row = "future-seen", self.length - 1 if future[:, -1].any() else 1, 0
        if not future.any():
            name, place, row = "past-ignored", 0, -1
        elif not past.any():
            name = "causal-transposed"
        elif future.diagonal(1).all() and not future[0, -1]:
            name = "causal-one-too-generous"
        tokens = self.drawn_tokens(2, self.length)[:1]
        a, b = self.logits(tokens), self.logits(self.other(tokens, place))
        self.tell(name, tokens, a[:, row], b[:, row])
        self.unexamined.append("the cache")
        return False

    def places(self) -> None:
        """Whether the order of the earlier tokens matters."""
        tokens = self.drawn_tokens(1, self.length)
        tokens[0, :2] = torch.tensor([0, 1])
        swapped = torch.cat([tokens[:, :2].flip(1), tokens[:, 2:]], dim=1)
        a, b = self.logits(tokens)[:, -1:], self.logits(swapped)[:, -1:]
        rows = self.logits(torch.zeros_like(tokens))  # of equal tokens
        words = self.subject.code
        for part in self.subject.parts:
            words += " ".join([type(part).__name__, *dict(part.named_buffers())]).lower()
            if not type(part).__module__.startswith("torch."):
                words += source_of(type(part)).lower()
        alike = self.same(rows[:, :-1], rows[:, 1:]) and not ROTATES.search(words)
        if self.same(a, b) or alike:
            self.tell("positions-missing", tokens, a, b)

    def left_padding(self) -> None:
        """Whether padding on the left, with its mask, changes the answer."""
        if self.padding is None:
            return
        whole = self.drawn_tokens(1, self.length)
        alone, full = self.logits(whole[:, 2:]), self.logits(whole)
        hidden = torch.zeros(2, 1, self.length, dtype=torch.bool)
        hidden[1, :, :2] = True
        meant = {"allowed": ~hidden, "blocked": hidden, "added": hidden.double() * -1e9}
        ways = product(("allowed", "blocked"), (torch.long, torch.bool, torch.float64))
        answers = []
        for meaning, kind in (*ways, ("added", torch.float64)):
            if self.mask not in (None, meaning):
                continue
            none, two = meant[meaning].to(kind)
            with contextlib.suppress(Refused):
                nothing = self.call(whole, **{self.padding: none})[0]
                got = self.call(whole, **{self.padding: two})[0]
                changed = not self.same(got[:, 2:], full[:, 2:])
                if self.same(nothing, full) and (changed or "mask" in self.padding):
                    answers.append(got[:, 2:])
        if not answers:
            self.unexamined.append(f"the argument {self.padding}")
        elif not any(self.same(got, alone) for got in answers):
            name = "left-padding-changes-answer"
            if self.subject.installed:
                self.note(name)
            else:
                self.tell(name, whole, alone, answers[0], f"with {self.padding} for the first two")

    def beside(self) -> None:
        """What a call does besides giving logits."""
        tokens = self.drawn_tokens(2, self.length)
        if self.subject.written or self.subject.unsettles:
            name = "writes-to-input" if self.subject.written else "global-state-changed"
            self.tell(name, tokens)
            return
        alone = self.tried(tokens[:1])
        if "cache-keeps-across-calls" in {f.name for f in self.findings}:
            return  # it may hold a cache of another batch
        if alone is None or not (self.findings or self.same(alone, self.logits(tokens)[:1])):
            self.tell("batch-of-one", tokens[:1])
