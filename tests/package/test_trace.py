"""`trace` of code that is not the book's, and the notes of operations that fail in it."""

from __future__ import annotations

import asyncio
import gc
import linecache
import re
import sys
import threading
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch
from cases import outline
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import GPT2Config, GPT2LMHeadModel

import attention_book as book
from attention_book import ShapeError, split_heads, trace
from attention_book.shapes import Shapes
from attention_book.walk import ShapeWalk
from attention_book.walk.relations import value
from attention_book.walk.steps import start_of, walk_of


def ones(*shape: int) -> Tensor:
    return torch.ones(shape)


def names(shapes: Shapes) -> list[str]:
    return [step.name for step in shapes]


def dims_of(shapes: Shapes, name: str) -> tuple[str, ...]:
    return next(step.dims for step in shapes if step.name == name)


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    weights = scores.softmax(-1)
    return weights @ v


class Heads(nn.Module):
    """Attention as a student writes it."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads, self.d_k = num_heads, d_model // num_heads
        self.to_q, self.to_k = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.out = nn.Linear(d_model, d_model)

    def cut(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        return x.view(B, T, self.num_heads, self.d_k).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q = self.cut(self.to_q(x))
        k = self.cut(self.to_k(x))
        mixed = attend(q, k, k)
        merged = mixed.transpose(1, 2).reshape(B, T, C)
        return self.out(merged)


# What is listed


def test_every_line_of_a_function_is_a_step_beneath_the_line_that_calls_it() -> None:
    q, k, v = ones(2, 3, 4), ones(2, 6, 4), ones(2, 6, 5)
    with trace() as shapes:
        doubled = q * 2
        output = attend(doubled, k, v)
    assert outline(shapes) == "1 doubled, 2 output, 2.1 q, 2.2 k, 2.3 v, 2.4 scores, 2.5 weights"
    assert [step.shape for step in shapes][-2:] == [(2, 3, 6), (2, 3, 6)]
    assert torch.equal(output, attend(doubled, k, v))
    with trace() as shapes:
        attend(q, k, v)
    assert outline(shapes) == "1 q, 2 k, 3 v, 4 scores, 5 weights, 6 returns"


class Pair(NamedTuple):
    """Two tensors."""

    left: Tensor
    right: Tensor


def test_every_way_to_bind_a_name_is_seen() -> None:
    class Box:
        held: Tensor

    box = Box()
    x = ones(2, 3)
    with trace() as shapes:
        a, (b, *rest) = x, (x + 1, x + 2)
        c = d = x[0]
        if (e := x.sum()) > 100:
            c = e
        x += 1
        box.held = x.T
        pair = Pair(x + 1, x + 2)
        table = {"q": x * 2, "n": 3}
        many = [x * i for i in range(9)]
        with torch.no_grad():
            g = x * 1
        for h in (x, x * 2):
            del h
    assert names(shapes) == [
        *("a", "b", "rest[0]", "c", "d", "e", "x", "box.held"),
        *("pair.left", "pair.right", "table['q']", "many[0]", "many[1]", "g", "h", "h"),
    ]
    assert "9 in all" in str(shapes)
    assert (a, b, rest, c, d, pair, table, many, g) is not None


def test_a_loop_shows_its_first_passes_and_a_count() -> None:
    layers = nn.ModuleList(Heads(6, 2) for _ in range(5))
    x = ones(1, 4, 6)
    with trace() as shapes:
        for layer in layers:
            x = layer(x)
        y = [attend(x, x, x) for _ in range(7)]
    bound = [(step.name, step.times) for step in shapes if "." not in step.number]
    assert bound == [("x", 1), ("x", 5), ("y[0]", 1), ("y[1]", 7)]
    assert sum(step.name == "merged" for step in shapes) == 2
    assert len(y) == 7
    assert "5 in all" in str(shapes)
    assert "7 in all" in shapes._repr_html_()


def test_modules_of_libraries_are_one_step_until_depth_opens_them() -> None:
    layer = nn.TransformerEncoderLayer(6, 2, 8, batch_first=True)
    x = ones(2, 4, 6)
    with trace() as closed:
        y = nn.Sequential(Heads(6, 2), layer)(x)
    assert "linear1()" not in names(closed)
    assert [name for name in names(closed) if name.endswith("()")] == ["to_q()", "to_k()"]
    with trace(depth=1) as opened:
        y = layer(x)
    assert outline(opened).startswith("1 y, 1.1 src")
    assert "linear1()" not in names(opened)
    with trace(depth=1) as bare:
        layer(x)
    assert names(bare)[0] == "src"
    with trace() as result:
        layer(x)
    assert outline(result) == "1 TransformerEncoderLayer()"
    assert result.steps[0].shape == y.shape


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
@pytest.mark.parametrize("depth", [None, 3])
def test_what_pytorch_fuses_computes_the_same(depth: int | None) -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, batch_first=True), 2)
    x, padding = torch.randn(1, 4, 6), torch.tensor([[False, False, True, True]])
    for model in (encoder, nn.Sequential(encoder)):
        given = {"src_key_padding_mask": padding} if model is encoder else {}
        with torch.no_grad():
            alone = model.eval()(x, **given)
            with trace(depth) as shapes:
                traced = model(x, **given)
        assert torch.equal(traced, alone)
        assert "traced" in names(shapes)


def test_a_model_of_hugging_face_computes_the_same_and_opens_by_depth() -> None:
    sizes = {"vocab_size": 50, "n_positions": 16, "n_embd": 12, "n_layer": 3, "n_head": 3}
    model = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)).eval()
    ids = torch.arange(7)[None]
    with torch.no_grad():
        alone = model(ids).logits
        with trace() as shapes:
            out = model(ids)
        assert str(shapes) == "1   out.logits   (1, 7, 50)"
        assert torch.equal(out.logits, alone)
        with trace(depth=4) as shapes:
            out = model(ids)
    assert torch.equal(out.logits, alone)
    assert "query_states" in names(shapes)
    assert ShapeWalk(shapes).describe().startswith("1 steps of GPT2LMHeadModel")


# Names of dimensions


def test_names_are_given_or_read_from_a_shape_or_declared() -> None:
    with trace(batch=2) as shapes:
        y = Heads(12, 3)(ones(2, 5, 12))
    for name in ("x", "merged"):
        assert dims_of(shapes, name) == ("batch", "T", "C")
    assert dims_of(shapes, "q") == ("batch", "heads", "T", "d_k")
    assert dims_of(shapes, "y") == ("batch", "5", "12")  # T and C are those of another function
    assert y.shape == (2, 5, 12)


def test_no_name_is_invented_where_one_size_has_two() -> None:
    with trace(batch=4, heads=4, length=5) as shapes:
        x = ones(4, 4, 5, 5)
        y = x[:, 0, 0]
        z = ones(1, 5, 7)
    dims = [("4", "4", "5", "5"), ("4", "length"), ("1", "length", "7")]
    assert [dims_of(shapes, name) for name in "xyz"] == dims

    sizes = SimpleNamespace()

    def read(x: Tensor) -> None:
        B, sizes.T = x.shape[:2]
        w = x.new_zeros(B, sizes.T, 3)
        first = x[0]
        assert (w, first) is not None

    for shape, first in (((3, 3), ("3",)), ((2, 4), ("T",)), ((6, 7, 4, 6), ("T", "4", "6"))):
        with trace() as shapes:
            read(ones(*shape))
        assert dims_of(shapes, "first") == first
    assert (y, z) is not None


@pytest.mark.parametrize(("batch", "length", "last"), [(2, 5, "d_model"), (3, 8, "8")])
def test_a_declared_size_is_that_of_no_other_axis(batch: int, length: int, last: str) -> None:
    def embedded(ids: Tensor, d_model: int, num_heads: int) -> Tensor:
        x = ones(*ids.shape, d_model)
        return x * num_heads

    with trace() as shapes:
        embedded(torch.zeros(batch, length, dtype=torch.int64), 8, 2)
    assert dims_of(shapes, "ids") == (str(batch), str(length))
    assert dims_of(shapes, "x") == (str(batch), str(length), last)


class Decoder(nn.Module):
    """A layer, and a matrix of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.out, self.weight = nn.Linear(12, 5), nn.Parameter(ones(12, 7))

    def forward(self, source: Tensor, d_model: int, num_heads: int) -> Tensor:
        B, T, _ = source.shape
        weights = source.new_ones(B, 1, T)
        context = (weights @ source)[:, 0]
        projected = context @ self.weight
        assert (d_model, num_heads, projected) is not None
        return self.out(context)


