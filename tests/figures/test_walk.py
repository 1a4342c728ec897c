"""The shape walk from Python: its sizes follow the package's, and so do its refusals."""

from __future__ import annotations

import gzip
import json
import math
import random
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode
from traitlets import TraitError

import attention_book as book
from attention_book import (
    DotProductAttention,
    KeyValueCache,
    LanguageModel,
    MultiHeadAttention,
    SelfAttentionBlock,
    ShapeError,
    merge_heads,
    split_heads,
    trace,
)
from attention_book.shapes import Shapes
from attention_book.shapes.tracing import TracedCall
from attention_book.walk import ShapeExplorer, ShapeWalk
from attention_book.walk.costs import step_costs
from attention_book.walk.explorer import CASES, MODELS, Case, attention_of
from attention_book.walk.relations import Relations, value
from attention_book.walk.steps import DEFAULTS, FEW_STEPS, misfit, start_of, walk_named, walk_of

CASE = pytest.mark.parametrize(("name", "case"), CASES.items(), ids=CASES.keys())


def drawn(walk: dict[str, Any], number: int, *, seed: int = 0) -> list[dict[str, int]]:
    """Sizes that fit a walk, drawn at random, small enough to compute with."""
    choose = random.Random(seed)
    found: list[dict[str, int]] = []
    sizes = start_of(walk)
    for _ in range(1000):
        changed = choose.sample(list(sizes), min(3, len(sizes)))
        tried = {**sizes, **{dim: choose.choice([1, 2, 3, 4, 5, 6, 8, 9, 12]) for dim in changed}}
        tried |= {link["name"]: value(link["to"], tried) for link in walk["links"]}
        if not misfit(walk, tried):
            sizes = tried
            found.append(sizes)
        if len(found) == number:
            return found
    raise AssertionError(f"{walk['name']}: only {len(found)} sizes fit")


def held(shapes: Shapes) -> list[Any]:
    """The steps of a trace that a walk holds."""
    return shapes.every_step if len(shapes.every_step) <= FEW_STEPS else shapes.steps


@CASE
def test_every_step_has_the_shape_that_the_package_gives_it(name: str, case: Case) -> None:
    walk = walk_of(case.trace(), name)
    for sizes in drawn(walk, 20):
        steps = held(case.trace(sizes))
        assert [(step["number"], step["name"]) for step in walk["steps"]] == [
            (step.number, step.name) for step in steps
        ]
        shown = [tuple(value(axis, sizes) for axis in step["axes"]) for step in walk["steps"]]
        assert shown == [step.shape for step in steps], sizes


@CASE
def test_multiply_adds_are_those_that_pytorch_counts(name: str, case: Case) -> None:
    walk = walk_of(case.trace(), name)
    for sizes in drawn(walk, 3, seed=1):
        with FlopCounterMode(display=False) as counter:
            case.run(sizes)
        products = [product for step in walk["steps"] for product in step["products"]]
        assert all(products)
        work = sum(math.prod(value(axis, sizes) for axis in product) for product in products)
        assert 2 * work == counter.get_total_flops()


def test_a_fused_kernel_counts_both_of_its_products() -> None:
    queries, keys = torch.ones(2, 3, 4), torch.ones(2, 5, 4)
    with trace() as shapes:
        DotProductAttention(fused=True)(queries, keys, torch.ones(2, 5, 6))
    (*_, last) = walk_of(shapes)["steps"]
    sizes = {"batch": 2, "queries": 3, "keys": 5, "size": 4, "value_size": 6}
    counts = [math.prod(value(axis, sizes) for axis in product) for product in last["products"]]
    assert counts == [2 * 3 * 5 * 4, 2 * 3 * 6 * 5]


# --- Names that are brought together ------------------------------------------------------------


def free(*tensors: Tensor, attention: nn.Module) -> dict[str, list[str]]:
    with trace(depth=1) as shapes:
        attention(*tensors)
    return {dim.name: dim.names for dim in Relations(shapes).free.values()}


