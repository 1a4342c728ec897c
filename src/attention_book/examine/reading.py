"""Reading: how a subject wants to be called.

A right subject called in a wrong way looks like a mistake, and a wrong reading that raises no error
wins silently. So nothing is assumed: the axes, what a mask means and which shape it has are tried,
and of all ways to call the subject the one with the fewest mistakes is taken. What the subject
itself declares, in a parameter's name or in its documentation, and what the caller of `examine`
says, comes first.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import torch
from torch import Tensor

from attention_book.examine.subject import Refused, Subject, as_tensor, parts_of

Inputs = dict[str, Any]

MASK = re.compile(r"mask|valid|len|padding|allowed|keep|visible|attend|bias")
CAUSAL = re.compile(r"causal|autoregressive")
DROPOUT = re.compile(r"drop|^p$")
TRAINING = re.compile(r"^(training|train|is_training)$")
HEADS = re.compile(r"^_*(num_?heads?|n_?heads?|heads|h|nh|(num_)?attention_heads)$", re.IGNORECASE)
SIZE = re.compile(r"^(d_k|d|dk|dim|size|head_dim|d_head)$")
QUIET = re.compile(r"scale|weights|attn$|output_att|past|cache|layer|position|dim|axis|kwargs|fill")
ROLES = {
    "scores": re.compile(r"scores|logits|energ|^x$|^s$|similarit", re.IGNORECASE),
    "queries": re.compile(r"^(x?q|quer(y|ies)|qs|query_states|q_?\w?)$", re.IGNORECASE),
    "keys": re.compile(r"^(x?k|keys?|ks|key_states|k_?\w?)$", re.IGNORECASE),
    "values": re.compile(r"^(x?v|values?|vs|value_states|v_?\w?)$", re.IGNORECASE),
    "memory": re.compile(r"memory|context|enc|cross|^[yz]$|^kv|source|src|other", re.IGNORECASE),
}


@dataclass(frozen=True)
class Sizes:
    """Every size its own number, so that no two can be confused."""

    batch: int = 2
    heads: int = 3
    queries: int = 5
    keys: int = 7
    size: int = 4
    value_size: int = 6

    @property
    def odd(self) -> bool:
        return self.queries != self.keys


#: Sizes, from the most telling to those that a wrong subject may insist on.
LADDER = (Sizes(), Sizes(value_size=4), Sizes(keys=5), Sizes(2, 3, 5, 5, 4, 4), Sizes(*[4] * 6))


def in_words(axes: str) -> str:
    """The axes that letters stand for."""
    words = {"b": "batch", "h": "heads", "l": "length", "d": "size", "q": "queries", "k": "keys"}
    words["j"] = "heads · size"
    return f"({', '.join(words.get(axis, axis) for axis in axes)})"


@dataclass(frozen=True)
class Form:
    """What a mask means, which numbers say it, and which axes it has."""

    meaning: str  # allowed, blocked, added, lengths
    numbers: str  # bool, float
    axes: str  # a part of bhqk, with 1 for an axis of size 1

    def __str__(self) -> str:
        said = {
            "allowed": "True = may attend",
            "blocked": "True = hidden",
            "added": "added to the scores",
            "lengths": "how many keys are real",
        }
        numbers = "ones" if self.numbers == "float" and self.meaning != "added" else ""
        meaning = said[self.meaning].replace("True", "1" if numbers else "True")
        return f"{meaning}, {in_words(self.axes)}"

    def of(self, allowed: Tensor, sizes: Sizes) -> Tensor:
        """A mask in this form; `allowed` has four axes, of full size or 1."""
        if self.meaning == "lengths":
            full = allowed.expand(sizes.batch, 1, sizes.queries, sizes.keys).sum(dim=-1)
            return full[:, 0, 0] if self.axes == "b" else full[:, 0]
        size_of = {"b": sizes.batch, "h": sizes.heads, "q": sizes.queries, "k": sizes.keys}
        target = [size if name in self.axes else 1 for name, size in size_of.items()]
        mask = allowed.expand(target).reshape([size_of.get(name, 1) for name in self.axes])
        if self.meaning == "added":
            return torch.zeros(mask.shape, dtype=torch.float64).masked_fill(~mask, -torch.inf)
        mask = ~mask if self.meaning == "blocked" else mask
        return mask.double() if self.numbers == "float" else mask.clone()

    def drawn(self, sizes: Sizes, drawn: torch.Generator, empty: bool = False) -> Inputs:
        """A rule in this form that hides some keys of each query; `empty`: all, for some query."""
        batch, keys = sizes.batch, sizes.keys
        if self.meaning == "lengths":
            lengths = torch.tensor([2, max(1, keys - 1), 1, keys])[torch.arange(batch) % 4]
            if empty:
                lengths[-1] = 0
            return {"lengths": lengths}
        full = {"b": batch, "h": sizes.heads, "q": sizes.queries, "k": keys}
        shape = [size if name in self.axes else 1 for name, size in full.items()]
        allowed = torch.rand(shape, generator=drawn) < 0.6
        allowed[..., 0] = torch.rand(shape[:-1], generator=drawn) < 0.5
        allowed[..., 1] = ~allowed[..., 0]
        if empty:
            allowed.view(-1, keys)[-1] = False
        return {"allowed": allowed}


@dataclass(frozen=True)
class Reading:
    """One way to call a subject, and to read what it gives back."""

    kind: str
    layout: str
    sizes: Sizes
    roles: tuple[tuple[str, str], ...]  # which input goes to which parameter
    slot: str | None = None  # the parameter of the mask
    form: Form | None = None
    causal: str | None = None  # the parameter of the causal rule, or "always"
    fixed: tuple[tuple[str, Any], ...] = ()
    numpy: bool = False
    positional: bool = True
    maps: int = 0  # for heads: which of the ways to read the parameters

    def arguments(self, inputs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """What the subject is given."""
        sizes = self.sizes_of(inputs)
        laid: dict[str, Any] = {name: self.lay(inputs[role]) for role, name in self.roles}
        args, kwargs = (list(laid.values()), {}) if self.positional else ([], laid)
        if self.form is not None and self.slot is not None:
            mask = self.form.of(rule_of(inputs, sizes), sizes)
            if self.slot == "4th":
                args.append(mask)
            else:
                kwargs[self.slot] = mask
        if self.causal not in (None, "always"):
            kwargs[str(self.causal)] = bool(inputs.get("causal", False))
        for name, value in self.fixed:
            kwargs.setdefault(name, value(inputs) if callable(value) else value)
        return args, kwargs

    def sizes_of(self, inputs: Mapping[str, Any]) -> Sizes:
        """The sizes of these inputs."""
        if "scores" in inputs:
            batch, heads, queries, keys = inputs["scores"].shape
            return replace(self.sizes, batch=batch, heads=heads, queries=queries, keys=keys)
        x, y = inputs["queries"], inputs["keys"]
        heads = x.shape[1] if x.dim() == 4 else inputs["num_heads"]
        return replace(self.sizes, batch=len(x), heads=heads, queries=x.shape[-2], keys=y.shape[-2])

    def lay(self, x: Tensor) -> Tensor:
        """Canonical axes to the subject's."""
        axes, layout = "bhld" if x.dim() == 4 else "bld", self.layout.replace("j", "hd")
        x = x[tuple(slice(None) if axis in layout else 0 for axis in axes)]
        kept = [axis for axis in axes if axis in layout]
        x = x.permute([kept.index(axis) for axis in layout])
        return (x.flatten(2) if "j" in self.layout else x).contiguous()

    def back(self, raw: Any, inputs: Mapping[str, Any]) -> Tensor:
        """The canonical output in what the subject gave back.

        Raises:
            Refused: where it contains none of that shape.
        """
        sizes = self.sizes_of(inputs)
        parts = parts_of(raw)
        if not parts:
            raise Refused("the result is None")
        if self.kind == "heads":
            ends = [inputs[name].shape[0] for name in ("W_o", "W_v") if inputs[name] is not None]
            possible: list[tuple[int, ...]] = [(sizes.batch, sizes.queries, end) for end in ends]
        else:
            last = sizes.keys if self.kind == "softmax" else inputs["values"].shape[-1]
            possible = [(sizes.batch, sizes.heads, sizes.queries, last)]
        joined = [replace(self, layout="blj")] if self.layout in {"bhld", "blhd"} else []
        seen = []
        for part in parts:
            tensor = as_tensor(part)
            for way, wanted in product([*joined, self], possible):
                shape = way.lay(torch.empty(wanted)).shape
                if tensor.shape == shape:
                    return way._canonical(tensor, wanted)
            seen.append(tuple(tensor.shape))
        raise Refused(f"the result has shape {', '.join(map(str, seen))}, not {tuple(shape)}")

    def _canonical(self, x: Tensor, wanted: tuple[int, ...]) -> Tensor:
        layout = self.layout.replace("j", "hd")
        if "j" in self.layout:
            x = x.unflatten(2, (wanted[1], wanted[3]))
        return x.permute([layout.index(axis) for axis in "bhld" if axis in layout]).reshape(wanted)

    def compute(
        self, subject: Subject, inputs: Mapping[str, Any], thing: Any = None, grad: bool = False
    ) -> Tensor:
        """The subject's output for canonical inputs, with canonical axes."""
        args, kwargs = self.arguments(inputs)
        subject.numpy = self.numpy
        raw = subject.call(args, kwargs, thing, grad)
        try:
            output = self.back(raw, inputs)
        except Refused as error:
            subject.failed(args, kwargs, str(error))
            raise
        subject.came = output.dtype
        return output

    def tried(self, subject: Subject, inputs: Inputs, grad: bool = False) -> Tensor | None:
        """The same, None where the subject cannot be called so."""
        with contextlib.suppress(Refused):
            return self.compute(subject, inputs, grad=grad)
        return None

    def __str__(self) -> str:
        said = f"{', '.join(name for _, name in self.roles)} as {in_words(self.layout)}"
        if self.kind == "softmax":
            said = f"scores as {in_words(self.layout.replace('l', 'q').replace('d', 'k'))}"
        if self.form is not None:
            said += f"; {'mask' if self.slot == '4th' else self.slot}: {self.form}"
        if self.causal is not None:
            said += "; always causal" if self.causal == "always" else f"; {self.causal}=True"
        return said + ("; in NumPy" if self.numpy else "")