@pytest.mark.parametrize(("length", "num_heads"), [(5, 7), (7, 5)])
def test_a_size_of_a_parameter_is_that_of_no_other_name(length: int, num_heads: int) -> None:
    source = ones(2, length, 12)
    with trace() as shapes:
        B, T, _ = source.shape
        logits = Decoder()(source, 12, num_heads)
    found = [dims_of(shapes, name) for name in ("context", "projected", "logits")]
    assert found == [("B", "d_model"), ("B", "7"), ("B", "5")]
    assert (B, T, logits) is not None


def test_a_function_of_the_book_names_what_it_returns() -> None:
    x = ones(2, 5, 12)
    with trace() as shapes:
        x = x * 2
        heads = split_heads(x, 3)
    assert outline(shapes).startswith("1 x, 2 heads, 2.1 x")
    assert dims_of(shapes, "heads") == ("batch", "heads", "length", "size")
    with trace() as alone:
        heads = split_heads(x, 3)
    assert outline(alone) == "1 x, 2 by_head, 3 returns"
    assert heads.shape == (2, 3, 5, 4)


@pytest.mark.parametrize(("name", "least"), [("batch", 0), ("depth", 1)])
def test_a_size_or_a_depth_that_is_none_is_refused(name: str, least: int) -> None:
    for kind, given, said in (
        *((TypeError, each, "an integer") for each in (1.5, "1")),
        (ValueError, least - 1, f"at least {least}"),
    ):
        with pytest.raises(kind, match=f"trace: {name} must be {said}"):
            trace(**{name: given})