def test_one_tensor_as_queries_keys_and_values_makes_their_sizes_one() -> None:
    x = torch.ones(2, 5, 12)
    names = free(x, x, x, attention=MultiHeadAttention(12, 3))
    assert names["queries"] == ["queries", "keys"]
    assert names["query_size"] == ["query_size", "key_size", "value_size"]
    assert names["heads"] == ["heads", "kv_heads"]


def test_equal_sizes_of_different_tensors_stay_apart() -> None:
    x = torch.ones(2, 5, 12)
    names = free(x, x.clone(), x.clone(), attention=MultiHeadAttention(12, 3))
    assert {"queries", "keys", "query_size", "key_size", "value_size"} <= names.keys()


def test_a_width_that_is_split_into_heads_gives_their_size() -> None:
    with trace() as shapes:
        SelfAttentionBlock(12, 3)(torch.ones(2, 5, 12))
    walk = walk_of(shapes)
    assert [dim["name"] for dim in walk["dims"]] == ["batch", "length", "d_model", "heads"]
    axes = {axis for step in walk["steps"] for axis in step["axes"]}
    assert axes == {"batch", "length", "d_model", "heads", "d_model/heads", "1"}


def test_cached_keys_add_to_the_new_ones() -> None:
    walk = walk_of(CASES["a step with a cache"].trace())
    all_keys = next(step for step in walk["steps"] if step["name"] == "all_keys")
    assert all_keys["axes"] == ["batch", "kv_heads", "cached+queries", "d_k"]


def test_a_step_knows_its_code_and_whose_memory_it_shares() -> None:
    with trace() as shapes:
        split_heads(torch.ones(2, 5, 12), 3)
        merge_heads(torch.ones(2, 3, 5, 4))
    read = step_costs(shapes)
    steps = {(step.function, step.name): read[step.number] for step in shapes}
    x, returns = steps["split_heads", "x"], steps["split_heads", "returns"]
    assert (x.code, returns.code) == ("", "return by_head.transpose(1, 2)")
    assert returns.memory == x.memory
    assert returns.tensor != x.tensor
    copied = steps["merge_heads", "returns"]
    assert copied.memory == copied.tensor


# --- Links --------------------------------------------------------------------------------------


def test_links_are_the_defaults_of_multi_head_attention() -> None:
    for d_model, heads in ((12, 3), (64, 8), (10, 10)):
        sizes = MultiHeadAttention(d_model, heads).sizes
        for name, default in DEFAULTS.items():
            assert sizes[name] == value(default, sizes)


def test_only_the_layer_that_is_traced_itself_can_be_unlinked() -> None:
    for name, fixed in (("multi-head attention", False), ("encoder layer", True)):
        links = walk_of(CASES[name].trace())["links"]
        assert {link["name"]: link["fixed"] for link in links}["d_k"] is fixed


def test_sizes_that_no_default_gave_are_not_linked() -> None:
    attention = MultiHeadAttention(12, 3, d_k=7, query_size=9)
    queries, memory = torch.ones(2, 5, 9), torch.ones(2, 6, 12)
    with trace() as shapes:
        attention(queries, memory, memory)
    assert [link["name"] for link in walk_of(shapes)["links"]] == ["key_size", "d_v"]


# --- Break it -----------------------------------------------------------------------------------