def rule_of(inputs: Mapping[str, Any], sizes: Sizes) -> Tensor:
    """Mask and lengths of these inputs as booleans of four axes; all True where none is given."""
    if inputs.get("lengths") is not None:
        return torch.arange(sizes.keys) < inputs["lengths"].reshape(-1, 1, 1, 1)
    if inputs.get("allowed") is not None:
        return inputs["allowed"]
    return torch.ones(1, 1, 1, 1, dtype=torch.bool)


@dataclass
class Signature:
    """Which parameter is what."""

    sequences: list[str]
    slots: list[str]
    causal: str | None
    fixed: dict[str, Any]
    by_keyword: bool


def signature(subject: Subject, count: int, roles: tuple[str, ...] = ()) -> Signature:
    """Which parameters take `count` sequences, which a mask, which the causal rule.

    The others keep their defaults; dropout is 0, and what must be given is None.
    """
    names = subject.names
    found = [[n for n in names if ROLES[role].match(n)] for role in roles]
    sequences = [one[0] for one in found] if all(found) else []
    in_order = sequences == names[:count]
    sequences = sequences or names[:count]
    rest = [name for name in names if name not in sequences]
    causal = next((name for name in rest if CAUSAL.search(name) and "mask" not in name), None)
    fixed: dict[str, Any] = {}
    slots = []
    for name in rest:
        default, must = subject.defaults.get(name), name in subject.required
        if name == causal:
            continue
        if DROPOUT.search(name):
            if must or (isinstance(default, float) and default > 0):
                fixed[name] = 0.0
        elif TRAINING.match(name):
            fixed[name] = False
        elif HEADS.match(name) and roles != ("scores",):
            fixed[name] = lambda inputs: inputs["queries"].shape[1]
        elif SIZE.match(name) and must and "values" in roles:
            fixed[name] = lambda inputs: inputs["queries"].shape[-1]
        elif name in {"dim", "axis"} and must:
            fixed[name] = -1
        elif (MASK.search(name) and not re.search(r"return|need|weights$", name)) or (
            must and not QUIET.search(name)
        ):
            slots.append(name)
        elif must:
            fixed[name] = None
        elif not QUIET.search(name) and default is None and not slots:
            slots.append(name)
    if subject.required == ["*"] or not names:
        sequences = [role[0] for role in roles] or ["scores"]
        slots = ["4th"]
    slots.sort(key=lambda name: not MASK.search(name))
    by_keyword = bool(names and roles) and (not in_order or bool(subject.by_name & set(sequences)))
    return Signature(sequences, slots, causal, fixed, by_keyword)