# What it leaves alone


def test_no_tensor_is_kept_and_nothing_stays_installed() -> None:
    def inner(x: Tensor) -> Tensor:
        large = x * 2
        seen.append(weakref.ref(large))
        return large.sum()

    seen: list[weakref.ref[Tensor]] = []
    before = sys.gettrace(), threading.gettrace(), sys._getframe().f_trace
    with trace() as shapes:
        mine = ones(50)
        total = inner(mine)
        alive = weakref.ref(mine)
    assert seen[0]() is None
    del mine
    gc.collect()
    assert alive() is None
    assert (sys.gettrace(), threading.gettrace(), sys._getframe().f_trace) == before
    assert torch.overrides._len_torch_function_stack() == 0
    assert names(shapes) == ["mine", "total", "x", "large"]
    assert total == 100


def test_no_variable_is_lost_or_changed() -> None:
    class Body:
        before = 1
        with trace():
            inside = ones(2)

    own: dict[str, Any] = {"before": 1}
    exec("with trace():\n    inside = ones(2)", {"trace": trace, "ones": ones}, own)
    kept = locals()
    with trace():
        inside = ones(2)
    assert kept["own"] is own
    assert [space["before"] for space in (vars(Body), own)] == [1, 1]
    assert all(len(each) == 2 for each in (Body.inside, own["inside"], inside))


def test_training_under_a_trace_ends_with_the_same_bits() -> None:
    def trained(block: Any) -> list[Tensor]:
        torch.manual_seed(0)
        model = nn.Sequential(Heads(6, 2), nn.Dropout(0.5), nn.Linear(6, 1))
        optimizer = torch.optim.Adam(model.parameters())
        with block:
            for _ in range(3):
                loss = model(torch.randn(2, 4, 6)).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return [*model.parameters()]

    assert all(map(torch.equal, trained(trace()), trained(nullcontext())))