def broken_call(call: TracedCall, entry: dict[str, Any], sizes: dict[str, int], own: int) -> Any:
    """Make a call of these sizes for real, with what `entry` breaks."""
    arguments = dict(call.arguments)
    if entry["id"] in ("num_heads", "num_kv_heads"):
        kind = type(arguments["self"])
        given = {"num_heads": sizes["heads"], "d_model": sizes["d_model"]}
        given |= {"hidden_size": sizes["d_model"], "num_hiddens": sizes.get("hidden", 1)}
        given |= {"num_tokens": sizes.get("tokens", 1), entry["id"]: own}
        names = kind.__init__.__annotations__
        wanted = ("d_model", "num_heads", "hidden_size", "num_hiddens", "num_tokens", entry["id"])
        return kind(**{name: given[name] for name in wanted if name in names})
    for name, argument in arguments.items():
        if isinstance(argument, Tensor):
            shape = list(argument.shape)
            if entry.get("step") == name:
                shape[entry["axis"]] = own
            arguments[name] = torch.zeros(shape, dtype=argument.dtype)
    if entry["id"] in ("mask.batch", "mask.heads", "valid_lens.queries"):
        name, _, _ = entry["id"].partition(".")
        label, *values = entry["label"]
        dims = label.format(*values).partition("(")[2].rstrip(")").split(", ")
        all_sizes = {**call.sizes, **sizes}
        shape = [sum(all_sizes[term] for term in dim.split("+")) for dim in dims]
        arguments[name] = torch.zeros(shape, dtype=torch.bool if name == "mask" else torch.int64)
        if name == "valid_lens" and call.sizes.get("cached"):
            arguments[name] += call.sizes["cached"]
    if "cache" in arguments and arguments["cache"] is not None:
        cache = KeyValueCache()
        cache.keys = torch.zeros(*(sizes[d] for d in ("batch", "kv_heads", "cached", "d_k")))
        cache.values = torch.zeros(*(sizes[d] for d in ("batch", "kv_heads", "cached", "d_v")))
        arguments["cache"] = cache
    module = arguments.pop("self", None)
    function = getattr(book, call.function) if module is None else module
    return function(**arguments)


def said(entry: dict[str, Any], sizes: dict[str, int], own: int) -> tuple[str | None, str]:
    """What a walk says of a break: the error's name, or None where nothing refuses."""
    everything = {**sizes, "own": own}

    def holds(when: dict[str, Any]) -> bool:
        if "odd" in when:
            return value(when["odd"], everything) % 2 == 1
        a, b = (value(text, everything) for text in when.get("equal") or when["divides"])
        return a == b if "equal" in when else a % b == 0

    if entry.get("expected") and value(entry["expected"], sizes) == own:
        return None, ""
    case = next(filter(holds, entry["cases"]), entry)
    if "error" not in case:
        return None, case["text"][0]
    text = case["says"]
    for expression in set(part.split("}")[0] for part in text.split("{")[1:]):
        text = text.replace(f"{{{expression}}}", str(value(expression, everything)))
    return case["error"], text


@CASE
def test_a_break_says_what_the_package_says(name: str, case: Case) -> None:
    walk = walk_of(case.trace(), name)
    assert walk["breaks"]
    some = drawn(walk, 5, seed=2)
    names = [dim["name"] for dim in walk["dims"]]
    for other in ("queries", "length", "heads"):  # where an accident lets a wrong shape pass
        if other in names and name != "a step with a cache":
            some += [{**sizes, "batch": sizes[other]} for sizes in some[:2]]
    refused, silent = set(), set()
    for sizes in some:
        call = case.trace(sizes).calls[0]
        for entry in walk["breaks"]:
            expected = value(entry["expected"], sizes) if entry.get("expected") else 0
            for own in {max(expected - 1, 1), expected + 1, 1, expected} if expected else {0}:
                error, sentence = said(entry, sizes, own)
                if error is None:
                    broken_call(call, entry, sizes, own)
                    silent.add(entry["id"])
                    continue
                with pytest.raises(ValueError) as refusal:  # noqa: PT011, compared below
                    broken_call(call, entry, sizes, own)
                assert (error, sentence) == (refusal.type.__name__, str(refusal.value)), sizes
                refused.add(entry["id"])
    assert refused == {entry["id"] for entry in walk["breaks"]}
    assert silent >= {entry["id"] for entry in walk["breaks"] if entry.get("expected")}


def test_a_mask_that_passes_by_accident_masks_the_wrong_queries() -> None:
    torch.manual_seed(0)
    scores = torch.randn(3, 3, 5)
    lengths = torch.tensor([1, 3, 5])
    mask = torch.arange(5) < lengths[:, None]  # (batch, keys), and batch = queries
    assert not torch.allclose(
        book.masked_softmax(scores, mask=mask), book.masked_softmax(scores, lengths)
    )