def declared(subject: Subject, slot: str) -> str | None:
    """What the subject's own words say that its mask means; None where they do not say it."""
    if re.search(r"len", slot):
        return "lengths"
    if re.search(r"allowed|keep|may_attend|can_attend|visible", slot):
        return "allowed"
    if re.search(r"block|forbid|ignore|hidden|masked_out", slot):
        return "blocked"
    words = subject.words
    named = re.compile(rf"\b{re.escape(slot.lower())}\b")
    parts = ["".join(named.split(part, maxsplit=1)[1:]) for part in subject.said]
    if any(parts):  # from its name to that of another parameter
        others = [name.lower() for name in subject.names if len(name) > 3 and name != slot]
        ends = [min([p.index(name) for name in others if name in p] or [400]) for p in parts]
        words = ". ".join(part[:end] for part, end in zip(parts, ends, strict=True))
    elif len([name for name in subject.names if MASK.search(name)]) > 1:
        return None
    kind = r"(\s+(positions?|keys?|entr(y|ies)|tokens?|elements?|values?|places|locations))?"
    says_so = r"\s*(=+|:|→|->|means?|for|where|at|marks?|indicates?|if|is|are)\s"
    says_so += r"((?!\b(true|false|[01]s?|zeros?)\b)[^.;,\n]){0,40}?"  # up to the other's word
    one = r"\b(true|1s?|ones?|nonzero)\b" + kind + says_so
    zero = r"\b(false|0s?|zeros?)\b" + kind + says_so
    hide = r"((?<!not )\bmask(ed|ing)?\b|ignor|block|hidden|hide|padding|padded|exclud|forbid"
    hide += r"|disallow|not (be )?(attend|allow|see)|may not|cannot|must not)"
    show = r"(attend|keep|kept|allow|visible|valid|real|participat|take part|is used|are used"
    show += r"|sees?\b)"
    for says, meaning in (
        (r"\badd(ed|itive|s)?\b", "added"),
        (zero + r"(?<!not )" + show + r"[^.;\n]{0,30}[-−]\s?(10000|1e\d|inf|∞)", "added"),
        (one + hide, "blocked"),
        (one + show, "allowed"),
        (zero + hide, "allowed"),
        (zero + show, "blocked"),
    ):
        if re.search(says, words):
            return meaning
    return "blocked" if slot == "key_padding_mask" else None  # PyTorch's own name