def test_no_code_of_an_object_runs_because_it_is_bound() -> None:
    class Guarded:
        def __getattr__(self, name: str) -> None:
            raise AssertionError(f"{name} was asked for")

        def __repr__(self) -> str:
            raise AssertionError("its text was asked for")

    with trace() as shapes:
        guarded = Guarded()
        other = guarded
        x = ones(2)
        table = {guarded: x + 1, (0, "a"): x + 2}
    assert names(shapes) == ["x", "table[Guarded]", "table[(0, 'a')]"]
    assert other is guarded
    assert len(x) == len(table)


def test_generators_and_coroutines_go_on_where_they_waited() -> None:
    def parts(x: Tensor) -> Iterator[Tensor]:
        first = x[:1]
        yield first
        second = x[1:]
        yield second

    async def later(x: Tensor) -> Tensor:
        await asyncio.sleep(0)
        after = x * 2
        return after

    async def pieces(x: Tensor) -> AsyncIterator[Tensor]:
        for each in x:
            await asyncio.sleep(0)
            yield each

    async def main() -> Tensor:
        a = await later(ones(4))
        b, c, d, _ = await asyncio.gather(*(later(ones(n)) for n in (4, 3, 2, 1)))
        async for piece in pieces(a[:2]):
            d = d + piece
        return b + c.sum()

    with trace() as shapes:
        last = 0
        for part in parts(ones(3, 2)):
            last = len(part)
        done = asyncio.run(main())
    assert [name for name in names(shapes) if name != "x"] == [
        *("part", "first", "second", "part", "done", "a", "after", "b", "c", "d", "_"),
        *("piece", "each", "each", "d", "piece", "d", "after", "after"),
    ]
    assert [step.times for step in shapes if step.times > 1] == [4]
    assert last == 2
    assert done.shape == (4,)


def test_threads_compiled_functions_and_recursion_are_named_in_a_sentence() -> None:
    compiled = torch.compile(attend, backend="eager", fullgraph=True)
    x = ones(2, 3, 4)

    def halve(x: Tensor, times: int) -> Tensor:
        half = x[::2]
        return halve(half, times - 1) if times else half

    with trace() as shapes:
        y = compiled(x, x, x)
        thread = threading.Thread(target=attend, args=(x, x, x))
        thread.start()
        thread.join()
        z = halve(ones(64), 20)
    assert torch.equal(y, attend(x, x, x))
    assert str(shapes).splitlines()[-3:] == [
        "What ran inside a compiled function is not listed.",
        "What ran in other threads is not listed.",
        "halve calls itself; 8 calls deep are listed.",
    ]
    assert names(shapes)[:2] == ["y", "z"]
    assert len(z) == 1


def test_a_block_in_a_block_keeps_to_itself() -> None:
    with trace() as outer:
        a = ones(2)
        with trace() as inner:
            b = a + 1
        c = b + 1
    assert (names(outer), names(inner)) == (["a", "c"], ["b"])
    assert len(c) == 2


def test_blocks_that_wait_in_turn_end_in_any_order() -> None:
    async def block(pauses: int) -> Shapes:
        with trace() as shapes:
            x = ones(pauses)
            for _ in range(pauses):
                await asyncio.sleep(0)
        assert len(x) == pauses
        return shapes

    async def main() -> list[Shapes]:
        return await asyncio.gather(block(1), block(3))

    before = sys.gettrace()
    assert [names(each)[0] for each in asyncio.run(main())] == ["x", "x"]
    assert sys.gettrace() is before
    assert torch.overrides._len_torch_function_stack() == 0


def test_a_block_is_entered_once() -> None:
    before, block = sys.gettrace(), trace()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="entered before"), block, block:
            pass
        assert sys.gettrace() is before


def opened() -> Iterator[Shapes]:
    with trace() as shapes:
        yield shapes


watched = pytest.fixture(opened)


class Opener:
    """A block that a class keeps."""

    def __enter__(self) -> Shapes:
        self.block = trace()
        return self.block.__enter__()

    def __exit__(self, *error: Any) -> None:
        self.block.__exit__(*error)


