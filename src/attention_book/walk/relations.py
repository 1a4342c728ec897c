"""The sizes of a whole trace: the names that its calls give to one axis, brought together.

Each call names axes its own way: what multi-head attention calls `queries` is `length` to
`split_heads`, and its `heads*d_k` is `heads*size` there. But a call takes and returns the very
tensors of its caller, so two names for one axis of one tensor are one size. These equations leave
a few free dimensions, and make every axis an expression in them: a product (heads*d_k), a quotient
(d_model/heads), a sum (cached+keys) or a number.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from attention_book.shapes import Shapes
from attention_book.shapes.steps import Item, names_in

Name = tuple[int, str]  # a call's number in the trace, and a dimension in it


@dataclass
class Dim:
    """A free dimension: one slider. `names` are what the outermost call that has it calls it."""

    name: str
    names: list[str]
    size: int
    call: int


class Relations:
    """The free dimensions of a trace, by name, and its axes as expressions in these names."""

    def __init__(self, shapes: Shapes) -> None:
        self.calls = shapes.calls
        self._same: dict[Name, Name] = {}
        self._products: dict[Name, Counter[Name]] = {}
        self._sums: dict[Name, list[Name]] = {}
        equations = list(_equations(shapes))
        for a, b in equations:
            if a[1].isidentifier() and b[1].isidentifier():
                self._join(a, b)
        for a, b in equations:
            if "+" in b[1] and a[1].isidentifier():
                self._define_sum(a, b)
            elif "+" in a[1] and b[1].isidentifier():
                self._define_sum(b, a)
        # What still has the same name and size in two calls is one dimension, too: the layers of a
        # model have the same number of heads.
        alike: dict[tuple[str, int], Name] = {}
        for call, traced in enumerate(self.calls):
            for dim, size in traced.sizes.items():
                root = self._root((call, dim))
                if root not in self._sums:
                    self._join(alike.setdefault((root[1], size), root), root)
        for a, b in equations:
            if "+" not in a[1] + b[1]:
                self._define_product(a, b)
        self._written: dict[int, dict[str, None]] = defaultdict(dict)  # names, in order of use
        for step in shapes.every_step:
            for factor in names_in(*step.dims):
                self._written[step.call][factor] = None
        self.free: dict[str, Dim] = {}
        self._label: dict[Name, str] = {}
        for step in shapes.every_step:
            for dim in step.dims:
                self.expression(step.call, dim)

    def expression(self, call: int, dim: str) -> str:
        """A dimension of a call, as written in a table, in the names of the free dimensions."""
        if "+" in dim:
            return "+".join(self.expression(call, term) for term in dim.split("+"))
        powers: Counter[Name] = Counter()
        number = 1
        for factor in dim.split("*"):
            if factor.isdigit():
                number *= int(factor)
                continue
            root = self._root((call, factor))
            if root in self._sums:
                return "+".join(self.expression(*term) for term in self._sums[root])
            powers.update(self._resolved(root))
        over = [name for name, power in powers.items() for _ in range(power)]
        under = [name for name, power in powers.items() for _ in range(-power)]
        factors = [self._free_name(name) for name in over] or [str(number)]
        return "*".join(factors) + "".join(f"/{self._free_name(name)}" for name in under)

    def is_known(self, call: int, name: str) -> bool:
        """Whether a dimension of a call is an axis of some step, or follows from such axes."""
        if call >= len(self.calls) or name not in self.calls[call].sizes:
            return False
        root = self._root((call, name))
        if root in self._sums:
            return all(self.is_known(*term) for term in self._sums[root])
        return all(free in self._label for free in self._resolved(root))

    def _root(self, name: Name) -> Name:
        while name in self._same:
            name = self._same[name]
        return name

    def _join(self, a: Name, b: Name) -> None:
        """Call two dimensions one; it bears the name of the call that began first."""
        first, second = sorted((self._root(a), self._root(b)), key=lambda name: name[0])
        if first != second:
            self._same[second] = first

    def _define_sum(self, single: Name, total: Name) -> None:
        terms = [self._root((total[0], term)) for term in total[1].split("+")]
        root = self._root(single)
        if root not in terms:
            self._sums[root] = terms

    def _define_product(self, a: Name, b: Name) -> None:
        """Solve a = b for one factor: the latest call's, and the last of a product."""
        powers = self._powers(a)
        powers.subtract(self._powers(b))
        powers = Counter({name: power for name, power in powers.items() if power})
        solvable = [name for name in powers if abs(powers[name]) == 1]
        if not solvable:
            return  # nothing new, or a number
        is_factor = {
            self._root((call, factor))
            for call, dim in (a, b)
            if "*" in dim
            for factor in dim.split("*")[1:]
        }
        pivot = max(solvable, key=lambda name: (name in is_factor, name))
        sign = -powers.pop(pivot)
        self._products[pivot] = Counter({name: sign * power for name, power in powers.items()})

    def _powers(self, name: Name) -> Counter[Name]:
        call, dim = name
        powers: Counter[Name] = Counter()
        for factor in dim.split("*"):
            if factor.isidentifier():
                powers.update(self._resolved(self._root((call, factor))))
        return powers

    def _resolved(self, root: Name) -> Counter[Name]:
        """A dimension as powers of free ones."""
        if root not in self._products:
            return Counter({root: 1})
        powers: Counter[Name] = Counter()
        for name, power in self._products[root].items():
            for free, exponent in self._resolved(name).items():
                powers[free] += power * exponent
        return powers

    def _free_name(self, root: Name) -> str:
        if root not in self._label:
            call, dim = root
            members = [
                other for other in self._written[call] if self._root((call, other)) == root
            ] or [dim]
            name = members[0] if members[0] not in self.free else f"{members[0]}_{call}"
            self._label[root] = name
            self.free[name] = Dim(name, members, self.calls[call].sizes[dim], call)
        return self._label[root]


def _equations(shapes: Shapes) -> Iterator[tuple[Name, Name]]:
    """Pairs of names for one axis of one tensor."""
    steps = {step.number: step for step in shapes.every_step}
    listed = {event.number: event.seen for event in shapes.log if isinstance(event, Item)}
    first: dict[int, tuple[int, tuple[str, ...]]] = {}
    for number, step in steps.items():
        call, dims = first.setdefault(listed[number].number, (step.call, step.dims))
        has_tables = shapes.calls[call].table and shapes.calls[step.call].table
        for a, b in zip(dims, step.dims, strict=True):
            # Without a table, a number is the size of an axis whose name is not known.
            if (call, a) != (step.call, b) and (has_tables or not (a.isdigit() or b.isdigit())):
                yield (call, a), (step.call, b)


Sizes = Mapping[str, int]


def value(expression: str, sizes: Sizes) -> int:
    """The size that an expression stands for; 0 for a quotient that is not whole."""
    if "+" in expression:
        return sum(value(term, sizes) for term in expression.split("+"))
    product, *under = expression.split("/")
    result = math.prod(int(f) if f.isdigit() else sizes[f] for f in product.split("*"))
    for divisor in under:
        result, rest = divmod(result, int(divisor) if divisor.isdigit() else sizes[divisor])
        if rest:
            return 0
    return result