# --- A language model --------------------------------------------------------------------------


def language_model(heads: int, kv_heads: int, d_model: int = 8, *, layers: int = 2) -> Shapes:
    """The trace of chapter 11, at other numbers of heads."""
    model = LanguageModel(35, d_model, heads, 16, layers, num_kv_heads=kv_heads)
    with trace(depth=2) as shapes, torch.no_grad():
        model(torch.zeros(1, 6, dtype=torch.int64))
    return shapes


def test_the_layers_of_a_language_model_are_a_step_of_their_own() -> None:
    walk = walk_of(language_model(4, 2))
    outer = {step["name"]: step for step in walk["steps"] if "." not in step["number"]}
    assert list(outer) == ["embedded", "transformed", "normed", "logits"]
    within = {step["number"].split(".")[0] for step in walk["steps"] if "." in step["number"]}
    assert within == {outer["transformed"]["number"]}
    assert outer["normed"]["sources"] == [outer["transformed"]["tensor"]]
    assert outer["transformed"]["code"].startswith("transformed = self._through_layers(embedded,")


def test_a_language_model_walks_where_the_package_makes_one() -> None:
    walk = walk_of(language_model(4, 2))
    for d_model in (4, 6, 8):
        for heads in range(1, 9):
            for kv_heads in range(1, 9):
                size = d_model // heads
                changed = {"d_model": d_model, "heads": heads, "kv_heads": kv_heads}
                sizes = {**start_of(walk), **changed, "d_k": size, "d_v": size}
                try:
                    shapes = language_model(heads, kv_heads, d_model)
                except ValueError:
                    assert misfit(walk, sizes), changed
                    continue
                assert misfit(walk, sizes) == "", changed
                given = {step.number: step.shape for step in shapes.steps}
                for step in walk["steps"]:
                    shape = tuple(value(axis, sizes) for axis in step["axes"])
                    assert given[step["number"]] == shape
                shared = walk["shared"] if heads == kv_heads else 0
                assert len(shapes.every_step) == len(given) + walk["cut"] - shared


def test_equal_heads_are_refused_where_steps_that_share_them_are_shown() -> None:
    walk = walk_of(CASES["grouped-query attention"].trace())
    assert "shared" not in walk
    sizes = {**start_of(walk), "heads": 2, "kv_heads": 2, "d_k": 6, "d_v": 6}
    assert misfit(walk, sizes) == "kv_heads = 2 must divide heads = 2 and be smaller"


def test_what_is_rotated_has_an_even_size_and_its_half_follows() -> None:
    attention = MultiHeadAttention(12, 3, rotary_base=10_000.0)
    x = torch.ones(1, 5, 12)
    with trace() as shapes:
        attention(x, x, x)
    walk = walk_of(shapes)
    assert walk["even"] == ["d_k"]
    assert {"name": "half", "to": "d_k/2", "fixed": True} in walk["links"]
    sizes = {**start_of(walk), "d_k": 3, "half": 1}
    assert misfit(walk, sizes, ["d_k"]) == "d_k = 3 is odd, but must be even"
    assert misfit(walk, {**sizes, "d_k": 6}, ["d_k"]) == "half = 1 must be d_k/2"
    assert misfit(walk, {**sizes, "d_k": 6, "half": 3}, ["d_k"]) == ""


def test_a_number_of_heads_with_an_odd_size_of_each_breaks_a_language_model() -> None:
    walk = walk_of(language_model(4, 2))
    entry = next(entry for entry in walk["breaks"] if entry["id"] == "num_heads")
    sizes = {**start_of(walk), "d_model": 12}
    for heads in (1, 2, 3, 4, 5, 6, 7, 12):
        error, sentence = said(entry, {**sizes, "heads": 24}, heads)
        if error is None:
            LanguageModel(35, 12, heads, 16, 1)
            continue
        with pytest.raises(ValueError) as refusal:  # noqa: PT011, compared below
            LanguageModel(35, 12, heads, 16, 1)
        assert (error, sentence) == (refusal.type.__name__, str(refusal.value))


