"""Heads: the projections of a module, found by their names, shapes and order, and its examination.

How a module keeps its matrices (one for each role, one for all, one for each head, as parameters of
its own) is a reading like the axes: each way is tried, and the one that explains the numbers is
believed.
"""

from __future__ import annotations

import contextlib
import copy
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import torch
from torch import Tensor, nn

from attention_book.examine import laws
from attention_book.examine.bench import numbers
from attention_book.examine.caches import CACHE, FLAG
from attention_book.examine.identification import Table
from attention_book.examine.reading import HEADS, QUIET, ROLES, Inputs, Reading, Sizes, signature
from attention_book.examine.report import CannotExamine
from attention_book.examine.stages import Examination
from attention_book.examine.subject import Refused, Subject, parts_of
from attention_book.mistakes import reference as ref

#: Which role a part of a parameter's name gives it; the first that fits.
NAMED = {
    "qkv": r"qkv|kqv|c_attn|in_proj|query_key_value|fused",
    "kv": r"(^|_)w?kv($|_)|key_value",
    "q": r"^(to_?|w_?|b_?|lin(ear)?_?|fc_?|proj_?)?(q$|q_|q\d|qs|quer)",
    "k": r"^(to_?|w_?|b_?|lin(ear)?_?|fc_?|proj_?)?(k$|k_|k\d|ks|key)",
    "v": r"^(to_?|w_?|b_?|lin(ear)?_?|fc_?|proj_?)?(v$|v_|v\d|vs|val)",
    "o": r"^(to_?|w_?|b_?)?(o$|o_|o\d|out)|proj|^fc|dense|final|unif|combine|merge|mix",
}
#: Mistakes of a piece of a text, with the cache of what came before.
DECODED = {name: ref.CAUSAL[name] for name in ("causal-aligned-to-first", "causal-strict")}
DECODED["cache-chunk-not-causal"] = ref.CAUSAL["causal-ignored"]
Maps = dict[str, Any]


