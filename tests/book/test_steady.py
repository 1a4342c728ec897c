"""The gate that runs notebooks on simulated processors: what it must find, and what it must not."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import nbformat
import pytest
import steady
import torch
from nbclient import NotebookClient
from other_processor import OtherProcessor

#: Cells whose output another processor may print otherwise.
DEFECTS = {
    "a chaotic training": """
        x = torch.rand(64, generator=g)
        for _ in range(100):
            x = (50 * x).sin()
        print(f"{x.sum():.2f}")""",
    "digits beside a boundary of rounding": """
        halves = (torch.arange(64.0)[:, None] + 0.5).expand(64, 5) / 500
        print([f"{x:.2f}" for x in halves.sum(dim=1).tolist()])""",
    "sums that are 1 by luck": """
        scores = torch.tensor([[0.0, 1.0, 2.0], [0.0, 0.0, 0.0], [3.0, 0.0, 0.0]])
        print(torch.softmax(scores, dim=-1).sum(dim=-1))""",
    "a largest value among equals": """
        rows = torch.rand(64, 9, generator=g)
        print(torch.stack([rows.sum(dim=1), rows.flip(1).sum(dim=1)]).argmax(dim=0))""",
    "an order of equal values": """
        rows = torch.rand(64, 9, generator=g)
        print(torch.cat([rows.sum(dim=1), rows.flip(1).sum(dim=1)]).argsort())""",
}
SOUND = """
    weights = torch.softmax(torch.randn(20, 7, generator=g), dim=-1)
    print(weights.sum(dim=-1).round(decimals=3), f"{weights[0, 0]:.3f}", torch.arange(4.0).sum())"""
START = "import torch\n\ng = torch.Generator().manual_seed(0)"


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A notebook with a cell for each defect and sound ones, run here and stored."""
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell(dedent(cell)) for cell in (START, SOUND, *DEFECTS.values())
        ]
    )
    NotebookClient(notebook, coalesce_streams=True).execute()
    path = tmp_path_factory.mktemp("steady") / "planted.ipynb"
    nbformat.write(notebook, path)
    return path


def test_planted_defects_are_found_and_sound_cells_are_not(stored: Path) -> None:
    before = stored.read_bytes()
    found = [one for seed in (1, 2) for one in steady.run(stored, seed, 8)]
    assert {one.cell for one in found} == set(range(2, 2 + len(DEFECTS)))
    assert all(one.stored != one.other for one in found)
    assert stored.read_bytes() == before


def test_a_cell_that_raises_under_the_gate_is_unsteady_and_a_paused_one_sees_nothing(
    tmp_path: Path,
) -> None:
    cells = [
        nbformat.v4.new_code_cell(f"{START}\nx = torch.rand(20, 7, generator=g).softmax(dim=-1)"),
        nbformat.v4.new_code_cell("assert (x.softmax(dim=-1).sum(dim=-1) - 1).abs().max() < 1e-9"),
        nbformat.v4.new_code_cell("print('never')"),
    ]
    path = tmp_path / "raises.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    (only,) = steady.run(path, 1, 8)
    assert (only.cell, only.other) == (1, "AssertionError: ")
    cells[1].source = "assert torch.utils._python_dispatch._get_current_dispatch_mode() is None"
    cells[1].metadata["tags"] = ["steady-except-operators"]
    cells[2].source = "assert torch.utils._python_dispatch._get_current_dispatch_mode()"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    assert steady.run(path, 1, 8) == []


def test_the_simulation_moves_results_by_a_step_keeps_exact_ones_and_repeats_itself() -> None:
    x = torch.rand(50, 30, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    right, whole = x.sum(dim=1), torch.arange(6.0).sum()
    with OtherProcessor(1):
        one, again, same = x.sum(dim=1), x.sum(dim=1), torch.arange(6.0).sum()
    with OtherProcessor(2):
        other = x.sum(dim=1)
    assert torch.equal(one, again)
    assert torch.equal(same, whole)
    assert not torch.equal(one, other)
    moved = (one / right - 1).abs() / torch.finfo(torch.float64).eps
    assert 0.5 < moved.max() < 2


@pytest.mark.parametrize(
    ("seeds", "size", "said"),
    [
        ("0", "1", "SEEDS is '0'"),
        ("1,x", "1", "SEEDS is '1,x'"),
        (" ", "1", "SEEDS is ' '"),
        ("1", "-1", "SIZE is '-1'"),
        ("1", "much", "SIZE is 'much'"),
        ("1", "nan", "SIZE is 'nan'"),
    ],
)
def test_settings_that_cannot_be_meant_so_are_one_sentence(seeds, size, said) -> None:
    with pytest.raises(steady.WrongSettingError, match=said):
        steady.settings(seeds, size)


def test_seeds_are_separated_by_commas_or_spaces() -> None:
    assert steady.settings("1,2 30", "8") == ([1, 2, 30], 8.0)
