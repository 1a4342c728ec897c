"""The book to carry away: the offline edition, opened with the network off, and the PDF."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pikepdf
import pytest
import yaml
from browser import ROOT, Watched, built_book, from_disk, wait_for_result
from bs4 import BeautifulSoup
from playwright.sync_api import Page
from pypdf import PdfReader
from scripts import tool


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory) -> Path:
    """The offline edition as a reader has it: packed, carried to a disk, unpacked."""
    disk = tmp_path_factory.mktemp("a disk")
    tool("offline").pack(built_book(), disk / "book.zip")
    ZipFile(disk / "book.zip").extractall(disk)
    return disk / tool("offline").NAME


@pytest.fixture
def offline(unpacked) -> Iterator[Watched]:
    with from_disk(unpacked) as watched:
        yield watched


def test_the_same_book_packs_into_the_same_bytes_and_all_of_it(tmp_path, unpacked):
    tool("offline").pack(built_book(), tmp_path / "again.zip")
    before = unpacked.parent / "book.zip"
    assert (tmp_path / "again.zip").read_bytes() == before.read_bytes()
    packed = {file.relative_to(unpacked) for file in unpacked.rglob("*") if file.is_file()}
    assert packed == {
        file.relative_to(built_book()) for file in built_book().rglob("*") if file.is_file()
    }


def test_offline_the_first_page_leads_to_a_slider_that_moves_its_figure(unpacked, offline):
    page: Page = offline.page
    page.goto((unpacked / "index.html").as_uri())
    page.wait_for_url("**/book/intro.html")
    page.locator(".bd-sidebar-primary a[href$='03_masking.html']").click()
    figure = page.locator('attention-figure[kind="masking"]')
    slider = figure.locator("input[type=range]:visible").first
    weights = figure.locator("[data-key^=weight]")
    before = weights.evaluate_all("cells => cells.map(cell => cell.dataset.value)")
    slider.press("Home")
    assert weights.evaluate_all("cells => cells.map(cell => cell.dataset.value)") != before


def test_offline_the_search_box_finds_a_chapter(unpacked, offline):
    page: Page = offline.page
    page.goto((unpacked / "book" / "intro.html").as_uri())
    page.get_by_role("button", name="Search").first.click()
    page.get_by_role("searchbox", name="Search the book").locator("visible=true").fill("softmax")
    page.keyboard.press("Enter")
    wait_for_result(page, "link.textContent.includes('Masking')")


@pytest.fixture(scope="module")
def contents() -> dict:
    return yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def joined(unpacked, contents) -> BeautifulSoup:
    """All pages as the one that is printed."""
    return tool("pdf").join_pages(unpacked, contents, "The Book")


@pytest.fixture(scope="module")
def printed(joined, unpacked, tmp_path_factory) -> Iterator[pikepdf.Pdf]:
    file = tmp_path_factory.mktemp("paper") / "book.pdf"
    tool("pdf").print_book(joined, unpacked, file, "The Authors")
    with pikepdf.open(file) as document:
        yield document


def test_the_pdf_names_every_page_of_the_contents_in_order_each_further_on(
    printed, unpacked, contents
):
    titles = []
    for name in tool("pdf").order(contents):
        html = (unpacked / f"{name}.html").read_text(encoding="utf-8")
        heading = re.search(r"<h1>([^\n]+?)<a class=\"headerlink", html)[1]
        titles.append(BeautifulSoup(heading, "html.parser").get_text())
    with printed.open_outline() as outline:
        assert [item.title for item in outline.root] == [*titles, "Solutions"]
        starts = [printed.pages.index(pikepdf.Page(item.destination[0])) for item in outline.root]
    assert starts == sorted(set(starts))
    assert printed.docinfo["/Title"] == "The Book"
    assert printed.docinfo["/Author"] == "The Authors"


def test_the_contents_of_the_pdf_tell_the_page_of_each_heading_and_lead_there(printed):
    with printed.open_outline() as outline:
        starts = [printed.pages.index(pikepdf.Page(item.destination[0])) for item in outline.root]
    cover = PdfReader(printed.filename).pages[0]
    numbers = [int(number) for number in re.findall(r" (\d+)$", cover.extract_text(), re.MULTILINE)]
    assert numbers == [start + 1 for start in starts]
    assert len(cover["/Annots"]) == len(starts)


def test_the_pdf_links_within_itself_and_to_the_web_but_to_no_disk(printed):
    annotations = [link for page in printed.pages for link in page.get("/Annots", [])]
    outward = [str(link.A.URI) for link in annotations if "/A" in link and "/URI" in link.A]
    assert all(address.startswith(("https://", "http://")) for address in outward)
    assert len(annotations) - len(outward) > 100


def test_on_paper_figures_have_pictures_and_solutions_stand_at_the_end_only(joined):
    assert joined.select("attention-figure img")
    assert len(joined.select("attention-figure")) == len(joined.select("attention-figure img"))
    assert not joined.select("script, button, details, nav")
    assert "Answer on this page" not in joined.get_text()
    assert len(joined.select("[id$=--exercises] > h3, [id$=--exercises] > section")) > 60
    ids = [element["id"] for element in joined.find_all(id=True)]
    assert len(ids) == len(set(ids))
    asked = joined.find_all("a", string="The solution stands at the end of the book.")
    back = joined.select_one("#solutions")
    assert asked
    assert [link["href"][1:] for link in asked] == [
        cell["id"] for cell in back.select("div.cell[id]")
    ]
    inward = {link["href"][1:] for link in joined.select('a[href^="#"]')}
    assert inward <= set(ids)
