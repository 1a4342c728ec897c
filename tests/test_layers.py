"""The layers of the package: imports point down, and each kind of thing has its room."""

import ast
from pathlib import Path

import pytest

import attention_book

PACKAGE = Path(attention_book.__file__).parent
LAYERS = {
    "shapes": 0,
    "data": 0,
    "measure": 0,
    "masking": 1,
    "scoring": 1,
    "attention": 2,
    "multihead": 2,
    "positions": 2,
    "block": 3,
    "transformer": 3,
    "training": 3,
    "plots": 4,
    "figures": 4,
    "exercises": 4,
}
TOP = 5  # attention_book/__init__.py names what everyone may import


def imports(source: str) -> set[str]:
    """The dotted names that a module imports, with `from a import b` as a.b."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = "attention_book." * bool(node.level) + (node.module or "")
            found |= {f"{base.rstrip('.')}.{alias.name}" for alias in node.names}
    return found


def room(path: Path) -> str:
    """The module, or the package, directly under attention_book that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def layer(name: str) -> int:
    return TOP if name == "__init__" else LAYERS[name]


def neighbours(source: str) -> set[str]:
    """The modules of the package that a module imports; "__init__" for the package itself."""
    found = set()
    for name in imports(source):
        if name.split(".")[0] == "attention_book":
            part = name.split(".")[1] if "." in name else "__init__"
            found.add(part if part in LAYERS else "__init__")
    return found


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.fixture(params=FILES, ids=[str(path.relative_to(PACKAGE)) for path in FILES])
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


def test_every_module_has_its_layer(path: Path) -> None:
    assert room(path) == "__init__" or room(path) in LAYERS, f"{path} stands in no layer"


def test_imports_only_point_down(path: Path) -> None:
    here = room(path)
    upwards = {
        other
        for other in neighbours(path.read_text(encoding="utf-8"))
        if other != here and layer(other) > layer(here)
    }
    assert not upwards, f"{here} (layer {layer(here)}) imports {sorted(upwards)} from above"


def test_no_two_modules_import_each_other() -> None:
    below: dict[str, set[str]] = {}
    for path in FILES:
        here = room(path)
        found = neighbours(path.read_text(encoding="utf-8"))
        below.setdefault(here, set()).update(found - {here})

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, f"imports run in a circle: {' -> '.join((*above, name))}"
        for other in below.get(name, ()):
            visit(other, (*above, name))

    for name in below:
        visit(name, ())


def test_only_layer_4_draws(path: Path) -> None:
    drawing = {"matplotlib", "anywidget", "ipywidgets", "IPython"}
    used = {name.split(".")[0] for name in imports(path.read_text(encoding="utf-8"))} & drawing
    assert not used or layer(room(path)) == 4, f"{room(path)} draws with {used} below layer 4"


def test_parameters_live_from_layer_2_on(path: Path) -> None:
    names = imports(path.read_text(encoding="utf-8"))
    modules = {
        name
        for name in names
        if name.startswith("torch.nn") and not name.startswith("torch.nn.functional")
    }
    assert not modules or layer(room(path)) >= 2, f"{room(path)} uses {modules} below layer 2"


def test_random_numbers_are_drawn_in_data_alone(path: Path) -> None:
    """Up to layer 3; dropout and the start values of parameters are the framework's own."""
    drawing = {"rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial"}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "torch"
            and node.attr in drawing
        ):
            assert room(path) == "data" or layer(room(path)) >= 4, (
                f"{path.name}:{node.lineno} draws torch.{node.attr}"
            )


def test_the_reader_of_imports_sees_every_form() -> None:
    source = """
import attention_book
import attention_book.plots as p
from attention_book import masking, DotProductAttention
from attention_book.scoring import dot_product_scores
from . import block
from .shapes import checked
def late():
    from attention_book.exercises import check
"""
    assert neighbours(source) == {
        "__init__",
        "plots",
        "masking",
        "scoring",
        "block",
        "shapes",
        "exercises",
    }
