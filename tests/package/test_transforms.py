"""Every public function compiled, copied, mapped, differentiated: the same answers as without."""

import copy
import io
import pickle
from collections.abc import Callable

import pytest
import torch
from cases import close, largest
from every import EVERY, SMALL, given_to, normal
from torch import Tensor, nn
from torch.autograd import forward_ad

import attention_book as book
from attention_book import data


def mapped(names: str) -> tuple[Tensor, ...]:
    """Arguments with a further first axis of 3, over which is mapped."""
    given = zip(*(given_to(names, SMALL, seed) for seed in (0, 100, 200)), strict=True)
    return tuple(torch.stack(three) for three in given)


CASES = {name: (make(SMALL), mapped(names)) for name, (make, names) in EVERY.items()}
#: Their arguments are sizes, not tensors, so there is nothing to map over.
OF_SIZES: dict[str, Callable[[Tensor], Tensor]] = {
    "causal_mask": lambda x: book.causal_mask(*x.shape[-2:], device=x.device),
    "sinusoidal_positions": lambda x: book.sinusoidal_positions(*x.shape[-2:], device=x.device),
}
#: The framework's kernel under it has no forward-mode derivative.
FUSED = {name for name in CASES if name.endswith("fused")}
#: What computes no tensor, what is tested with its module, and the loop that calls a model.
OTHERS = {
    *("KeyValueCache", "Llama3Scaling", "ShapeError"),
    *("capture", "trace", "train", "without"),
}


def test_every_public_name_is_here() -> None:
    assert {name.split(",")[0] for name in CASES} | OF_SIZES.keys() | OTHERS == set(book.__all__)


@pytest.mark.parametrize("name", CASES)
def test_compiled_into_one_graph(name: str) -> None:
    """All in one process: torch.compile gives up on code with more than eight versions."""
    function, mapped = CASES[name]
    arguments = [x[0].clone().requires_grad_(x.is_floating_point()) for x in mapped]
    leaves = [x for x in arguments if x.requires_grad]
    with torch.set_grad_enabled(bool(leaves)):
        compiled = torch.compile(function, backend="aot_eager", fullgraph=True)(*arguments)
        result = function(*arguments)
    assert compiled.dtype == result.dtype
    close(compiled.double(), result, torch.float64)
    if leaves:
        gradients = [
            torch.autograd.grad(output.square().sum(), leaves) for output in (compiled, result)
        ]
        for mine, eager in zip(*gradients, strict=True):
            close(mine, eager, reach=largest(eager))


@pytest.mark.parametrize(
    "name", [name for name, (f, _) in CASES.items() if isinstance(f, nn.Module)]
)
def test_copies_pickles_and_saved_states_give_the_same_answer(name: str) -> None:
    """Made after a call, whose weights they leave out."""
    function, mapped = CASES[name]
    arguments = [x[0] for x in mapped]
    output = function(*arguments)
    file = io.BytesIO()
    torch.save(function.state_dict(), file)
    file.seek(0)
    loaded = EVERY[name][0](SMALL)
    for parameter in loaded.parameters():
        nn.init.zeros_(parameter)
    loaded.load_state_dict(torch.load(file))
    for same in (copy.deepcopy(function), pickle.loads(pickle.dumps(function)), loaded):
        assert getattr(same, "attention_weights", None) is None
        close(same(*arguments), output)


@pytest.mark.parametrize("name", OF_SIZES)
def test_sizes_compiled_into_one_graph(name: str) -> None:
    compiled = torch.compile(OF_SIZES[name], backend="aot_eager", fullgraph=True)
    for shape in [(5, 7), (7, 7), (4, 3)]:
        x = torch.empty(shape, device=data.device)
        close(compiled(x).double(), OF_SIZES[name](x), torch.float32)


# Said by torch of its fused kernel: mapped, it runs once for each.
@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("learns", [False, True])
def test_mapped_over_a_further_axis(name: str, learns: bool) -> None:
    function, arguments = CASES[name]
    with torch.set_grad_enabled(learns):
        mapped = torch.vmap(function)(*arguments)
        one_by_one = torch.stack([function(*each) for each in zip(*arguments, strict=True)])
    assert mapped.dtype == one_by_one.dtype
    close(mapped.double(), one_by_one, torch.float64)


@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("learns", [False, True])
def test_mapped_over_one_argument_while_the_others_stay(name: str, learns: bool) -> None:
    function, arguments = CASES[name]
    for moving in range(len(arguments)):
        given = [x if index == moving else x[0] for index, x in enumerate(arguments)]
        in_dims = tuple(0 if index == moving else None for index in range(len(arguments)))
        with torch.set_grad_enabled(learns):
            mapped = torch.vmap(function, in_dims=in_dims)(*given)
            one_by_one = torch.stack(
                [function(*given[:moving], x, *given[moving + 1 :]) for x in given[moving]]
            )
        close(mapped.double(), one_by_one, torch.float64)


# Said by torch of its own forward-mode rules, when they are first used.
@pytest.mark.filterwarnings("ignore:.torch.jit.script. is:DeprecationWarning")
@pytest.mark.parametrize("name", [name for name in CASES if name not in FUSED])
@pytest.mark.parametrize("learns", [False, True])
def test_forward_mode_gives_the_derivatives_of_the_way_back(name: str, learns: bool) -> None:
    """The derivative along a direction, weighed: u·(J t) forwards and (uᵀJ)·t backwards."""
    function, mapped = CASES[name]
    arguments = [x[0] for x in mapped]
    for index, x in enumerate(arguments):
        if not x.is_floating_point():
            continue
        direction = normal(*x.shape, seed=4)
        with torch.set_grad_enabled(learns), forward_ad.dual_level():
            dual = forward_ad.make_dual(x, direction)
            result = function(*arguments[:index], dual, *arguments[index + 1 :])
            tangent = forward_ad.unpack_dual(result).tangent
        leaf = x.clone().requires_grad_()
        output = function(*arguments[:index], leaf, *arguments[index + 1 :])
        upstream = normal(*output.shape, seed=5)
        (gradient,) = torch.autograd.grad(output, leaf, upstream)
        close((upstream * tangent).sum(), (gradient * direction).sum(), torch.float64)
