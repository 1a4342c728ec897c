"""Shape tables: read from docstrings, held against arguments, printed by `trace`."""

import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import hypothesis
import pytest
import torch
from cases import Problem, outline, problems, refuses, untouched
from every import EVERY, LAYERS, given_to, tensors
from hypothesis import strategies as st
from torch import Tensor

import attention_book as book
from attention_book import ShapeError, data, trace
from attention_book.shapes import DIMENSIONS, checked
from attention_book.shapes.tables import TABLES
from attention_book.transformer import DecoderCache


@checked
def product(left: Tensor, right: Tensor) -> Tensor:
    """Multiply.

    Shapes:
        left     (batch, rows, inner)
        right    (batch, inner, columns)
        doubled  (batch, rows, inner)
        returns  (batch, rows, columns)
    """
    doubled = left * 2
    return doubled @ right


def table(*rows: str) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """Check a function by a shape table of these rows."""

    def decorate(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        function.__doc__ = "\n    ".join(["Compute.\n\nShapes:", *rows])
        return checked(function)

    return decorate


@table(
    "left (batch, rows, inner)",
    "right (batch, inner, columns)",
    "summed (batch, rows, inner)",
    "result, again, returns (batch, rows, columns)",
)
def product_of_sum(left: Tensor, right: Tensor) -> Tensor:
    summed = left + 1
    result = product(summed, right)
    again = product(summed, right) + result
    return again


LEFT, RIGHT = torch.ones(2, 3, 5), torch.ones(2, 5, 7)


# The checker


def test_a_call_that_fits_computes_and_python_refuses_one_without_an_argument() -> None:
    assert product(LEFT, right=RIGHT).shape == (2, 3, 7)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'right'"):
        product(LEFT)


@pytest.mark.parametrize(
    ("left", "right", "kind", "said"),
    [
        (LEFT, torch.ones(2, 6, 7), ShapeError, ("product", "right", "inner", 5, 6)),
        (LEFT, RIGHT[:1], ShapeError, ("right", "batch", 1, 2)),
        (LEFT[0], RIGHT, ShapeError, ("left", "(batch, rows, inner)", 3, 2, "(3, 5)")),
        (LEFT, [[1.0]], TypeError, ("right", "list")),
        (LEFT, 1.0, TypeError, ("right", "float")),
        (LEFT, None, TypeError, ("right", "NoneType")),
        (LEFT.long(), RIGHT, TypeError, ("left", "torch.int64")),
        (LEFT, RIGHT.double(), TypeError, ("left", "right", "torch.float32", "torch.float64")),
        (LEFT, RIGHT.to("meta"), ValueError, ("left", "right", "cpu", "meta")),
    ],
)
def test_an_argument_that_does_not_fit_is_named(
    left: Tensor, right: object, kind: type[Exception], said: tuple[object, ...]
) -> None:
    with refuses(kind, *said):
        product(left, right=right)


@hypothesis.given(
    problem=problems(heads=(0, 2)),
    argument=st.sampled_from(["queries", "keys", "values", "valid_lens", "mask"]),
    axis=st.integers(0, 3),
    size=st.integers(0, 6),
)
def test_one_axis_of_another_size_is_refused(
    problem: Problem, argument: str, axis: int, size: int
) -> None:
    batch, queries, keys = len(problem.queries), problem.queries.shape[-2], problem.keys.shape[-2]
    problem.valid_lens = torch.zeros(batch, queries, dtype=torch.int64, device=data.device)
    problem.mask = torch.ones(batch, queries, keys, dtype=torch.bool, device=data.device)
    fitting = getattr(problem, argument)
    axis %= fitting.dim()
    hypothesis.assume(size != fitting.shape[axis])
    hypothesis.assume(not (argument == "values" and axis == fitting.dim() - 1))  # of any size
    hypothesis.assume(not (argument == "mask" and size == 1))  # stretches
    problem.call(book.DotProductAttention())
    shape = list(fitting.shape)
    shape[axis] = size
    setattr(problem, argument, fitting.new_zeros(shape))
    with refuses(ShapeError, "DotProductAttention", size):
        problem.call(book.DotProductAttention())


def test_a_shape_error_keeps_its_parts_and_says_the_same_of_other_sizes() -> None:
    with pytest.raises(ShapeError) as refusal:
        product(torch.ones(2, 3, 4), torch.ones(2, 5, 6))
    error = refusal.value
    assert isinstance(error, ValueError)
    assert str(error) == (
        "product: 'inner' is 5 in right (batch, inner, columns) = (2, 5, 6), but 4 in left"
    )
    parts = {**error.parts, "got": 7, "shape": (2, 7, 6), "expected": 8}
    assert str(ShapeError(error.form, **parts)) == str(error).replace("5", "7").replace("4", "8")
    kept = pickle.loads(pickle.dumps(error))
    assert (str(kept), kept.form, kept.parts) == (str(error), error.form, error.parts)


@pytest.mark.parametrize("call", [
    lambda: product(torch.ones(2, 3), torch.ones(2, 5, 6)),
    lambda: book.split_heads(torch.ones(2, 3, 7), 2),
    lambda: book.merge_heads(torch.ones(2, 3)),
    lambda: book.DotProductAttention()(torch.ones(2, 3, 4, 5), torch.ones(2, 3, 4), torch.ones(2)),
    lambda: book.MultiHeadAttention(12, 5),
    lambda: book.MultiHeadAttention(12, 4, num_kv_heads=3),
    lambda: book.SelfAttentionBlock(12, 5),
])  # fmt: skip
def test_the_form_of_a_shape_error_holds_no_size_of_the_call(call: Callable[[], object]) -> None:
    with pytest.raises(ShapeError) as refusal:
        call()
    assert refusal.value.parts
    assert not re.search(r"\d", refusal.value.form)


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_integers_with_which_the_framework_cannot_compare_are_named(dtype: torch.dtype) -> None:
    for lens in (torch.tensor([1, 2]), torch.tensor([[1], [2]])):
        with refuses(TypeError, "valid_lens", str(dtype)):
            book.length_mask(lens.to(dtype), 3)


def test_a_table_that_cannot_be_read_is_an_error_at_definition() -> None:
    for rows, said in (("x  batch, size", "batch, size"), ("y  (batch, size)", r"<lambda>.*'y'")):
        with pytest.raises(ValueError, match=said):
            table(rows)(lambda x: x)


def test_the_table_stays_in_the_docstring_and_the_name_in_place() -> None:
    assert "left     (batch, rows, inner)" in (product.__doc__ or "")
    assert product.__name__ == "product"


@table(
    "queries      (batch, queries, size) or (batch, heads, queries, size)",
    "keys         (batch, keys, size) or (batch, heads, keys, size)",
    "temperature  () or (heads)",
)
def warmed(queries: Tensor, keys: Tensor, temperature: Tensor) -> Tensor:
    shape = (-1, 1, 1) if temperature.dim() else ()
    return queries @ keys.mT / temperature.reshape(shape)


def test_a_row_with_another_choice_of_axes_is_free() -> None:
    queries, keys = torch.ones(2, 3, 5, 7), torch.ones(2, 3, 4, 7)
    assert warmed(queries, keys, torch.tensor(2.0)).shape == (2, 3, 5, 4)
    assert warmed(queries, keys, torch.ones(3)).shape == (2, 3, 5, 4)
    assert warmed(queries[0], keys[0], torch.tensor(2.0)).shape == (3, 5, 4)
    with refuses(ShapeError, "'heads' is 2 in temperature", 3):
        warmed(queries, keys, torch.ones(2))
    with refuses(ShapeError, "keys has 3 axes", "queries has 4"):
        warmed(queries, keys[0], torch.tensor(2.0))
    with refuses(ShapeError, "temperature (heads)", "has an axis 'heads'", "have none"):
        warmed(queries[:, 0], keys[:, 0], torch.ones(2))  # as many heads as examples


IMPORTED = """
import torch
from attention_book import LanguageModel, MultiHeadAttention, trace
x = torch.ones(2, 3, 4)
attention = MultiHeadAttention(4, 2)
print(tuple(attention(x, x, x).shape) == tuple(x.shape))
tokens = LanguageModel(9, 8, 2, 6, 2).generate(torch.ones(1, 2, dtype=torch.int64), 3)
print(tuple(tokens.shape) == (1, 3))
try:
    attention(x, x[:1], x[:1])
    print("unchecked")
except ValueError as error:
    print(type(error).__name__)
with trace() as shapes:
    attention(x, x, x)
print(len(shapes) > 0)
"""


@pytest.mark.parametrize(
    ("options", "checks", "said"),
    [
        ([], "on", ["True", "True", "ShapeError", "True"]),
        ([], "off", ["True", "True", "unchecked", "True"]),
        (["-OO"], "on", ["True", "True", "unchecked", "False"]),
    ],
)
def test_checks_can_be_turned_off_and_docstrings_be_gone(
    options: list[str], checks: str, said: list[str]
) -> None:
    environment = {**os.environ, "ATTENTION_BOOK_CHECKS": checks}
    ran = subprocess.run(
        [sys.executable, *options, "-c", IMPORTED], env=environment, capture_output=True, text=True
    )
    assert ran.stdout.split() == said, ran.stderr


# What the package states about itself

PACKAGE_TABLES = [table for code, table in TABLES.items() if "attention_book" in code.co_filename]


def test_every_function_of_the_contract_has_a_table() -> None:
    tables = {code.co_qualname.split(".")[0] for code in TABLES}
    assert {name.split(",")[0] for name in EVERY} <= tables


def factors(table: object) -> set[str]:
    """The dimension names in a table; a product such as heads*size holds two."""
    rows = table.rows.values()
    text = " ".join(row.text() for row in rows)
    return set(re.findall(r"[A-Za-z_]\w*", text)) - {"or"}


def test_every_dimension_of_the_package_has_a_colour_that_no_other_of_its_table_has() -> None:
    """But for the width of a value and its share in one head, which are one thing twice."""
    for table in PACKAGE_TABLES:
        names = factors(table)
        assert names <= set(DIMENSIONS), f"{table.function_name}: some stand in no palette"
        if "value_size" in names:
            names.discard("d_v")
        colours = {DIMENSIONS[name].colour for name in names}
        assert len(colours) == len(names), f"{table.function_name}: {sorted(names)}"


def test_colours_stand_out_from_white_and_from_near_black() -> None:
    def luminance(colour: str) -> float:
        channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for name, (colour, _) in DIMENSIONS.items():
        for ground in ("#ffffff", "#121212"):
            dark, light = sorted([luminance(colour), luminance(ground)])
            assert (light + 0.05) / (dark + 0.05) >= 3, f"{name} on {ground}"


def calls(s: SimpleNamespace) -> dict[str, Callable[[], object]]:
    """One call of everything with a table, every dimension its own prime."""
    found: dict[str, Callable[[], object]] = {
        name: partial(make(s), *given_to(names, s))
        for name, (make, names) in (EVERY | LAYERS).items()
    }
    attend, cache = EVERY["MultiHeadAttention"][0](s), book.KeyValueCache()
    *qkv, lens = given_to(EVERY["MultiHeadAttention"][1], s)
    attend(*qkv, cache=cache)
    mask, long_mask = (
        torch.ones(s.queries, n * s.keys, dtype=torch.bool, device=data.device) for n in (1, 2)
    )
    norm, decoder = EVERY["LayerNorm"][0](s), LAYERS["DecoderLayer"][0](s)
    return found | {
        "with a mask": lambda: attend(*qkv, lens, mask=mask),
        "with a cache": lambda: attend(*qkv, mask=long_mask, cache=cache),
        "in half precision": lambda: norm.bfloat16()(tensors(s)["sequence"].bfloat16()),
        "a step": lambda: decoder(*given_to("targets sequence lens", s), cache=DecoderCache()),
    }


def test_no_table_of_the_package_lies_and_every_row_is_seen(sizes: SimpleNamespace) -> None:
    seen: dict[str, set[str]] = {}
    for name, call in calls(sizes).items():
        with trace() as shapes:
            call()
        assert len(shapes) >= 1, f"{name}: the trace saw {shapes}"
        for step in shapes:
            seen.setdefault(step.function, set()).add(step.name)
    for table in PACKAGE_TABLES:
        rows = {row.name for row in table.rows.values() if row.kind == "floating"}
        missing = rows - seen.get(table.code.co_qualname.split(".")[0], set()) - {"returns"}
        assert not missing, f"{table.code.co_qualname}: {missing} never appear"


# trace


def test_calls_on_the_way_to_a_step_stand_beneath_it() -> None:
    with trace() as shapes:
        product_of_sum(LEFT, RIGHT)
    assert outline(shapes) == (
        "1 left, 2 right, 3 summed, 4 result, 4.1 left, 4.2 right, 4.3 doubled, 4.4 returns, "
        "5 again, 5.1 left, 5.2 right, 5.3 doubled, 5.4 returns"
    )
    assert "\n  4.1" in str(shapes)


def test_numbers_in_a_real_nest_are_unique_and_in_order(sizes: SimpleNamespace) -> None:
    call = calls(sizes)["MultiHeadAttention"]
    with trace() as shapes:
        call()
    numbers = [tuple(map(int, step.number.split("."))) for step in shapes]
    assert numbers == sorted(set(numbers))
    assert max(map(len, numbers)) == 3  # multi-head → dot product → masked softmax
    for here, after in pairwise(numbers):
        assert len(after) <= len(here) + 1


@pytest.mark.parametrize(
    ("rows", "about"),
    [
        (["transposed (batch, size)"], "transposed"),
        (["returns (batch, size)"], "returns"),
        (["transposed (size, batch)", "returns (batch, size)"], "returns"),
        (["bound_again (batch, size)"], "bound_again"),
    ],
)
def test_a_table_that_lies_raises(rows: list[str], about: str) -> None:
    @table("x (batch, size)", *rows)
    def lying(x: Tensor) -> Tensor:
        bound_again = x * 2
        bound_again = bound_again.T
        transposed = x.T
        return transposed

    x = torch.ones(2, 3)
    lying(x)  # off, only arguments are looked at
    with pytest.raises(ShapeError, match=f"lying.*'batch' is 3 in {about}.*2 in x"), trace():
        lying(x)


def test_the_trace_function_that_was_there_is_put_back() -> None:
    def debugger(frame: object, event: str, arg: object) -> None:
        return None

    before, after = sys.gettrace(), []
    sys.settrace(debugger)
    try:
        for error in (None, ZeroDivisionError):
            with suppress(ZeroDivisionError), trace():
                product(LEFT, RIGHT)
                if error:
                    raise error
            after.append(sys.gettrace())
    finally:
        sys.settrace(before)
    assert after == [debugger, debugger]


def test_steps_go_on_after_an_error_that_was_caught() -> None:
    @table("x (batch, size)", "doubled (batch, size)")
    def failing(x: Tensor) -> Tensor:
        doubled = x * 2
        raise ZeroDivisionError(doubled)

    with trace() as shapes:
        with pytest.raises(ZeroDivisionError):
            failing(torch.ones(2, 3))
        product(LEFT, RIGHT)
    assert outline(shapes) == "1 x, 2 doubled, 3 left, 4 right, 5 doubled, 6 returns"


@hypothesis.given(problem=problems(sizes=(4, 4, 6), mask_heads=2))
def test_watching_changes_no_number_and_one_name_is_one_size_in_a_call(problem: Problem) -> None:
    attention = book.MultiHeadAttention(4, 2, value_size=6)
    attention.to(problem.queries.dtype).to(data.device)
    alone = problem.call(attention)
    with untouched(*problem.tensors()), trace() as shapes:
        watched = problem.call(attention)
    assert torch.equal(alone, watched)
    assert [step.shape for step in shapes][:3] == [
        tuple(x.shape) for x in (problem.queries, problem.keys, problem.values)
    ]
    assert len(shapes) >= 29
    sizes: dict[str, dict[str, int]] = {}
    for step in shapes:
        call = f"{step.number.rpartition('.')[0]} {step.function}"
        for dim, size in zip(step.dims, step.shape, strict=True):
            assert sizes.setdefault(call, {}).setdefault(dim, size) == size


def test_a_block_without_a_step_says_so() -> None:
    with trace() as shapes:
        torch.ones(2) + 1
    assert str(shapes).startswith("no step was traced")


def test_the_display_has_columns_and_names_and_colours_every_dimension() -> None:
    queries, keys = torch.ones(2, 3, 5), torch.ones(2, 4, 5)
    with trace() as shapes:
        book.DotProductAttention()(queries, keys, keys)
    for start in ("(batch", "(2,"):
        assert len({line.index(start) for line in str(shapes).splitlines()}) == 1
    page = shapes._repr_html_()
    for step in shapes:
        assert step.number in page
        assert step.name in page
        for dim in set(step.dims) & set(DIMENSIONS):
            assert re.search(rf"{DIMENSIONS[dim].colour}[^>]*>{dim}<", page), dim
    assert page.count("<tr>") == len(shapes) + 1


def test_the_steps_are_the_same_where_an_empty_row_is_zeroed() -> None:
    steps = []
    for lens in ([2, 3], [0, 3]):
        with trace() as shapes:
            book.masked_softmax(torch.zeros(2, 2, 4), torch.tensor(lens))
        steps.append(list(shapes))
    assert steps[0] == steps[1]


def test_a_notebook_shows_the_readers_line_and_the_sentence_without_our_frames():
    code = (
        "import torch\nfrom attention_book import DotProductAttention\n"
        "def mine(queries, keys):\n    return DotProductAttention()(queries, keys, keys)\n"
        "mine(torch.zeros(2, 3, 4), torch.zeros(2, 3, 5))"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "IPython", "--quick", "--colors=nocolor", "-c", code],
        capture_output=True,
        text=True,
    )
    shown = ran.stdout + ran.stderr
    assert "'size' is 5 in keys" in shown
    assert "return DotProductAttention()(queries, keys, keys)" in shown
    assert "tables.py" not in shown
    assert "module.py" not in shown
    assert shown.count("\n") < 20
