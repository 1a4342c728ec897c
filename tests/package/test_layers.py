"""The layers of the package: pyproject.toml names them, import-linter reads the imports.

What no linter of imports sees is read here: parts of torch that have their layer.
"""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from browser import ROOT

import attention_book

PACKAGE = Path(attention_book.__file__).parent
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]["contracts"]
#: The modules of each layer, the lowest first.
LAYERS = [layer.split(" : ") for layer in reversed(CONTRACTS[0]["layers"])]
RANDOM = {"rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial"}
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@pytest.fixture(params=FILES, ids=[str(path.relative_to(PACKAGE)) for path in FILES])
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


def room(path: Path) -> str:
    """The module, or the package, directly under attention_book that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def layer(path: Path) -> int:
    return next(number for number, names in enumerate(LAYERS) if room(path) in names)


def names_of_torch(path: Path) -> set[str]:
    """What a module names as torch.nn.Module, by an import or by an attribute."""
    found = set()
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    within = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch"):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("torch.")}
        elif isinstance(node, ast.Attribute) and id(node) not in within:
            found.add(ast.unparse(node))
    return {name for name in found if name.startswith("torch.")}


def test_the_contracts_on_imports_are_kept() -> None:
    command = [Path(sys.executable).parent / "lint-imports", "--no-cache"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert said.returncode == 0, said.stdout + said.stderr


def test_the_contract_on_drawing_names_every_module_below_layer_4() -> None:
    drawing = CONTRACTS[2]
    assert drawing["type"] == "forbidden"
    assert sorted(drawing["source_modules"]) == sorted(
        f"attention_book.{name}" for names in LAYERS[:4] for name in names
    )


def test_the_table_of_layers_in_contributing_is_that_of_the_contract() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.split("| layer | modules |\n|---|---|\n")[1].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert {int(number): names.replace("`", "").split(", ") for number, names in rows} == dict(
        enumerate(LAYERS)
    )


def test_parameters_live_from_layer_2_on(path: Path) -> None:
    modules = {
        name
        for name in names_of_torch(path)
        if name.startswith("torch.nn") and not name.startswith("torch.nn.functional")
    }
    assert not modules or layer(path) >= 2, f"{room(path)} uses {modules} below layer 2"


def test_random_numbers_are_drawn_in_data_alone(path: Path) -> None:
    """Up to layer 3; dropout and the start values of parameters are PyTorch's own."""
    drawn = names_of_torch(path) & {f"torch.{name}" for name in RANDOM}
    assert not drawn or room(path) == "data" or layer(path) >= 4, f"{room(path)} draws {drawn}"
