"""Caches: decode piece by piece, compare with the model without, and name what differs.

The model's own table of positions is edited, or one of its lines counts otherwise: if the model
without a cache then gives the same numbers, that is the cache's mistake.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, product
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attention_book.examine.bench import Bench
from attention_book.examine.subject import Refused, Subject, as_tensor, parts_of

CACHE = re.compile(r"cache|past|^kvs?$|key_value|^state|^mem|history")
FLAG = re.compile(
    r"^(use|return|output|with|enable)_?.*(cache|kv|past|present)|^(incremental|decode)"
)
START = re.compile(r"start|offset|^pos(ition)?(_?id)?s?$|cur_|input_pos|cache_position|^step$")
TARGETS = re.compile(r"^(targets?|labels?|y)$")
PADDING = re.compile(r"mask|pad")
ROTATES = re.compile(r"rotary|rotat|rope|alibi|inv_freq|freqs|relative|slope")
MADE = re.compile(r"(new|make|init|empty|create|build|setup|alloc\w*)_?\w*(cache|kv|state)")
STEP = re.compile(r"(decode_|forward_|run_)?(step|cached|incremental|one)|decode")
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
    method: str = "__call__"  # what is called with the pieces


class Counting(TorchFunctionMode):
    """Finds the lines that count 0, 1 … length - 1, and lets one of them count otherwise."""

    def __init__(self, length: int, line: Any = None, places: Tensor | None = None) -> None:
        super().__init__()
        self.length, self.line, self.places = length, line, places
        self.lines: list[Any] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
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


class Decoding(Bench):
    """A language model, called with all tokens at once or piece by piece with a cache."""

    kind = "decoder"
    roles = ()

    def __init__(self, subject: Subject, *asked: Any) -> None:
        super().__init__(subject, *asked)
        self.length, self.near, self.vocabulary = 9, 1e-7, 5
        self.turned = False  # tokens as (length, batch)
        self.fixed: dict[str, Any] = {}
        names = subject.names[1:]
        self.targets = next((name for name in names if TARGETS.match(name)), None)
        self.flag = next((name for name in names if FLAG.search(name)), None)
        others = [name for name in names if name != self.flag]
        self.cache = next((name for name in others if CACHE.search(name)), None)
        self.start = next((n for n in others if START.search(n) and n != self.cache), None)
        self.padding = next((name for name in names if PADDING.search(name)), None)

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
        parts = parts_of(raw)
        for i, part in enumerate(parts):
            if isinstance(part, Tensor) and part.is_floating_point() and part.dim() == 3:
                logits = part.transpose(0, 1) if self.turned else part
                if logits.shape[:2] == tokens.shape:
                    beside = parts[:i] + parts[i + 1 :]
                    return as_tensor(logits).detach().double(), beside
                if logits.shape[:2] == (len(tokens), 1) and not more and thing is None:
                    ends = range(1, tokens.shape[1])  # it gives the last position's alone
                    rows = [self.call(tokens[:, :end])[0][:, -1:] for end in ends]
                    return torch.cat([*rows, as_tensor(logits).detach().double()], 1), []
        seen = [tuple(p.shape) if isinstance(p, Tensor) else type(p).__name__ for p in parts]
        shown = ", ".join(map(str, seen)) or None
        why = f"the result is {shown}, not logits {(*tokens.shape, 'tokens')}"
        self.subject.failed([tokens], more, why)
        raise Refused(why)

    def logits(self, tokens: Tensor, thing: Any = None) -> Tensor:
        return self.call(tokens, thing)[0]

    def tried(self, tokens: Tensor, thing: Any = None) -> Tensor | None:
        """The logits, None where the subject cannot be called so."""
        with contextlib.suppress(Refused):
            return self.logits(tokens, thing)
        return None

    def drawn_tokens(self, batch: int, length: int, extra: int = 0) -> Tensor:
        drawn = torch.Generator().manual_seed(self.seed + 31 + extra)
        return torch.randint(0, self.vocabulary, (batch, length), generator=drawn)

    def changes(self, a: Tensor, b: Tensor) -> Tensor:
        """Which rows differ."""
        return ~((a - b).abs().amax(-1) <= self.near * (1 + a.abs().amax()))

    def same(self, a: Tensor, b: Tensor) -> bool:
        return a.shape == b.shape and not bool(self.changes(a, b).any())

    def other(self, tokens: Tensor, place: int) -> Tensor:
        """The same tokens with another at one place of the first example."""
        changed = tokens.clone()
        changed[0, place] = (changed[0, place] + 1) % self.vocabulary
        return changed

    def tell(
        self, name: str, tokens: Tensor, expected: Any = None, got: Any = None, how: str = ""
    ) -> None:
        """Keep a finding with its tokens."""
        finding = self.find(name, "property", how="unshown")
        if finding is None:
            return
        parameter = (self.subject.names or ["tokens"])[0]
        finding.inputs = {parameter: tokens}
        finding.expected, finding.got = expected, got
        finding.call = f"{parameter} = torch.tensor({tokens.tolist()})\n"
        finding.call += f"{self.subject.name}({parameter})" + (f"  # {how}" if how else "")

    def caches(self) -> Iterator[Cache]:
        """Ways to decode with a cache that the subject may have."""
        thing, start = self.subject.thing, self.start
        for indices in (False, True) if start else (False,):
            way = Cache("in the model", None, None, self.flag, start, indices)
            if not self.cache:
                if self.flag or start:
                    yield way
                for method, _ in inspect.getmembers(thing, inspect.ismethod):
                    if STEP.fullmatch(method):
                        yield Cache(f"in the model, by {method}()", method=method)
                continue
            way = replace(way, parameter=self.cache)
            yield replace(way, said="that the last call gave back")
            for method, _ in inspect.getmembers(type(thing), callable):
                if MADE.search(method.lower()):
                    yield replace(way, said=f"from {method}()", first=method)
            module = sys.modules[type(thing).__module__]
            for name, made in inspect.getmembers(module, inspect.isclass):
                if re.search(r"cache|^kv", name.lower()):
                    yield replace(way, said=f"a {name}()", first=made)
            yield replace(way, said="a list", first=list)
            yield replace(way, said="a dict", first=dict)

    def decode(self, way: Cache, tokens: Tensor, chunks: list[int], thing: Any = None) -> Tensor:
        """The logits, with tokens given in pieces.

        Raises:
            Refused: where the subject cannot be called so.
        """
        thing = self.subject.fresh() if thing is None else thing
        held = self._first(way, thing, len(tokens))
        rows, place = [], 0
        for piece in tokens.split(chunks, dim=1):
            more: dict[str, Any] = {way.flag: True} if way.flag else {}
            if way.parameter:
                more[way.parameter] = held
            if way.start:
                places = torch.arange(place, place + piece.shape[1])
                more[way.start] = places if way.indices else place
            logits, beside = self.call(piece, getattr(thing, way.method), **more)
            if way.parameter and beside:
                held = beside[-1]
            elif way.parameter and way.first is None:
                raise Refused("no cache comes back")
            rows.append(logits)
            place += piece.shape[1]
        return torch.cat(rows, dim=1)

    def _first(self, way: Cache, thing: Any, batch: int) -> Any:
        if way.first is not None:
            make = getattr(thing, way.first) if isinstance(way.first, str) else way.first
            for args in ((), (batch,), (batch, 64)):
                with contextlib.suppress(Exception):
                    return make(*args)
            raise Refused(f"there is no cache {way.said}")
        if way.parameter is None:
            for name, method in inspect.getmembers(thing, inspect.ismethod):
                if CLEARED.fullmatch(name.lower()) and "param" not in name:
                    with contextlib.suppress(Exception):
                        method()
        return None

    def cached(self) -> None:
        """Whether decoding with the cache gives what the model gives without."""
        n = self.length
        tokens = self.drawn_tokens(2, n)
        full = self.logits(tokens)
        singly = [n - 4, 1, 1, 1, 1] if n > 4 else [1] * n
        found: list[tuple[bool, Cache, Tensor]] = []
        for way in self.caches():
            with contextlib.suppress(Refused):
                one = self.decode(way, tokens, singly)
                found.append((self.same(one, full), way, one))
                if found[-1][0]:
                    break
        if not found:
            if self.cache or self.flag:
                self.unexamined.append("the cache")
            return
        fits, way, one = found[-1 if found[-1][0] else 0]
        self.said += f"; with a cache {way.said}" + (f", {way.start}" if way.start else "")
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

    def why(self, way: Cache, tokens: Tensor, chunks: list[int], one: Tensor) -> str:
        """The mistake of a cache, by what else gives its numbers."""
        first = chunks[0]
        for name, others, row in (
            ("cache-forgets", slice(0, first), first + 1),
            ("causal-aligned-to-first", slice(1, -1), -1),
        ):
            changed = tokens.clone()
            changed[:, others] = (changed[:, others] + 1) % self.vocabulary
            if self.same(self.decode(way, changed, chunks)[:, row:], one[:, row:]):
                return name
        rows = torch.arange(first, self.length)
        tries = [("positions-restart-with-cache", rows * 0 + i, not i) for i in range(17)]
        tries += [("cache-position-off-by-one", rows + i, True) for i in (-1, 1)]
        for name, sources, tables in tries:
            counted, edits = self.counted(tokens, rows, sources), self.edited(rows, sources)
            for moved in chain(counted, edits if tables else ()):
                with contextlib.suppress(Refused):
                    if self.same(moved(tokens)[:, first:], one[:, first:]):
                        return name
        return "cache-differs"

    def counted(self, tokens: Tensor, rows: Tensor, sources: Tensor) -> Iterator[Any]:
        """The model where one of its lines that count positions counts otherwise."""
        with Counting(self.length) as counting:
            self.logits(tokens)
        places = torch.arange(self.length).index_copy(0, rows, sources)
        for line in counting.lines:

            def moved(tokens: Tensor, line: Any = line) -> Tensor:
                with Counting(self.length, line, places):
                    return self.logits(tokens)

            yield moved

    def edited(self, rows: Tensor, sources: Tensor) -> Iterator[Any]:
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

    def keeps(self, way: Cache, tokens: Tensor, chunks: list[int], full: Tensor) -> bool:
        """Whether a second text begins with the cache of the first."""
        thing, again = self.subject.fresh(), full * torch.nan
        with contextlib.suppress(Refused):
            self.decode(way, self.drawn_tokens(2, self.length, 7), chunks, thing)
            again = self.decode(way, tokens, chunks, thing)
        if self.same(again, full):
            return False
        self.tell("cache-keeps-across-calls", tokens, full, again, "after another text")
        return True
