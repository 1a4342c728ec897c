"""What calls and constructors refuse: one table of each, for everything that is public."""

import inspect
import math
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from cases import refuses
from every import EVERY, LAYERS, given_to
from torch import Tensor, nn

import attention_book as book
from attention_book import ShapeError

# Calls

#: The masks that a call takes, and the axes of each: of examples, queries and keys.
MASKS = {
    "masked_softmax": {"mask": "bqk"},
    "DotProductAttention": {"mask": "bqk"},
    "AdditiveAttention": {"mask": "bqk"},
    "MultiHeadAttention": {"mask": "bqk"},
    "AttentionPooling": {"mask": "bk"},
    "SelfAttentionBlock": {"mask": "bkk"},
    "EncoderLayer": {"mask": "bkk"},
    "LanguageModel": {"mask": "bkk"},
    "DecoderLayer": {"mask": "bqq", "memory_mask": "bqk"},
    "Transformer": {"source_mask": "bkk", "target_mask": "bqq", "memory_mask": "bqk"},
}
#: The axes that may be of any size, because nothing else in the call has them.
FREE = {
    "length_mask": {"valid_lens": [0, 1]},
    "split_heads": {"x": [0, 1]},
    "merge_heads": {"x": [0, 1, 2, 3]},
    "rotary_embedding": {"x": [0, 1]},
    "LayerNorm": {"x": [0, 1]},
    "distance_scores, heads": {"queries": [2], "keys": [2]},
    "DotProductAttention": {"values": [2]},
    "AdditiveAttention": {"values": [2]},
} | {
    f"{kind}_scores": {"queries": [1], "keys": [1]}
    for kind in ("dot_product", "scaled_dot_product", "distance", "bilinear", "additive")
}
#: What has no other tensor and no parameter to agree with in its dtype.
OF_ANY_DTYPE = {"split_heads", "merge_heads", "rotary_embedding", "masked_softmax"}


def wrong_ones(name: str, argument: str, x: Tensor, num_keys: int) -> Iterator[tuple]:
    """What does not fit in place of `x`, what is raised for it, and what the sentence says."""
    kind = name.split(",")[0]
    is_mask = x.dtype == torch.bool
    free = FREE.get(name, FREE.get(kind, {})).get(argument, [])
    # A mask and lengths that are the same for all examples, or all queries, have fewer axes.
    forms = [x]
    if x.dim() == 3 and is_mask:
        forms.append(x[0])
    elif x.dim() == 2 and argument == "valid_lens":
        forms.append(x[:, 0])
    for form in forms:
        for axis, size in enumerate(form.shape):
            for other in () if axis in free else (1, size - 1, size + 1):
                if not (is_mask and other == 1):  # which stretches
                    shape = [*form.shape[:axis], other, *form.shape[axis + 1 :]]
                    yield form.new_zeros(shape), ShapeError, [argument, other]
    yield x.flatten()[0], ShapeError, [argument, "()"]
    yield x.reshape((1,) * (5 - x.dim()) + x.shape), ShapeError, [argument, 5]
    if x.dim() > 1 and kind != "length_mask":
        yield x.flatten(), ShapeError, [argument, x.numel()]
    if not is_mask and kind not in ("length_mask", "LayerNorm"):
        yield x[0], ShapeError, [argument]
    if kind != "rotary_embedding":
        yield x.unsqueeze(-1), ShapeError, [argument]
    yield x.tolist(), TypeError, [argument, "torch.Tensor", "list"]
    yield x.numpy(), TypeError, [argument, "torch.Tensor", "ndarray"]
    if x.is_floating_point():
        yield x.long(), TypeError, [argument, "floating-point", "torch.int64"]
        if kind not in OF_ANY_DTYPE:
            yield x.float(), TypeError, [argument, "torch.float32", "torch.float64"]
    elif is_mask:
        yield x.new_ones(len(x), 5, *x.shape[1:]), ShapeError, [argument, 5]  # of five heads
        for dtype in (torch.float32, torch.int64, torch.uint8):
            yield x.to(dtype), TypeError, [argument, "boolean", dtype]
    else:
        for dtype in (torch.float32, torch.bool):
            yield x.to(dtype), TypeError, [argument, "integers", dtype]
        if argument in ("valid_lens", "source_lens"):
            for number in (-1, num_keys + 1):
                yield torch.full_like(x, number), ValueError, [argument, number, num_keys]


@pytest.mark.parametrize("name", EVERY | LAYERS)
def test_an_argument_that_is_missing_or_does_not_fit_is_refused(
    name: str, sizes: SimpleNamespace
) -> None:
    """On the CPU: on a GPU the range of lengths is checked there, and ends the process."""
    make, names = (EVERY | LAYERS)[name]
    function = make(sizes)
    function = function.cpu() if isinstance(function, nn.Module) else function
    called = function.forward if isinstance(function, nn.Module) else function
    parameters = inspect.signature(called).parameters
    lengths = {"b": sizes.batch, "q": sizes.queries, "k": sizes.keys}
    given = {
        parameter: x.cpu() if x.is_floating_point() else torch.zeros_like(x, device="cpu")
        for parameter, x in zip(parameters, given_to(names, sizes), strict=False)
    }
    for mask, axes in MASKS.get(name.split(",")[0], {}).items():
        given[mask] = torch.ones([lengths[axis] for axis in axes], dtype=torch.bool)
        assert parameters[mask].kind is inspect.Parameter.KEYWORD_ONLY
    assert {parameter for parameter in parameters if "mask" in parameter} <= given.keys()
    function(**given)
    for argument, x in given.items():
        for wrong, error, pieces in wrong_ones(name, argument, x, sizes.keys):
            with refuses(error, name.split(",")[0], *pieces):
                function(**{**given, argument: wrong})
        if parameters[argument].default is inspect.Parameter.empty:
            with refuses(TypeError, argument):
                function(**{other: y for other, y in given.items() if other != argument})