@pytest.mark.parametrize("way", [contextmanager(opened), Opener])
def test_a_block_that_is_left_open_goes_on_in_its_caller(way: Any) -> None:
    before = sys._getframe().f_trace
    with way() as shapes:
        x = ones(2, 3, 4)
        y = attend(x, x, x)
    assert outline(shapes) == "1 x, 2 y, 2.1 q, 2.2 k, 2.3 v, 2.4 scores, 2.5 weights"
    assert sys._getframe().f_trace is before
    assert len(y) == 2


def test_a_block_of_a_fixture_lists_the_test(watched: Shapes) -> None:
    x = ones(2)
    assert names(watched) == ["x"]
    assert len(x) == 2


# Operations that fail

PLACES = {
    "q": ones(2, 3, 4),
    "k": ones(2, 6, 4),
    "v": ones(2, 7, 5),
    "x": ones(2, 5, 12),
    "cls": ones(2, 12),
    "by_head": ones(2, 5, 3, 4),
    "scores": ones(2, 4, 3, 6),
    "tall": ones(2, 4, 6, 3),
    "weights": ones(2, 3, 6),
    "mask": ones(2, 6) > 0,
    "query_mask": ones(2, 3) > 0,
    "shared": ones(2, 6, 5),
    "to_heads": nn.Linear(12, 8),
    "narrow": nn.Linear(5, 8),
    "both": [ones(2, 3, 4), ones(2, 6, 4)],
    "turned": ones(2, 5, 3, 4).transpose(1, 2),
    "square": ones(2, 3, 3, 4).transpose(1, 2),
    "chances": ones(2, 3, 6).softmax(-1),
    "row_mask": ones(2, 1, 6) > 0,
    "self": SimpleNamespace(linear=nn.Linear(5, 8)),
    "attention": nn.MultiheadAttention(8, 2, batch_first=True),
    "recurrent": nn.GRU(8, 2),
    "norm": nn.LayerNorm(5),
    "table": nn.Embedding(5, 4),
    "ids": torch.arange(6)[None],
    "classes": torch.zeros(2, 5, dtype=torch.long),
    "away": ones(2, 3, 4).to("meta"),
    "far": ones(2, 6, 4).to("meta"),
    "torch": torch,
    "F": F,
}