class HeadsExamination(Examination):
    """A module: sequences in, projected, cut into heads, attended, joined and projected."""

    kind = "heads"

    def __init__(self, subject: Subject, *asked: Any) -> None:
        super().__init__(subject, *asked)
        if subject.module is None:
            raise CannotExamine(f"{subject.name} is no module, whose projections could be read")
        try:
            subject.module = enlivened(subject.module, len(subject.required))
        except (RuntimeError, TypeError) as error:
            said = f"{subject.name} cannot be copied, and is not examined in place"
            raise CannotExamine(said, [f"copy.deepcopy({subject.name}): {error}"]) from error
        self.maps = list(found_maps(subject.module, self.heads))
        if not self.maps:
            raise CannotExamine(f"{subject.name} has no projections that could be read")
        self.ways = [(tuple(s.sequences), s) for s in self.patterns()]
        parts = gathered(subject.module, True)
        ends = parts.get("o", []) + parts.get("other", [])
        self.block = len(ends) > 1 and bool({"q", "qkv"} & set(parts))  # more than projections
        self.block |= any("norm" in type(part).__name__.lower() for part in subject.parts)

    def patterns(self) -> Iterator[Any]:
        """What the module may be called with: three sequences, one and a memory, or one."""
        names, subject = self.subject.names, self.subject
        must = [name for name in subject.required if name != "*"]
        roles = ("queries", "keys", "values")
        by_role = [[n for n in names if ROLES[role].match(n)] for role in roles]
        if all(by_role) or (len(must) >= 3 and "mask" not in must[2]):
            yield signature(subject, 3, roles)
            return
        others = [n for n in names[1:] if "mask" not in n and not QUIET.search(n)]
        memory = [n for n in others if ROLES["memory"].search(n)]
        if not memory and len(must) > 1 and "mask" not in must[1]:
            memory = must[1:2]
        ways = [memory[:1]] if memory else []
        for other in ways + ([[]] if len(must) < 2 or not memory else []):
            told = signature(subject, 1, ("queries",))
            told.sequences = [*(names[:1] or ["x"]), *other]
            told.slots = [s for s in told.slots if s not in {*told.sequences, *memory}]
            for name in other:
                told.fixed.pop(name, None)
                told.by_keyword = name != names[1]
            yield told

    def layouts(self) -> list[str]:
        return [self.layout] if self.layout in {"bld", "lbd", "ld"} else ["bld", "lbd", "ld"]

    def ladder(self) -> Sequence[Sizes]:
        batch = 3 if any(maps["num_heads"] == 2 for maps in self.maps) else 2
        return Sizes(batch=batch), Sizes(batch=batch, keys=5), Sizes(batch=4, queries=4, keys=4)

    def tables(self) -> dict[str, ref.Options]:
        return {**ref.PROJECTIONS, **ref.SCORES, **ref.WEIGHTS}

    def readings(self, sizes: Sizes) -> Iterator[Reading]:
        for names, told in self.ways:
            self.signature = told
            alone = len(names) == 1
            if alone and sizes.odd:
                sizes = replace(sizes, keys=sizes.queries)
            for reading in super().readings(sizes):
                for i, maps in enumerate(self.maps):
                    fits = replace(reading.sizes, heads=maps["num_heads"])
                    yield replace(reading, maps=i, sizes=fits)

    def chosen(self, reading: Reading) -> Any:
        names = tuple(name for _, name in reading.roles)
        self.signature = next(told for way, told in self.ways if way == names)
        self.own = self.maps[reading.maps]
        return reading.sizes, reading.maps, names

    def judge_scores(self, rank: int, names: list[str], options: dict[str, Any]) -> bool:
        readings = self.others.values() if rank == 2 and self.block else ()
        broken = [laws.broken(self.subject, r, self.given(sizes=r.sizes)) for r in readings]
        if broken and not all(broken):
            raise CannotExamine(
                f"{self.subject.name} has norms or layers beside its projections, and no reference "
                "knows such a block: give its attention layer alone"
            )
        goes_on = super().judge_scores(rank, names, options)
        size = len(self.own["W_q"]) // self.own["num_heads"]
        q, k = (self.own[name].unflatten(0, (-1, size)) for name in ("W_q", "W_k"))
        several = len(q) > 1 and len(q[0].unique(dim=0)) > 1  # not one number everywhere
        if several and len(q.unique(dim=0)) == len(k.unique(dim=0)) == 1:
            self.find("heads-share-weights", "property", how="unshown")
        return goes_on

    def elsewhere(self) -> None:
        super().elsewhere()
        names = [n for n in self.subject.names if CACHE.search(n) and not FLAG.search(n)]
        if names and not (self.equal_by_nature() and self.decoded(names[0])):
            self.unexamined.append("the cache")

    def decoded(self, cache: str) -> bool:
        """Give a sequence in pieces, with the cache that came back; whether that is possible."""
        reading, subject = self.plain(), self.subject
        whole, thing = self.given(sizes=replace(reading.sizes, queries=7, keys=7)), subject.fresh()
        more: dict[str, Any] = {name: True for name in subject.names if FLAG.search(name)}
        more[cache] = None
        for start, end in ((0, 3), (3, 4), (4, 7)):
            seen = {name: whole[name][:, :end] for name in ("queries", "keys", "values")}
            piece = {**whole, **seen, "queries": seen["queries"][:, start:]}
            args, kwargs = reading.arguments(piece)
            try:
                raw = subject.call(args, {**kwargs, **more}, thing)
                got = reading.back(raw, piece)
            except Refused:
                return False
            if not self.agrees(got, piece):
                names = Table(self.kind, piece, DECODED, base=self.base).single(got)
                self.explain(names, "unshown", "cache-differs")
                return True
            more[cache] = parts_of(raw)[-1]
            if isinstance(more[cache], Tensor) and more[cache].dim() < 5:  # weights, or the output
                return False
        return True

    def draw(self, sizes: Sizes, drawn: torch.Generator, whole: bool = False) -> Inputs:
        def sequence(length: int, matrix: str) -> Tensor:
            return numbers((sizes.batch, length, self.own[matrix].shape[1]), drawn, whole)

        x = sequence(sizes.queries, "W_q")
        sequences = {"queries": x, "keys": x, "values": x}
        if not self.equal_by_nature():
            sequences["keys"] = sequences["values"] = sequence(sizes.keys, "W_k")
        if len(self.signature.sequences) == 3:
            sequences["values"] = sequence(sizes.keys, "W_v")
        return {**sequences, **self.own}