# Constructors

#: Sizes with which each can be made, and the probabilities that it takes besides.
MADE: dict[type[nn.Module], tuple[dict[str, int], list[str]]] = {
    book.DotProductAttention: ({}, ["dropout"]),
    book.AdditiveAttention: (
        {"query_size": 4, "key_size": 4, "num_hiddens": 5, "query_chunk": 2},
        ["dropout"],
    ),
    book.AttentionPooling: ({"size": 4, "num_hiddens": 3}, []),
    book.MultiHeadAttention: (
        {
            **{"d_model": 6, "num_heads": 3, "num_kv_heads": 3, "d_k": 2, "d_v": 2},
            **{"query_size": 6, "key_size": 6, "value_size": 6},
        },
        ["dropout"],
    ),
    book.LayerNorm: ({"size": 4}, []),
    book.SelfAttentionBlock: (
        {"hidden_size": 12, "num_heads": 3},
        ["attention_dropout", "hidden_dropout"],
    ),
    book.Transformer: (
        {"num_tokens": 9, "d_model": 12, "num_heads": 3, "num_hiddens": 6, "num_layers": 2},
        ["dropout"],
    ),
    book.LanguageModel: (
        {
            **{"num_tokens": 9, "d_model": 12, "num_heads": 3, "num_hiddens": 6, "num_layers": 2},
            "num_kv_heads": 3,
        },
        ["dropout"],
    ),
}


#: What the parts of these refuse, they leave to them.
OF_PARTS = {book.Transformer, book.LanguageModel}


@pytest.mark.parametrize("kind", MADE)
def test_sizes_and_probabilities_out_of_range_are_refused(kind: type[nn.Module]) -> None:
    sizes, probabilities = MADE[kind]
    owner = [] if kind in OF_PARTS else [kind.__name__]
    kind(**sizes)
    for name in sizes:
        for wrong in (0, -3):
            with refuses(ValueError, *owner, name, wrong):
                kind(**{**sizes, name: wrong})
        for wrong in (2.0, True):
            with refuses(TypeError, *owner, name, type(wrong).__name__):
                kind(**{**sizes, name: wrong})
    for name in probabilities:
        for wrong in (-0.1, 1.5, math.nan):
            with refuses(ValueError, *owner, name, 0, 1, wrong):
                kind(**sizes, **{name: wrong})
        with refuses(TypeError, *owner, name, "str"):
            kind(**sizes, **{name: "0.5"})


def language_model(**options: object) -> book.LanguageModel:
    return book.LanguageModel(53, 24, 4, 40, 2, **options)


X = torch.zeros(2, 4, 10)


@pytest.mark.parametrize(
    ("call", "kind", "pieces"),
    [
        (partial(book.DotProductAttention, scale="0.5"), TypeError, ["scale", "number", "str"]),
        (partial(book.DotProductAttention, scale=X[0, 0, 0]), TypeError, ["scale", "Tensor"]),
        (partial(book.scaled_dot_product_scores, X, X, "0.5"), TypeError, ["scale", "str"]),
        (partial(book.LayerNorm, 4, -1e-5), ValueError, ["eps", 0, -1e-5]),
        (partial(book.LayerNorm, 4, "small"), TypeError, ["eps", "str"]),
        (partial(book.SelfAttentionBlock, 10, 3), ShapeError, ["hidden_size", 10, "num_heads", 3]),
        (partial(book.MultiHeadAttention, 10, 3), ShapeError, ["d_model", 10, "num_heads", 3]),
        (partial(book.MultiHeadAttention, 10, 3, d_k=4), ShapeError, ["d_model", 10, 3]),
        (partial(book.MultiHeadAttention, 36, 6, num_kv_heads=4), ShapeError, ["num_kv_heads", 4]),
        (partial(book.MultiHeadAttention, 36, 6, num_kv_heads=12), ShapeError, [6, 12]),
        (partial(book.split_heads, X, 3), ShapeError, ["x", "heads", 10, 3, "(2, 4, 10)"]),
        (partial(book.split_heads, X, 0), ValueError, ["split_heads", "heads", 0]),
        (partial(book.split_heads, X, -1), ValueError, ["split_heads", "num_heads", -1]),
        (partial(book.split_heads, X, 2.0), TypeError, ["num_heads", "float"]),
        (partial(language_model, rotary_base=0), ValueError, ["rotary_base must be above 0", 0]),
        (partial(language_model, rotary_base=-1.0), ValueError, ["rotary_base", -1.0]),
        (partial(language_model, rotary_base=math.nan), ValueError, ["rotary_base", "nan"]),
        (partial(language_model, rotary_base="10000"), TypeError, ["rotary_base", "str"]),
        (partial(language_model, num_kv_heads=3), ShapeError, ["num_kv_heads", 3]),
        (partial(language_model, eps=0), ValueError, ["eps must be above 0", 0]),
        (partial(book.LanguageModel, 53, 12, 4, 40, 2), ValueError, ["rotary_base", "d_k = 3"]),
    ],
)
def test_other_options_that_do_not_fit_are_refused(
    call: Callable[[], object], kind: type[Exception], pieces: list[object]
) -> None:
    with refuses(kind, *pieces):
        call()


def test_what_no_default_needs_is_not_asked_of_the_sizes() -> None:
    book.MultiHeadAttention(10, 3, d_k=4, d_v=4)
    book.LanguageModel(53, 12, 4, 40, 2, rotary_base=None)
