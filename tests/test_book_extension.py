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


@pytest.fixture
def build(tmp_path):
    """Build a book of one page and two notebooks; return its folder and what the build said."""

    def run(text: str, keys: tuple[str, str] = ("01-width", "02-width")) -> tuple[Path, str]:
        (tmp_path / "notebooks").mkdir()
        (tmp_path / "conf.py").write_text(CONF, encoding="utf-8")
        (tmp_path / "index.md").write_text(PAGE.format(text=text), encoding="utf-8")
        for name, key, value in zip(("01_one", "02_two"), keys, ("0.25", "64"), strict=True):
            stored = json.dumps(notebook(key, value))
            (tmp_path / "notebooks" / f"{name}.ipynb").write_text(stored, encoding="utf-8")
        out = tmp_path / "out"
        said = subprocess.run(
            [sys.executable, "-m", "sphinx", "-q", "-b", "html", str(tmp_path), str(out)],
            capture_output=True,
            text=True,
        )
        assert said.returncode == 0, said.stderr
        return out, said.stderr

    return run


def test_a_measured_number_links_to_its_cell_from_another_page_only(build):
    out, said = build("The width is {measured}`01-width`.")
    assert "WARNING" not in said
    page = (out / "index.html").read_text(encoding="utf-8")
    assert 'href="notebooks/01_one.html#cell-measures"' in page
    assert ">0.25<" in page
    chapter = (out / "notebooks" / "01_one.html").read_text(encoding="utf-8")
    assert 'id="cell-measures"' in chapter
    assert '<span class="measured">0.25</span>' in chapter


def test_a_number_that_no_cell_measures_stops_the_build(build):
    _, said = build("The width is {measured}`01-breadth`.")
    assert "index.md:3: WARNING: no cell measures '01-breadth'" in said


def test_a_key_that_two_notebooks_measure_stops_the_build(build):
    _, said = build("Nothing.", keys=("01-width", "01-width"))
    assert "'01-width' is measured twice: in notebooks/01_one and in notebooks/02_two" in said


def test_a_formula_becomes_text_with_its_dimensions_underlined(build):
    out, said = build(r"Divide by $\sqrt{\class{dim-d_k}{d_k}}$.")
    assert "WARNING" not in said
    page = (out / "index.html").read_text(encoding="utf-8")
    assert "<math" in page  # what a screen reader reads
    assert "dim dim-d_k" in page


def test_a_formula_that_cannot_be_read_stops_the_build(build):
    _, said = build(r"Divide by $\sqr{d}$.")
    assert "WARNING: formula '\\\\sqr{d}': Undefined control sequence" in said


def test_a_formula_and_the_stop_after_it_stay_on_one_line(build):
    out, _ = build(r"Divide by $\sqrt{d}$. Then stop.")
    page = BeautifulSoup((out / "index.html").read_text(encoding="utf-8"), "html.parser")
    assert page.select_one(".nobreak > .math")
    assert page.select_one(".nobreak").get_text().endswith(".")


def test_search_indexes_each_section_under_its_anchor(build):
    out, _ = build("Before.\n\n## A rare heading\n\nAn unusualword.")
    index = (out / "searchindex.js").read_text(encoding="utf-8")
    found = json.loads(index.removeprefix("Search.setIndex(").removesuffix(")"))
    places = {found["docnames"][i] for i in found["terms"]["unusualword"]}
    assert places == {"index", "index#a-rare-heading"}
    section = found["docnames"].index("index#a-rare-heading")
    assert found["titles"][section] == "Page › A rare heading"


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


def test_a_figure_that_nobody_stored_stops_the_build(build):
    _, said = build("```{interactive} missing\n```")
    assert "index.md:3: ERROR" in said
    assert "there is no stored figure 'missing'; there is: " in said