#: What names of axes in a documentation stand for.
LETTERS = {
    "b": r"b|batch|batch_?size|bs|bsz|bz",
    "h": r"(n_?|num_?)?heads?|h|nh|n_h|num_attention_heads",
    "l": r"l|t|s|seq|(seq_?)?len(gth)?|time|sequence|(tgt|src)_len|tokens|positions|n_?ctx",
    "d": r"[dec]|dim|(n_|head_?|hidden_?|embed_?|model_?)?(dim|size|embd)|d_?(model|[kvh])|h_?d"
    r"|features|channels|hidden|embedding",
    "q": r"q|queries|(num_|n_)?quer(y|ies)|(q|query)_?(seq_)?len(gth)?",
    "k": r"k|keys|(num_|n_)?keys?|(k|key|kv)_?(seq_)?len(gth)?",
}


def declared_layout(subject: Subject, tokens: bool = False) -> str | None:
    """The axes that the subject's own words give to its inputs; None where there is no one way."""
    found = set()
    documented = [] if subject.installed else subject.documented  # comments tell of steps too
    for inside in re.findall(r"[(\[]([\w\s,]+)[)\]]", ". ".join(documented)):
        parts = [part.strip() for part in inside.split(",")]
        said = [
            next((letter for letter, word in LETTERS.items() if re.fullmatch(word, part)), part)
            for part in parts
        ]
        said = [{"n": "l" if "b" in said else "b"}.get(part, part) for part in said]
        layout = "".join(said)
        layout = {"bhqk": "bhld", "bhll": "bhld", "bqk": "bld"}.get(layout, layout)
        if tokens:
            layout = {"bl": "bld", "lb": "lbd"}.get(layout, layout)
        if layout in {"bhld", "blhd", "lbhd", "bld", "lbd"}:
            found.add(layout)
    return found.pop() if len(found) == 1 else None


def forms(
    subject: Subject, slot: str, layout: str, given: str | None, heads: bool = False
) -> Iterator[Form]:
    """The forms that the mask of this parameter may have, likelier ones first."""
    says = given or declared(subject, slot)
    if says in (None, "lengths") and (says or re.search(r"valid|seq|pad", slot) or slot == "4th"):
        if layout != "ld":
            yield Form("lengths", "int", "b")
            yield Form("lengths", "int", "bq")
        if says:
            return
    axes = {
        "bld": ("bqk", "b1k", "bk", "qk"),
        "lbd": ("bqk", "b1k", "bk", "qk"),
        "ld": ("qk", "k"),
        "hld": ("hqk", "qk"),
        "d": (),
    }.get(layout, ("bhqk", "b1qk", "bqk", "b11k", "bk", "qk"))
    if heads:  # sequences have no axis of heads, and a mask may
        axes += ("b1qk", "b11k", "bhqk") if layout != "ld" else ()
    kinds = [(way, numbers) for numbers in ("bool", "float") for way in ("allowed", "blocked")]
    kinds.append(("added", "float"))
    for one in axes:
        for meaning, numbers in kinds:
            if says in (None, meaning):
                yield Form(meaning, numbers, one)
    if says is None and layout != "ld" and not re.search(r"mask", slot):
        yield Form("lengths", "int", "b")