@pytest.mark.filterwarnings("ignore:The use of `x.T`:UserWarning")
@pytest.mark.parametrize(
    ("line", "said", "mend"),
    [
        ("q @ k", "Axis -1 of q, of size 4, meets axis -2 of k, of size 6", "k.transpose(-2, -1)"),
        ("torch.bmm(q, k)", "meets axis -2 of k", "k.transpose(-2, -1)"),
        ("scores @ shared", "Axis -3 of scores", "shared.unsqueeze(1)"),
        ("torch.bmm(scores, tall)", "multiplies tensors of 3", "scores @ tall"),
        ("weights @ v", "Axis -1 of weights, of size 6, meets axis -2 of v, of size 7", None),
        ("torch.matmul(other=k, input=q)", "Axis -1 of q", "k.transpose(-2, -1)"),
        ("q @ k.T", "axis -2 of k.T, of size 6", "k.mT"),
        ("(q @ k.mT).softmax(-1) @ q", "meets axis -2 of q", None),
        ("torch.einsum('bqk,bkd->bqd', chances, q)", "'k' is 6 in chances, but 3 in q", None),
        ("k @ q", "Axis -1 of k", None),
        ("q @ q", "Axis -1 of q", None),
        ("torch.einsum('bqd,bdk->bqk', q, k)", "'d' is 4 in q, but 6 in k", "k.transpose(-2, -1)"),
        ("x.mT.view(2, 60)", "another order", "x.mT.reshape(2, 60)"),
        ("turned.view(2, 5, 12)", "would mix", "turned.transpose(1, 2).reshape(2, 5, 12)"),
        ("square.view(2, 3, 12)", "another order", None),
        ("x.view(2, 6, 3, 4)", "x has 120 numbers", "x.view(2, 5, 3, 4)"),
        ("x.view(2, 5, 5, 3)", "has 150", None),
        ("torch.cat([q, k], dim=-1)", "Axis 1 of q, of size 3", "torch.cat([q, k], dim=1)"),
        ("torch.cat(both, dim=-1)", "Axis 1 of both[0], of size 3", "torch.cat(both, dim=1)"),
        ("torch.stack(dim=1, tensors=[*both])", "Axis 1 of [*both][0], of size 3", None),
        ("torch.cat([cls, x], dim=1)", "cls has 2 axes, x 3", "cls.unsqueeze(1)"),
        ("torch.stack([q, k])", "Axis 1 of q, of size 3, meets axis 1 of k, of size 6", None),
        ("x + cls", "Axis -2 of x, of size 5, meets axis -2 of cls", "cls.unsqueeze(1)"),
        ("scores.masked_fill(mask, 0)", "meets axis -2 of mask", "mask[:, None, None, :]"),
        ("scores.masked_fill(row_mask, 0)", "axis -3 of row_mask", "row_mask.unsqueeze(2)"),
        ("scores.masked_fill(query_mask, 0)", "Axis -1 of scores", None),
        ("torch.where(mask, weights, 0)", "Axis -2 of mask", "mask.unsqueeze(1)"),
        ("to_heads(by_head)", "which takes 12", "by_head.flatten(-2)"),
        ("narrow(x)", "Axis -1 of x, of size 12", "x.transpose(-2, -1)"),
        ("self.linear(x)", "Axis -1 of x, of size 12", "x.transpose(-2, -1)"),
        ("attention(x, x, x)", "Axis -1 of x, of size 12, meets embed_dim of Multihead", None),
        ("recurrent(input=x)", "Axis -1 of x, of size 12, meets input_size of GRU", None),
        ("F.scaled_dot_product_attention(q, k, v)", "each key has one value", None),
        ("F.scaled_dot_product_attention(by_head, square, square)", "Axis -3 of by_head", None),
        ("F.scaled_dot_product_attention(q, k, k, mask)", "-2 of the scores", "mask.unsqueeze(1)"),
        ("scores[mask]", "Axis 1 of scores, of size 4, meets axis 1 of mask, of size 6", None),
        ("away @ far", "Axis -1 of away, of size 4, meets axis -2", "far.transpose(-2, -1)"),
        ("scores.softmax(4)", "An axis of scores is one of (0, 1, 2, 3), not 4.", None),
        ("x.transpose(dim0=-4, dim1=1)", "one of (-3, -2, -1), not -4.", None),
        ("x.unsqueeze(5)", "A new axis of x is one of (0, 1, 2, 3), not 5.", None),
        ("torch.cat([q, k], dim=3)", "An axis of q is one of (0, 1, 2), not 3.", None),
        ("x.permute(0, 2)", "permute takes each axis of x once: 3, not 2.", None),
        ("norm(x)", "layer_norm is for last axes of sizes (5), but x has (12).", None),
        ("table(ids)", "ids holds 5, but weight has rows 0 to 4.", None),
        ("F.cross_entropy(x, classes)", "so classes must be (2, 12).", "x.transpose(-2, -1)"),
    ],
)
def test_a_note_says_which_axes_meet_and_a_mend_only_if_it_is_the_one(
    line: str, said: str, mend: str | None
) -> None:
    source = f"def failing():\n    first = q * 2\n    result = {line}\n"
    linecache.cache["<failing>"] = len(source), None, source.splitlines(True), "<failing>"
    space = dict(PLACES)
    exec(compile(source, "<failing>", "exec"), space)
    with pytest.raises((RuntimeError, IndexError, AssertionError)) as caught, trace() as shapes:
        space["failing"]()
    note, steps = caught.value.__notes__
    assert note.startswith(f"In line 3 of failing, `result = {line}`:")
    assert said in note
    for name, tensor in PLACES.items():
        if isinstance(tensor, Tensor) and re.search(rf"\b{name}\b(?!\.m?T)", line):
            assert note.count(f"\n    {name} {tuple(tensor.shape)}\n") == 1
    found = re.findall(r"^    (.*?)(, of shape .*)? would fit\.$", note, re.MULTILINE)
    assert [text for text, _ in found] == ([mend] if mend else [])
    for text, is_operand in found:
        operand = re.split(r"[.\[]", text)[0]
        eval(re.sub(rf"\b{operand}\b(\.T)?", text, line) if is_operand else text, space)
    assert steps == "The steps up to it:\n1   first   (2, 3, 4)"
    assert names(shapes) == ["first"]