# --- What a reader gives ------------------------------------------------------------------------


def test_what_is_no_trace_is_refused() -> None:
    with pytest.raises(TypeError, match="shapes must be a trace, but is list"):
        ShapeWalk([])


def test_a_trace_without_a_step_is_refused() -> None:
    with trace() as shapes:
        torch.ones(3)
    with pytest.raises(ValueError, match="the trace has no step: call a function"):
        ShapeWalk(shapes)


@pytest.mark.parametrize(("keys", "size"), [(0, 4), (100_000, 1)])
def test_a_size_that_cannot_be_shown_is_refused(keys: int, size: int) -> None:
    with trace() as shapes:
        book.dot_product_scores(torch.ones(1, 1, size), torch.ones(1, keys, size))
    with pytest.raises(ShapeError, match=f"'keys' is {keys} in the trace, but must be at least 1"):
        ShapeWalk(shapes)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"keys": 0}, "'keys' must be a whole number from 1 to 65,536, but is 0"),
        ({"keys": 100_000}, "'keys' must be a whole number from 1 to 65,536, but is 100000"),
        ({"d_model": 13}, "query_size = 12 must be d_model, or be unlinked"),
        ({"rows": 3}, "sizes must name batch, queries"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(change: dict[str, int], sentence: str) -> None:
    walk = ShapeWalk()
    with pytest.raises(TraitError, match=sentence):
        walk.sizes = {**walk.sizes, **change}


def test_moved_sizes_move_picture_and_words() -> None:
    walk = ShapeWalk()
    before = walk.alt, walk.still()
    walk.sizes = {**walk.sizes, "keys": 64}
    assert "keys (2, 64, 12), 1,536 numbers" in walk.alt
    assert walk.still() != before[1]


# --- The explorer -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def explorer() -> ShapeExplorer:
    return ShapeExplorer()


def test_the_explorer_opens_where_the_scores_are_larger_than_all_else(
    explorer: ShapeExplorer,
) -> None:
    assert explorer.preset == "BERT-base"
    sizes = {"queries": 512, "keys": 512, "heads": 12, "d_k": 64}
    assert explorer.sizes.items() >= sizes.items()
    assert sizes["heads"] * sizes["queries"] * sizes["keys"] > 7 * 512 * explorer.sizes["d_model"]
    assert ShapeExplorer("").preset == ""


def test_the_explorer_stays_small(explorer: ShapeExplorer) -> None:
    state = json.dumps(explorer.state(), separators=(",", ":"), ensure_ascii=False)
    assert len(gzip.compress(state.encode())) <= 16 * 1024


def test_sizes_of_models_fit_and_each_computation_has_some(explorer: ShapeExplorer) -> None:
    shown = set()
    for model in explorer.data["models"]:
        for name, sizes in model["sizes"].items():
            # A vocabulary may be larger than sliders reach, where no size of the walk is one.
            assert misfit(walk_named(explorer.data, name), sizes) == ""
            shown.add(name)
    assert shown == {name for name, case in CASES.items() if case.models}


def test_a_cache_takes_the_bytes_that_the_explorer_says(explorer: ShapeExplorer) -> None:
    for model, entry in zip(MODELS, explorer.data["models"], strict=True):
        if "cache" not in entry:
            continue
        cache, layer = entry["cache"], KeyValueCache()
        x = torch.zeros(1, 3, model.d_model, device="meta")
        with torch.device("meta"):
            sizes = {**model.sizes(), "key_size": model.d_model}
            attention_of(sizes)(x, x, x, cache=layer)
        expected = 2 * cache["layers"] * cache["kv_heads"] * cache["d_k"] * 3 * 4
        assert expected == model.layers * layer.bytes