def enlivened(module: nn.Module, sequences: int) -> nn.Module:
    """A copy whose parameters are all seen in its numbers: none zero, none tiny.

    A bias that is 0, as it comes, hides that it is forgotten. Lazy layers get their sizes.
    """
    module = copy.deepcopy(module)
    lazy = [m for m in module.modules() if isinstance(m, nn.LazyLinear)]
    with torch.no_grad():
        if lazy:
            x = torch.zeros(2, 4, lazy[0].out_features)
            for count in (sequences, 1, 3):
                with contextlib.suppress(Exception):
                    module(*[x] * count)
                    break
        for parameter in module.parameters():
            if isinstance(parameter, nn.parameter.UninitializedParameter):
                raise CannotExamine("a lazy layer does not get its size")
            if not parameter.is_floating_point() or not parameter.numel():
                continue
            wanted = parameter.shape[-1] ** -0.5 if parameter.dim() > 1 else 0.5
            size = float(parameter.square().mean().sqrt())
            if size == 0:
                parameter.normal_(0, wanted)
            elif parameter.dim() > 1 and size < wanted / 2:
                parameter.mul_(wanted / size)
    return module


def found_maps(module: nn.Module, told: int | None) -> Iterator[Maps]:
    """The ways to read a module's parameters as W_q … b_o, likelier ones first."""
    seen: set[Any] = set()
    for turned in (True, False):  # x @ W, or x @ W.mT, for parameters of the module's own
        parts = gathered(module, turned)
        for q, k, v, o, count in assembled(parts, module, told):
            maps: Maps = {"num_heads": count}
            for name, both in (("q", q), ("k", k), ("v", v), ("o", o)):
                maps[f"W_{name}"] = None if both is None else both[:, :-1].detach().double()
                maps[f"b_{name}"] = None if both is None else both[:, -1].detach().double()
            fits = len(q) % count == 0 and len(k) % (len(q) // count) == 0
            fits = fits and len(v) % (len(k) // (len(q) // count)) == 0
            same = tuple(x.numpy().tobytes() if isinstance(x, Tensor) else x for x in maps.values())
            if fits and same not in seen:
                seen.add(same)
                yield maps


def gathered(module: nn.Module, turned: bool) -> dict[str, list[Tensor]]:
    """Matrices (out, in + 1) by role, each with its bias as the last column."""
    found: dict[str, list[Tensor]] = {}

    def keep(name: str, matrix: Tensor, bias: Any) -> None:
        column = torch.zeros(len(matrix)) if bias is None else bias
        if column.numel() != len(matrix):
            return  # the bias of a matrix that is laid out in another way
        role = role_of(name)
        found.setdefault(role, []).append(torch.cat([matrix, column.reshape(-1, 1).to(matrix)], 1))

    for name, part in module.named_modules(remove_duplicate=False):
        own = dict(part.named_parameters(recurse=False))
        weight, bias = own.get("weight"), own.get("bias")
        if isinstance(part, nn.MultiheadAttention):
            b = own.get("in_proj_bias")
            if "in_proj_weight" in own:
                keep("in_proj", own["in_proj_weight"], b)
            else:
                thirds = [None] * 3 if b is None else b.chunk(3)
                for role, third in zip("qkv", thirds, strict=True):
                    keep(role, own[f"{role}_proj_weight"], third)
        elif isinstance(part, nn.Linear) and weight is not None:
            keep(name, weight, bias)
        elif type(part).__name__ == "Conv1D" and weight is not None:
            keep(name, weight.mT, bias)
        elif isinstance(part, nn.Conv1d) and weight is not None and weight.shape[-1] == 1:
            keep(name, weight[:, :, 0], bias)
        elif "norm" not in type(part).__name__.lower():
            flat = {n: p for n, p in own.items() if p.dim() == 1 or n.lower().startswith("b")}
            biases = {role_of(n): p for n, p in flat.items()}
            for n, p in ((n, p) for n, p in own.items() if n not in flat):
                if p.dim() == 2:
                    keep(n, p.mT if turned else p, biases.get(role_of(n)))
                elif p.dim() == 3 and role_of(n) == "o":  # (heads, size, out)
                    keep(n, p.flatten(0, 1).mT, biases.get("o"))
                elif p.dim() == 3:  # (heads, in, size)
                    keep(n, (p.mT if turned else p).flatten(0, 1), biases.get(role_of(n)))
    return found


def role_of(name: str) -> str:
    """The role that a name gives a parameter; "other" where it gives none."""
    parts = [part for part in name.lower().split(".") if not part.isdigit() and part != "weight"]
    for part in reversed(parts):
        for role, pattern in NAMED.items():
            if re.search(pattern, part):
                return role
    return "other"


def assembled(
    parts: dict[str, list[Tensor]], module: nn.Module, told: int | None
) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor | None, int]]:
    """Queries', keys', values' and output matrix, with a number of heads."""
    others = list(parts.get("other", ()))
    if not {"q", "qkv"} & set(parts) and others:
        if len(others) + len(parts.get("o", ())) in {1, 2}:
            parts = {**parts, "qkv": others[:1]}
            others = others[1:]
        elif len(others) >= 3:
            parts = {**parts, **dict(zip("qkv", ([one] for one in others[:3]), strict=True))}
            others = others[3:]
    out = next(iter([*parts.get("o", ()), *others]), None)
    repeated = len(parts.get("q", parts.get("qkv", ())))

    def joined(role: str) -> Tensor:
        return torch.cat(parts[role])

    if {"q", "k", "v"} <= set(parts):
        q, k, v = joined("q"), joined("k"), joined("v")
        for count in counts(module, told, repeated, len(q)):
            yield from shuffled(q, k, v, out, count)
    elif {"q", "kv"} <= set(parts):
        q = joined("q")
        for count in counts(module, told, repeated, len(q)):
            for k, v in pieces(joined("kv"), 2, count):
                yield from shuffled(q, k, v, out, count)
                yield from shuffled(q, v, k, out, count)
    elif "qkv" in parts:
        whole = parts["qkv"][0] if repeated == 1 else None
        if whole is None:  # one for each head
            thirds = [one.chunk(3) for one in parts["qkv"]]
            q, k, v = (torch.cat([third[i] for third in thirds]) for i in range(3))
            yield from shuffled(q, k, v, out, repeated)
            return
        size = whole.shape[1] - 1
        extra = len(whole) - size
        if extra != 2 * size and extra > 0 and extra % 2 == 0:  # fewer heads of keys and values
            q, k, v = whole.split([size, extra // 2, extra // 2])
            for count in counts(module, told, 1, size):
                yield q, k, v, out, count
        for count in counts(module, told, 1, len(whole) // 3):
            for order in permutations(range(3)):
                for three in pieces(whole, 3, count):
                    q, k, v = (three[i] for i in order)
                    yield from shuffled(q, k, v, out, count)


def pieces(whole: Tensor, number: int, heads: int) -> Iterator[list[Tensor]]:
    """One matrix cut into `number`: in blocks, within each head, within each feature."""
    if len(whole) % number:
        return
    yield list(whole.chunk(number))
    rows = len(whole) // number
    if rows % heads == 0 and heads > 1:
        width = whole.shape[1]
        shapes = (heads, number, rows // heads, width), (heads, rows // heads, number, width)
        for axis, shape in enumerate(shapes, 1):
            yield [one.reshape(rows, width) for one in whole.reshape(shape).unbind(axis)]
        turned = whole.reshape(rows // heads, number, heads, width).unbind(1)
        yield [one.transpose(0, 1).reshape(rows, width) for one in turned]


def shuffled(
    q: Tensor, k: Tensor, v: Tensor, o: Tensor | None, heads: int
) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor | None, int]]:
    """The features of a head together, or those of the same number; both are right."""
    yield q, k, v, o, heads
    if heads > 1 and len(q) == len(k) == len(v) and len(q) % heads == 0:
        q, k, v = (x.unflatten(0, (-1, heads)).transpose(0, 1).flatten(0, 1) for x in (q, k, v))
        if o is not None and o.shape[1] - 1 == len(v):
            W, b = o[:, :-1], o[:, -1:]
            o = torch.cat([W.unflatten(1, (-1, heads)).transpose(1, 2).flatten(1), b], 1)
        yield q, k, v, o, heads


def counts(module: nn.Module, told: int | None, repeated: int, rows: int) -> list[int]:
    """Numbers of heads that a module may have."""
    if told is not None or repeated > 1:
        return [told or repeated]
    kept = [x for part in module.modules() for n, x in vars(part).items() if HEADS.match(n)]
    said = [x for x in kept if isinstance(x, int) and x > 0 and rows % x == 0]
    return list(dict.fromkeys(said)) or [n for n in (1, 2, 4, 8, 3, 6, 5, 12, 16) if rows % n == 0]
