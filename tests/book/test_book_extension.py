"""The book's Sphinx extensions: what it shows, and what it refuses to build."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from browser import ROOT
from bs4 import BeautifulSoup
from pictures_ext import panels
from tables_ext import mended

CONF = f"""
import sys
sys.path.insert(0, {str(ROOT / "book" / "_ext")!r})
extensions = ["myst_nb", "formulas_ext", "measured_ext", "cells_ext", "search_ext"]
extensions += ["theme_ext", "figures_ext"]
myst_enable_extensions = ["dollarmath"]
html_math_renderer = "katex"
nb_execution_mode = "off"
"""
PAGE = "# Page\n\n{text}\n\n```{{toctree}}\nnotebooks/01_one\nnotebooks/02_two\n```\n"


def notebook(key: str, value: str) -> dict:
    glued = {
        "output_type": "display_data",
        "data": {"application/papermill.record/text/plain": [repr(value)]},
        "metadata": {"scrapbook": {"name": key, "mime_prefix": "application/papermill.record/"}},
    }
    cells = [
        {"cell_type": "markdown", "id": "head", "metadata": {}, "source": [f"# About {key}"]},
        {
            "cell_type": "code",
            "id": "measures",
            "metadata": {},
            "source": ["measure()"],
            "execution_count": 1,
            "outputs": [glued],
        },
        {
            "cell_type": "markdown",
            "id": "tells",
            "metadata": {},
            "source": [f"It is {{measured}}`{key}`."],
        },
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def build(folder: Path, text: str, keys: tuple[str, str]) -> str:
    """Build a book of one page and two notebooks in `folder`; return what the build said."""
    (folder / "notebooks").mkdir()
    (folder / "conf.py").write_text(CONF, encoding="utf-8")
    (folder / "index.md").write_text(PAGE.format(text=text), encoding="utf-8")
    for name, key, value in zip(("01_one", "02_two"), keys, ("0.25", "64"), strict=True):
        stored = json.dumps(notebook(key, value))
        (folder / "notebooks" / f"{name}.ipynb").write_text(stored, encoding="utf-8")
    said = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-b", "html", str(folder), str(folder / "out")],
        capture_output=True,
        text=True,
    )
    assert said.returncode == 0, said.stderr
    return said.stderr


RIGHT = r"""The width is {measured}`01-width`.

Divide by $\sqrt{\class{dim-d_k}{d_k}}$. Then stop.

## A rare heading

An unusualword."""
WRONG = r"""The width is {measured}`01-breadth`.

Divide by $\sqr{d}$.

```{interactive} missing
```"""


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("right")
    assert "WARNING" not in build(folder, RIGHT, keys=("01-width", "02-width"))
    return folder / "out"


@pytest.fixture(scope="module")
def page(right: Path) -> BeautifulSoup:
    return BeautifulSoup((right / "index.html").read_text(encoding="utf-8"), "html.parser")


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a build says of a page with several mistakes; the book takes a warning for an error."""
    return build(tmp_path_factory.mktemp("wrong"), WRONG, keys=("01-width", "01-width"))


def test_a_measured_number_links_to_its_cell_from_another_page_only(right, page):
    assert page.select_one('a[href="notebooks/01_one.html#cell-measures"]').get_text() == "0.25"
    chapter = (right / "notebooks" / "01_one.html").read_text(encoding="utf-8")
    assert 'id="cell-measures"' in chapter
    assert '<span class="measured">0.25</span>' in chapter


def test_a_number_that_no_cell_measures_stops_the_build(complaints):
    assert "index.md:3: WARNING: no cell measures '01-breadth'" in complaints


def test_a_key_that_two_notebooks_measure_stops_the_build(complaints):
    assert "'01-width' is measured twice: in notebooks/01_one and in notebooks/02_two" in complaints


def test_a_formula_becomes_text_with_its_dimensions_underlined(page):
    assert page.select_one("math")  # what a screen reader reads
    assert page.select_one(".dim.dim-d_k")


def test_a_formula_that_cannot_be_read_stops_the_build(complaints):
    assert "WARNING: formula '\\\\sqr{d}': Undefined control sequence" in complaints


def test_a_formula_and_the_stop_after_it_stay_on_one_line(page):
    assert page.select_one(".nobreak > .math")
    assert page.select_one(".nobreak").get_text().endswith(".")


def test_search_indexes_each_section_under_its_anchor(right):
    index = (right / "searchindex.js").read_text(encoding="utf-8")
    found = json.loads(index.removeprefix("Search.setIndex(").removesuffix(")"))
    places = {found["docnames"][i] for i in found["terms"]["unusualword"]}
    assert places == {"index", "index#a-rare-heading"}
    section = found["docnames"].index("index#a-rare-heading")
    assert found["titles"][section] == "Page › A rare heading"


def test_a_figure_that_nobody_stored_stops_the_build(complaints):
    assert "index.md:7: ERROR" in complaints
    assert "there is no stored figure 'missing'; there is: " in complaints


@pytest.mark.parametrize(
    ("output", "prose"),
    [
        ("3.1: right. Only the allowed keys count.", True),
        ("one of the tensors has been modified:  …", True),
        ("tensor([0.269, 0.731])", False),
        ("scores   1.0\nweights  0.5", False),
        ("a sentence\nand another one", True),
    ],
)
def test_sentences_may_wrap_and_tables_and_tensors_may_not(monkeypatch, output, prose):
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")
    assert importlib.import_module("cells_ext").is_prose(output) == prose


def test_panels_cut_a_picture_into_parts_that_make_up_the_whole():
    spans = BeautifulSoup(panels("a.png", 600, (1200, 400), [0.25, 0.75]), "html.parser").select(
        "span > span"
    )
    styles = [dict(part.split(": ", 1) for part in span["style"].split("; ")) for span in spans]
    assert [style["width"] for style in styles] == ["150.0px", "300.0px", "150.0px"]
    assert [style["aspect-ratio"] for style in styles] == [
        "300.0 / 400",
        "600.0 / 400",
        "300.0 / 400",
    ]
    for style, start, share in zip(styles, (0, 0.25, 0.75), (0.25, 0.5, 0.25), strict=True):
        _, at, _, _, scale, _ = style["background"].split()
        whole = float(scale[:-1]) / 100  # in widths of the panel
        assert whole == pytest.approx(1 / share)
        # Where a background stands at p %, its p % lies on the panel's p %.
        assert float(at[:-1]) / 100 * (whole - 1) == pytest.approx(start * whole, abs=1e-4)


def test_a_cell_bears_the_head_of_its_column_but_the_first_is_the_head_of_its_card():
    row = "<tr><td>softmax</td><td>weights</td><td>权重</td></tr>"
    heads = "<tr><th>name</th><th>result</th><th>Chinese</th></tr>"
    table = BeautifulSoup(
        mended(f"<table><thead>{heads}</thead><tbody>{row}</tbody></table>"), "html.parser"
    )
    cells = table.select("td")
    assert [cell.get("data-head") for cell in cells] == [None, "result", "Chinese"]
    assert [cell.get("lang") for cell in cells] == [None, None, "zh"]
