"""Decoder: tokens in, logits out. No reference knows the model, so it is held against laws.

Change one token and look which logits change; decode with the cache and compare with the model
without; edit the model's own table of positions, and compare again to name the cache's mistake.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, product
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attention_book.examine.bench import Bench
from attention_book.examine.reading import declared_layout
from attention_book.examine.report import CannotExamine, Note, sentence
from attention_book.examine.subject import Refused, Subject, as_tensor

CACHE = re.compile(r"cache|past|^kvs?$|key_value|^state|^mem|history")
FLAG = re.compile(
    r"^(use|return|output|with|enable)_?.*(cache|kv|past|present)|^(incremental|decode)"
)
START = re.compile(r"start|offset|^pos(ition)?(_?id)?s?$|cur_|input_pos|cache_position|^step$")
TARGETS = re.compile(r"^(targets?|labels?|y)$")
PADDING = re.compile(r"mask|pad")
ROTATES = re.compile(r"rotary|rotat|rope|alibi|inv_freq|freqs|relative|slope")
MADE = re.compile(r"(new|make|init|empty|create|build|setup|alloc\w*)_?\w*(cache|kv|state)")
CLEARED = re.compile(r"(reset|clear|empty|flush|init|start)\w*(cache|kv|state|memory)?$")


@dataclass
class Cache:
    """A way to decode piece by piece."""

    said: str
    parameter: str | None = None  # what a cache is given by
    first: Any = None  # what makes the first cache
    flag: str | None = None
    start: str | None = None  # the parameter of the first position
    indices: bool = False  # which takes all positions, not the first


class Counting(TorchFunctionMode):
    """Finds the lines that count 0, 1 … length - 1, and lets one of them count otherwise."""

    def __init__(self, length: int, line: Any = None, places: Tensor | None = None) -> None:
        super().__init__()
        self.length, self.line, self.places = length, line, places
        self.lines: list[Any] = []

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if func is not torch.arange or result.shape != (self.length,) or result[0] != 0:
            return result
        frame = sys._getframe(1)
        line = (frame.f_code, frame.f_lineno)
        if line not in self.lines:
            self.lines.append(line)
        if self.places is not None and line == self.line:
            return self.places.to(result.dtype)
        return result


class DecoderExamination(Bench):
    """A language model."""

    kind = "decoder"
    roles = ()

    def __init__(
        self,
        subject: Subject,
        mask: str | None,
        layout: str | None,
        seed: int,
        heads: int | None = None,
    ) -> None:
        super().__init__(subject, mask, layout, seed)
        self.turned = False  # tokens as (length, batch)
        self.how: list[str] = []
        self.fixed: dict[str, Any] = {}
        names = subject.names[1:]
        self.targets = next((name for name in names if TARGETS.match(name)), None)
        self.flag = next((name for name in names if FLAG.search(name)), None)
        others = [name for name in names if name != self.flag]
        self.cache = next((name for name in others if CACHE.search(name)), None)
        self.start = next((n for n in others if START.search(n) and n != self.cache), None)
        self.padding = next((name for name in names if PADDING.search(name)), None)

    # --- calls ---

    def call(self, tokens: Tensor, thing: Any = None, **more: Any) -> tuple[Tensor, Any]:
        """Logits (batch, length, tokens), and what came beside them.

        Raises:
            Refused: where nothing of that shape comes.
        """
        given = tokens.T.contiguous() if self.turned else tokens
        fixed = dict(self.fixed)
        if self.targets is not None and not more:
            fixed[self.targets] = given
        raw = self.subject.call([given], {**fixed, **more}, thing)
        parts = self._parts(raw)
        for i, part in enumerate(parts):
            if isinstance(part, Tensor) and part.is_floating_point() and part.dim() == 3:
                logits = part.transpose(0, 1) if self.turned else part
                if logits.shape[:2] == tokens.shape:
                    beside = parts[:i] + parts[i + 1 :]
                    return as_tensor(logits).double(), beside
                if logits.shape[:2] == (len(tokens), 1) and not more and thing is None:
                    ends = range(1, tokens.shape[1])  # it gives the last position's alone
                    rows = [self.call(tokens[:, :end])[0][:, -1:] for end in ends]
                    return torch.cat([*rows, as_tensor(logits).double()], 1), []
        seen = ", ".join(
            str(tuple(p.shape)) if isinstance(p, Tensor) else type(p).__name__ for p in parts
        )
        why = f"the result is {seen}, not logits {(*tokens.shape, 'tokens')}"
        self.subject.failed([tokens], more, why)
        raise Refused(why)

    def _parts(self, raw: Any) -> list[Any]:
        if isinstance(raw, Mapping):
            return list(raw.values())
        if isinstance(raw, tuple | list):
            return list(raw)
        if hasattr(raw, "logits"):
            return [raw.logits, *(v for n, v in vars(raw).items() if n != "logits")]
        return [raw]

    def logits(self, tokens: Tensor, thing: Any = None) -> Tensor:
        return self.call(tokens, thing)[0]

    def drawn_tokens(self, batch: int, length: int, extra: int = 0) -> Tensor:
        drawn = torch.Generator().manual_seed(self.seed + 31 + extra)
        return torch.randint(0, self.vocabulary, (batch, length), generator=drawn)

    # --- the stages ---

    def run(self) -> None:
        inside = () if self.subject.module is None else self.subject.module.modules()
        tables = [m.num_embeddings for m in inside if isinstance(m, nn.Embedding)]
        self.vocabulary = min([n for n in tables if n > 4] or [5])
        self.vocabulary = min(self.vocabulary, 50)
        self.read()
        if self.determined() and self.examples_apart() and self.order():
            self.cached()
            self.left_padding()
        self.beside()

    def read(self) -> None:
        """Find a call that gives logits."""
        self.turned = (self.layout or declared_layout(self.subject, tokens=True)) == "lbd"
        for dtype in (torch.float64, torch.float32):
            self.subject.dtype = dtype
            for length in (9, 6, 4):
                for fixed in self._extras(self.drawn_tokens(2, length)):
                    self.fixed = fixed
                    try:
                        self.logits(self.drawn_tokens(2, length))
                    except Refused:
                        continue
                    self.length = length
                    self.near = 1e-7 if dtype == torch.float64 else 1e-4
                    return
        raise CannotExamine(
            f"{self.subject.name} could not be called as decoder", self.subject.tried
        )

    def _extras(self, tokens: Tensor) -> Iterator[dict[str, Any]]:
        """What else must be given."""
        must = [name for name in self.subject.required[1:] if name != "*"]
        base: dict[str, Any] = {}
        for name in must:
            base[name] = 0 if name == self.start else None
        yield base
        if self.start in must:
            yield {**base, str(self.start): torch.arange(tokens.shape[1])}

    def told_reading(self) -> str:
        names = self.subject.names or ["tokens"]
        axes = "(length, batch)" if self.turned else "(batch, length)"
        return "; ".join([f"{names[0]} as {axes}", *self.how])

    def changes(self, a: Tensor, b: Tensor) -> Tensor:
        """Which rows differ."""
        return ~((a - b).abs().amax(-1) <= self.near * (1 + a.abs().amax()))

    def same(self, a: Tensor, b: Tensor) -> bool:
        return a.shape == b.shape and not bool(self.changes(a, b).any())

    def determined(self) -> bool:
        tokens, outputs = self.drawn_tokens(2, self.length), []
        for seed in (0, 0, 1):
            torch.manual_seed(seed)
            outputs.append(self.logits(tokens))
        if self.same(outputs[0], outputs[1]) and self.same(outputs[0], outputs[2]):
            thing = self.subject.fresh()
            self.logits(self.drawn_tokens(2, self.length, 1), thing)
            try:
                again: Tensor | None = self.logits(tokens, thing)
            except Refused:
                again = None
            if again is not None and self.same(outputs[0], again):
                return True
            outputs[1] = outputs[0] + 1
        drawn = self.same(outputs[0], outputs[1])
        name = "cache-keeps-across-calls" if self.cache or self.start else "remembers-last-call"
        self.tell("dropout-in-eval" if drawn else name, tokens, outputs[0], outputs[1])
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

    def other(self, tokens: Tensor, place: int) -> Tensor:
        """The same tokens with another at one place of the first example."""
        changed = tokens.clone()
        changed[0, place] = (changed[0, place] + 1) % self.vocabulary
        return changed

    def examples_apart(self) -> bool:
        self.seen, mixed = self.influence()
        if not mixed:
            return True
        tokens = self.drawn_tokens(2, self.length)
        if self.layout is None and declared_layout(self.subject, tokens=True) is None:
            self.turned = True
            try:
                seen, still = self.influence()
            except Refused:
                still = True
            if not still:
                self.seen = seen
                return True
            self.turned = False
        past = bool(self.seen.tril(-1).any())
        name = "examples-mixed" if past else "batch-and-length-mixed"
        a, b = self.logits(tokens), self.logits(self.other(tokens, 0))
        self.tell(name, tokens, a[1:], b[1:])
        return False

    def order(self) -> bool:
        """Whether each output depends on what came before, and on nothing that comes after."""
        seen, n = self.seen, self.length
        future, past = seen.triu(1), seen.tril(-1)
        name = None
        if future.any():
            name = "future-seen"
            if not past.any():
                name = "causal-transposed"
            elif future.diagonal(1).all() and not future[0, -1]:
                name = "causal-one-too-generous"
        elif not past.any():
            name = "past-ignored"
        if name is not None:
            tokens = self.drawn_tokens(2, n)[:1]
            place = n - 1 if future[:, -1].any() else 1 if future.any() else 0
            a, b = self.logits(tokens), self.logits(self.other(tokens, place))
            row = -1 if name == "past-ignored" else 0
            self.tell(name, tokens, a[:, row], b[:, row])
            self.unexamined.append("the cache")
            return False
        self.places()
        return True

    def places(self) -> None:
        """Whether the order of the earlier tokens matters."""
        tokens = self.drawn_tokens(1, self.length)
        tokens[0, :2] = torch.tensor([0, 1])
        swapped = tokens.clone()
        swapped[0, :2] = torch.tensor([1, 0])
        a, b = self.logits(tokens)[:, -1:], self.logits(swapped)[:, -1:]
        equal = torch.zeros_like(tokens)
        rows = self.logits(equal)
        words = self.subject.code
        if self.subject.module is not None:
            for part in self.subject.module.modules():
                words += " ".join([type(part).__name__, *dict(part.named_buffers())]).lower()
                try:
                    own = not type(part).__module__.startswith("torch.")
                    words += inspect.getsource(type(part)).lower() if own else ""
                except (OSError, TypeError):
                    continue
        alike = self.same(rows[:, :-1], rows[:, 1:]) and not ROTATES.search(words)
        if self.same(a, b) or alike:
            self.tell("positions-missing", tokens, a, b)

    # --- the cache ---

    def caches(self) -> Iterator[Cache]:
        """Ways to decode with a cache that the subject may have."""
        thing, start = self.subject.thing, self.start
        starts = [(start, False), (start, True)] if start else [(None, False)]
        for name, indices in starts:
            way = Cache("in the model", None, None, self.flag, name, indices)
            if not self.cache:
                if self.flag or start:
                    yield way
                continue
            way = replace(way, parameter=self.cache)
            yield replace(way, said="that the last call gave back")
            for method, _ in inspect.getmembers(type(thing), callable):
                if MADE.search(method.lower()):
                    yield replace(way, said=f"from {method}()", first=method)
            space = vars(sys.modules.get(type(thing).__module__, object()))
            made: dict[str, Any] = {
                f"a {named}()": value
                for named, value in space.items()
                if inspect.isclass(value) and re.search(r"cache|^kv", named.lower())
            }
            for said, first in {**made, "a list": list, "a dict": dict}.items():
                yield replace(way, said=said, first=first)

    def decode(
        self, way: Cache, tokens: Tensor, chunks: Sequence[int], thing: Any = None
    ) -> Tensor:
        """The logits, with tokens given in pieces.

        Raises:
            Refused: where the subject cannot be called so.
        """
        thing = self.subject.fresh() if thing is None else thing
        held = self._first(way, thing, len(tokens))
        rows, place = [], 0
        for piece in tokens.split(list(chunks), dim=1):
            more: dict[str, Any] = {way.flag: True} if way.flag else {}
            if way.parameter:
                more[way.parameter] = held
            if way.start:
                places = torch.arange(place, place + piece.shape[1])
                more[way.start] = places if way.indices else place
            logits, beside = self.call(piece, thing, **more)
            kept = [one for one in beside if one is not None]
            if way.parameter and kept:
                held = kept[-1]
            elif way.parameter and way.first is None:
                raise Refused("no cache comes back")
            rows.append(logits)
            place += piece.shape[1]
        return torch.cat(rows, dim=1)

    def _first(self, way: Cache, thing: Any, batch: int) -> Any:
        if isinstance(way.first, str):
            for args in ((), (batch,), (batch, 64)):
                try:
                    return getattr(thing, way.first)(*args)
                except Exception:
                    continue
            raise Refused(f"{way.first}() gives no cache")
        if way.first is not None:
            try:
                return way.first()
            except Exception as error:
                raise Refused(str(error)) from error
        if way.parameter is None:
            for name, method in inspect.getmembers(thing, inspect.ismethod):
                if CLEARED.fullmatch(name.lower()) and "param" not in name:
                    try:
                        method()
                    except Exception:
                        continue
        return None

    def cached(self) -> None:
        """Whether decoding with the cache gives what the model gives without."""
        n = self.length
        tokens = self.drawn_tokens(2, n)
        full = self.logits(tokens)
        singly = [n - 4, 1, 1, 1, 1] if n > 4 else [1] * n
        best: tuple[bool, Cache, Tensor] | None = None
        for way in self.caches():
            try:
                one = self.decode(way, tokens, singly)
            except Refused:
                continue
            fits = self.same(one, full)
            if best is None or fits:
                best = fits, way, one
            if fits:
                break
        if best is None:
            if self.cache or self.flag:
                self.unexamined.append("the cache")
            return
        fits, way, one = best
        self.how.append(f"with a cache {way.said}" + (f", {way.start}" if way.start else ""))
        call = f"one token after another, with a cache {way.said}"
        if not fits:
            self.tell(self.why(way, tokens, singly, one), tokens, full, one, call)
            return
        if self.keeps(way, tokens, singly, full):
            return
        pieces = [n - 5, 3, 2] if n > 5 else [2, 2]
        try:
            several = self.decode(way, tokens, pieces)
        except Refused:
            self.unexamined.append("several tokens given to a cache at once")
            return
        if not self.same(several, full):
            ends = torch.tensor(pieces).cumsum(0) - 1
            last = self.same(several[:, :-1][:, ends[:-1]], full[:, :-1][:, ends[:-1]])
            changed = self.other(tokens, int(ends[1]))
            after = self.decode(way, changed, pieces)
            seen = bool(self.changes(several, after)[0, : int(ends[1])].any())
            name = "cache-chunk-not-causal" if seen or last else "cache-differs"
            self.tell(name, tokens, full, several, f"in pieces of {pieces} tokens")

    def why(self, way: Cache, tokens: Tensor, chunks: Sequence[int], one: Tensor) -> str:
        """The mistake of a cache, by what else gives its numbers."""
        first = chunks[0]
        changed = tokens.clone()
        changed[:, :first] = (changed[:, :first] + 1) % self.vocabulary
        after = self.decode(way, changed, chunks)
        if self.same(after[:, first + 1 :], one[:, first + 1 :]):
            return "cache-forgets"
        names = ("positions-restart-with-cache", *["cache-position-off-by-one"] * 2)
        rows = torch.arange(first, self.length)
        for name, sources in zip(names, (rows * 0, rows - 1, rows + 1), strict=True):
            for moved in chain(self.edited(rows, sources), self.counted(tokens, rows, sources)):
                try:
                    if self.same(moved(tokens)[:, first:], one[:, first:]):
                        return name
                except Refused:
                    continue
        return "cache-differs"

    def counted(
        self, tokens: Tensor, rows: Tensor, sources: Tensor
    ) -> Iterator[Callable[[Tensor], Tensor]]:
        """The model where one of its lines that count positions counts otherwise."""
        with Counting(self.length) as counting:
            self.logits(tokens)
        places = torch.arange(self.length).index_copy(0, rows, sources)
        for line in counting.lines:

            def moved(tokens: Tensor, line: Any = line) -> Tensor:
                with Counting(self.length, line, places):
                    return self.logits(tokens)

            yield moved

    def edited(self, rows: Tensor, sources: Tensor) -> Iterator[Callable[[Tensor], Tensor]]:
        """The model where one of its tables has other rows for some places."""
        if self.subject.module is None:
            return
        thing = self.subject.fresh()
        groups = [[name] for name, x in thing.named_parameters() if x.dim() >= 2]
        buffers = {name: tuple(x.shape) for name, x in thing.named_buffers() if x.dim() >= 2}
        for shape in set(buffers.values()):  # cos and sin
            groups.append([name for name, other in buffers.items() if other == shape])
        for group, axis in product(groups, (0, 1)):
            thing = self.subject.fresh()
            own = dict([*thing.named_parameters(), *thing.named_buffers()])
            if own[group[0]].shape[axis] <= max(int(sources.max()), int(rows.max())):
                continue
            with torch.no_grad():
                for name in group:
                    own[name].index_copy_(axis, rows, own[name].index_select(axis, sources))
            yield partial(self.logits, thing=thing)

    def keeps(self, way: Cache, tokens: Tensor, chunks: Sequence[int], full: Tensor) -> bool:
        """Whether a second text begins with the cache of the first."""
        thing = self.subject.fresh()
        try:
            self.decode(way, self.drawn_tokens(2, self.length, 7), chunks, thing)
            again: Tensor | None = self.decode(way, tokens, chunks, thing)
        except Refused:
            again = None
        if again is not None and self.same(again, full):
            return False
        got = full * torch.nan if again is None else again
        self.tell("cache-keeps-across-calls", tokens, full, got, "after another text")
        return True

    def left_padding(self) -> None:
        """Whether padding on the left, with its mask, changes the answer."""
        if self.padding is None:
            return
        n = self.length
        whole = self.drawn_tokens(1, n)
        tokens = whole[:, 2:]
        alone, full = self.logits(tokens), self.logits(whole)
        real = torch.ones(1, n, dtype=torch.bool)
        padded = real.clone()
        padded[:, :2] = False
        best = None
        for meaning in ("allowed", "blocked"):
            if self.mask not in (None, meaning):
                continue
            for kind in (torch.long, torch.bool, self.subject.dtype):
                hide = meaning == "blocked"
                try:
                    nothing = self.call(whole, **{self.padding: (real ^ hide).to(kind)})[0]
                    got = self.call(whole, **{self.padding: (padded ^ hide).to(kind)})[0]
                except Refused:
                    continue
                if not self.same(nothing, full) or self.same(got[:, 2:], full[:, 2:]):
                    continue
                fits = self.same(got[:, 2:], alone)
                if best is None or fits:
                    best = fits, got[:, 2:], meaning
        if best is None:
            self.unexamined.append(f"the argument {self.padding}")
        elif not best[0]:
            name = "left-padding-changes-answer"
            if self.subject.library:
                self.notes.append(Note(name, sentence(name)))
            else:
                self.tell(name, whole, alone, best[1], f"with {self.padding} for two at the left")

    def beside(self) -> None:
        """What a call does besides giving logits."""
        tokens = self.drawn_tokens(2, self.length)
        self.said = self.told_reading()
        if self.subject.written:
            self.tell("writes-to-input", tokens)
            return
        try:
            alone = self.logits(tokens[:1])
        except Refused:
            self.tell("batch-of-one", tokens[:1])
            return
        if not self.findings and not self.same(alone, self.logits(tokens)[:1]):
            self.tell("batch-of-one", tokens[:1])

    def tell(
        self,
        name: str,
        tokens: Tensor,
        expected: Tensor | None = None,
        got: Tensor | None = None,
        how: str = "",
    ) -> None:
        """Keep a finding with its tokens."""
        self.find(name, "property", shown=False)
        finding = self.findings[-1]
        parameter = (self.subject.names or ["tokens"])[0]
        finding.inputs = {parameter: tokens}
        finding.expected, finding.got = expected, got
        finding.call = f"{parameter} = torch.tensor({tokens.tolist()})\n"
        finding.call += f"{self.subject.name}({parameter})" + (f"  # {how}" if how else "")
