"""A figure with a real kernel: in JupyterLab what moves on one side moves on the other, and nbval
compares what it holds."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from browser import ROOT, chromium
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import expect

from attention_book.figures import MaskingFigure

KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
CELLS = [
    "from attention_book.figures import ScaleFigure\nfigure = ScaleFigure()\nfigure",
    'print("Python sees", figure.d_k)',
    "figure.d_k = 512",
]
SLOW = 120_000  # milliseconds that a kernel may take to start on a busy machine


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[str]:
    """JupyterLab on a free port, over a folder with one notebook; the notebook's address."""
    cells = [new_code_cell(source) for source in CELLS]
    nbformat.write(new_notebook(cells=cells, metadata=KERNEL), tmp_path / "one.ipynb")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [
        "--no-browser",
        "--allow-root",
        f"--ServerApp.root_dir={tmp_path}",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        "--IdentityProvider.token=",
        "--LabApp.news_url=",
    ]
    own = {f"JUPYTER_{name}_DIR": str(tmp_path / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *options],
        cwd=ROOT,
        env={**os.environ, **own},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stderr is not None
    said = []
    for line in server.stderr:
        said.append(line)
        if f"http://localhost:{port}/lab" in line:
            break
    assert server.poll() is None, "".join(said)
    yield f"http://localhost:{port}/lab/tree/one.ipynb"
    server.terminate()
    server.communicate()


def test_a_slider_reaches_python_and_python_reaches_the_slider(lab: str) -> None:
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        page.goto(lab)
        cells = page.locator(".jp-Notebook .jp-CodeCell")
        expect(cells).to_have_count(3, timeout=SLOW)
        expect(page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible(timeout=SLOW)

        def run(number: int) -> None:
            cells.nth(number).locator(".cm-content").click()
            page.keyboard.press("Control+Enter")

        run(0)
        figure = page.locator(".attention-figure").first
        figure.locator(".af-form").wait_for(timeout=SLOW)
        slider = figure.get_by_role("slider", name="d_k")
        shown = figure.locator(".af-slider .af-value")
        expect(shown).to_have_text("64 features")
        # A move that follows another at once is sent when the kernel has answered the first.
        for features in (128, 256):
            slider.press("ArrowRight")
            expect(shown).to_have_text(f"{features} features")
            run(1)
            expect(cells.nth(1).locator(".jp-OutputArea-output")).to_have_text(
                f"Python sees {features}", timeout=SLOW
            )
        run(2)
        expect(shown).to_have_text("512 features", timeout=SLOW)
        expect(figure.locator(".af-now")).to_contain_text("At d_k = 512, plain scores have")


def test_nbval_compares_what_a_figure_holds(tmp_path: Path):
    figure = MaskingFigure()
    source = "from attention_book.figures import MaskingFigure\nMaskingFigure()"
    other_data = ("1.0,2.0,3.0,4.0", "1.0,2.0,3.0,4.5")
    other_control = ('"-inf"', '"1e-6"')
    cells = []
    for before, after in (("", ""), other_data, other_control):
        data = {"text/html": figure.to_html().replace(before, after), "text/plain": repr(figure)}
        output = nbformat.v4.new_output("execute_result", data, execution_count=1)
        cells.append(new_code_cell(source, outputs=[output], execution_count=1))
    nbformat.write(new_notebook(cells=cells, metadata=KERNEL), tmp_path / "one.ipynb")
    command = [sys.executable, "-m", "pytest", "--nbval", "-rA", "-p", "no:cacheprovider"]
    result = subprocess.run([*command, "one.ipynb"], cwd=tmp_path, capture_output=True, text=True)
    said = re.findall(r"^(PASSED|FAILED) one.ipynb::Cell (\d)", result.stdout, re.MULTILINE)
    assert said == [("PASSED", "0"), ("FAILED", "1"), ("FAILED", "2")], result.stdout