def test_a_note_names_what_a_line_has_no_name_for_as_it_is_written() -> None:
    layer = Heads(12, 3)
    space: dict[str, Any] = {"q": ones(2, 3, 4)}
    exec("def without_a_source(k):\n    return q @ k.mT.mT", space)
    for fail, said in (
        (
            lambda: layer.cut(layer.to_q(ones(2, 5, 12)[..., :5] * 2)),
            ("\n    ones(2, 5, 12)[..., :5] * 2 (2, 5, 5)\n", "takes 12"),
        ),
        (lambda: space["without_a_source"](ones(2, 6, 4)), ("(2, 3, 4)", "(2, 6, 4)")),
        (lambda: ones(2, 4, 6)[:, :, ones(2, 6) > 0], ("\n    ones(2, 6) > 0 (2, 6) torch.bool",)),
    ):
        with pytest.raises((RuntimeError, IndexError)) as caught, trace():
            fail()
        note = caught.value.__notes__[0]
        assert all(part in note for part in said)
        assert "would fit" not in note


def test_what_mends_an_expression_is_called_on_all_of_it() -> None:
    with pytest.raises(RuntimeError) as caught, trace():
        ones(2, 5, 12) + ones(2, 12) * ones(1, 12)
    assert "\n    (ones(2, 12) * ones(1, 12)).unsqueeze(1), of" in caught.value.__notes__[0]


def test_other_errors_show_the_steps_and_an_inner_block_notes_once() -> None:
    def wrong(x: Tensor) -> Tensor:
        y = x * 2
        raise KeyError(len(y))

    with pytest.raises(KeyError) as caught, trace():
        wrong(ones(2))
    assert caught.value.__notes__ == ["The steps up to it:\n1   x   (2)\n2   y   (2)"]
    with pytest.raises(RuntimeError) as twice, trace(), trace():
        attend(ones(2, 3), ones(2, 4), ones(2, 4))
    assert len(twice.value.__notes__) == 2
    assert [frame.name for frame in twice.traceback][-1] == "attend"
    with pytest.raises(ShapeError) as refused, trace():
        book.dot_product_scores(ones(2, 3, 4), ones(2, 3, 5))
    assert not hasattr(refused.value, "__notes__")


# The walk


def test_a_walk_of_named_axes_follows_its_sizes_and_counts_the_work() -> None:
    def scores_of(q: Tensor, k: Tensor) -> Tensor:
        B, L, D = q.shape
        S = k.size(1)
        scores = q @ k.mT
        return scores.new_ones(B, L, D).transpose(1, 2) @ scores[:, :, :S]

    with trace() as shapes:
        scores_of(ones(2, 3, 4), ones(2, 6, 4))
    walk = walk_of(shapes)
    assert start_of(walk) == {"B": 2, "L": 3, "D": 4, "S": 6}
    scores = next(step for step in walk["steps"] if step["name"] == "scores")
    assert scores["axes"] == ["B", "L", "S"]
    assert scores["code"] == "scores = q @ k.mT"
    assert scores["products"] == [["B", "L", "S", "D"]]
    assert [value(axis, {"B": 1, "L": 9, "D": 2, "S": 5}) for axis in scores["axes"]] == [1, 9, 5]


def test_a_walk_with_a_nameless_axis_has_the_sizes_of_its_trace() -> None:
    with trace(batch=2) as shapes:
        y = Heads(12, 3)(ones(2, 5, 12))
    walk = walk_of(shapes)
    assert walk["dims"] == []
    held = [tuple(map(int, step["axes"])) for step in walk["steps"]]
    assert held == [step.shape for step in shapes]
    assert ShapeWalk(shapes).sizes == {}
    assert "Move a size" not in ShapeWalk(shapes).to_html()
    assert y.shape == (2, 5, 12)
