"""What a book gets once it is told where it stands on the web; and that it gets nothing else."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlencode
from xml.etree import ElementTree

import pytest
import yaml
from browser import ROOT, built_book
from bs4 import BeautifulSoup
from nbformat.v4 import new_markdown_cell, new_notebook, writes
from PIL import Image

CONF = f"""
import sys
sys.path.insert(0, {str(ROOT / "book" / "_ext")!r})
project = "A Small Book"
extensions = ["myst_nb", "formulas_ext", "theme_ext", "languages_ext", "published_ext"]
templates_path = [{str(ROOT / "book" / "_ext" / "templates")!r}]
html_static_path = [{str(ROOT / "book" / "_static")!r}]
html_theme = "sphinx_book_theme"
html_theme_options = {{
    "footer_content_items": ["foot.html"],
    "toc_title": "On this page",
    "search_bar_text": "Search the book",
}}
html_math_renderer = "katex"
nb_execution_mode = "off"
"""
ADDRESS = "https://owner.github.io/repo/"
REPOSITORY = "https://github.com/owner/repo"


def built(folder: Path, language: str = "en", **addresses: str) -> subprocess.CompletedProcess[str]:
    (folder / "notebooks").mkdir(exist_ok=True)
    (folder / "conf.py").write_text(CONF, encoding="utf-8")
    start = "# Start\n\nA sentence.\n\n```{toctree}\nnotebooks/01_one\n```\n"
    (folder / "index.md").write_text(start, encoding="utf-8")
    cells = [new_markdown_cell("# One"), new_markdown_cell("*Reads at once.*\n\nWhat it says.")]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    stored = writes(new_notebook(cells=cells, metadata={"kernelspec": kernel}))
    (folder / "notebooks" / "01_one.ipynb").write_text(stored, encoding="utf-8")
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", "-D", f"language={language}"]
    command += [folder, folder / "out"]
    environment = {**os.environ, **addresses}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def publish(folder: Path, language: str) -> Path:
    addresses = {
        "ATTENTION_BOOK_ADDRESS": ADDRESS.rstrip("/"),
        "ATTENTION_BOOK_REPOSITORY": REPOSITORY,
    }
    said = built(folder, language, **addresses)
    assert said.returncode == 0, said.stderr
    assert "WARNING" not in said.stderr, said.stderr
    return folder / "out"


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Path:
    """A book of one page and one notebook that was told both addresses."""
    return publish(tmp_path_factory.mktemp("published"), "en")


@pytest.fixture(scope="module")
def chinese(tmp_path_factory) -> Path:
    """Its Chinese edition."""
    return publish(tmp_path_factory.mktemp("published in Chinese"), "zh_CN")


def read(file: Path) -> BeautifulSoup:
    return BeautifulSoup(file.read_text(encoding="utf-8"), "html.parser")


def meta(page: BeautifulSoup, name: str) -> str:
    tag = page.find("meta", property=name) or page.find("meta", attrs={"name": name})
    return tag["content"]


def test_a_chapter_opens_on_binder_and_on_colab_and_a_page_does_not(published):
    chapter = read(published / "notebooks" / "01_one.html")
    launch = [link["href"] for link in chapter.select(".dropdown-launch-buttons a")]
    assert launch == [
        "https://mybinder.org/v2/gh/owner/repo/main?urlpath=lab/tree/lab/01_one.ipynb",
        "https://colab.research.google.com/github/owner/repo/blob/colab/notebooks/01_one.ipynb",
    ]
    images = [image["src"] for image in chapter.select(".dropdown-launch-buttons img")]
    assert all((published / "notebooks" / image).resolve().is_file() for image in images)
    assert not read(published / "index.html").select(".dropdown-launch-buttons")


def test_every_page_leads_to_the_forms_for_a_mistake_with_its_name_filled_in(published):
    for page in ("index", "notebooks/01_one"):
        foot = read(published / f"{page}.html")
        for form in ("sentence", "figure"):
            assert (ROOT / ".github" / "ISSUE_TEMPLATE" / f"{form}.yml").exists()
            asked = urlencode({"template": f"{form}.yml", "page": page})
            assert foot.find("a", href=f"{REPOSITORY}/issues/new?{asked}")


def test_each_form_takes_the_page_that_the_link_fills_in():
    for form in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"):
        fields = yaml.safe_load(form.read_text(encoding="utf-8"))["body"]
        assert "page" in [field["id"] for field in fields]


def test_every_page_offers_the_book_to_carry_away(published):
    for page in ("index.html", "notebooks/01_one.html"):
        links = [link["href"] for link in read(published / page).select("a[href^='https://owner']")]
        assert ADDRESS + "attention-shape-by-shape.zip" in links
        assert ADDRESS + "attention-shape-by-shape.pdf" in links


def test_a_link_to_a_page_shows_its_title_its_sentence_and_a_picture(published):
    page = read(published / "notebooks" / "01_one.html")
    assert meta(page, "og:title") == "One"
    assert meta(page, "description") == meta(page, "og:description") == "What it says."
    assert meta(page, "og:url") == ADDRESS + "notebooks/01_one.html"
    assert page.find("link", rel="canonical")["href"] == ADDRESS + "notebooks/01_one.html"
    card = meta(page, "og:image")
    assert card.startswith(ADDRESS)
    with Image.open(published / card.removeprefix(ADDRESS)) as picture:
        assert picture.size == (1200, 630)
    assert meta(page, "og:image:alt")


def test_each_edition_names_its_own_address_and_that_of_the_other(published, chinese):
    for page in ("index.html", "notebooks/01_one.html"):
        places = {"en": ADDRESS + page, "zh-CN": f"{ADDRESS}zh/{page}"}
        for tag, edition in (("en", published), ("zh-CN", chinese)):
            head = read(edition / page)
            named = {link["hreflang"]: link["href"] for link in head.select("head link[hreflang]")}
            assert named == {**places, "x-default": places["en"]}
            assert head.find("link", rel="canonical")["href"] == places[tag]
            assert meta(head, "og:url") == places[tag]
            assert meta(head, "og:image") == ADDRESS + "_static/card.png"


def test_a_chinese_page_offers_the_chinese_pdf_and_the_zip_with_both_editions(chinese):
    links = [a["href"] for a in read(chinese / "index.html").select("a[href^='https://owner']")]
    assert ADDRESS + "attention-shape-by-shape.zip" in links
    assert ADDRESS + "attention-shape-by-shape.zh.pdf" in links


def test_the_sitemap_lists_every_page_once(published):
    entries = ElementTree.parse(published / "sitemap.xml").getroot()
    space = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
    assert entries.tag == f"{space}urlset"
    places = [entry.findtext(f"{space}loc") for entry in entries.findall(f"{space}url")]
    assert sorted(places) == [ADDRESS + "index.html", ADDRESS + "notebooks/01_one.html"]


def test_the_page_for_wrong_addresses_holds_at_any_depth(published):
    page = read(published / "404.html")
    assert "no such page" in page.select_one("article h1").get_text()
    targets = [
        tag[name]
        for name in ("href", "src", "action")
        for tag in page.find_all(attrs={name: True})
        if not tag[name].startswith(("#", "https://", "data:"))  # the same at any depth
    ]
    assert targets
    for target in targets:
        assert target.startswith("/repo/"), target
        assert (published / target.removeprefix("/repo/").split("?")[0]).is_file(), target


def test_a_repository_that_the_launch_buttons_cannot_open_stops_the_build(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")
    extension = importlib.import_module("published_ext")
    config = SimpleNamespace(
        language="en", book_address="", book_repository="https://example.org/owner/repo"
    )
    with pytest.raises(ValueError, match="GitHub only"):
        extension._read_addresses(None, config)


def test_a_book_without_an_address_claims_none():
    book = built_book()
    assert read(book / "404.html").select_one("article a")["href"] == "/index.html"
    assert not (book / "sitemap.xml").exists()
    chapter = read(book / "notebooks" / "03_masking.html")
    assert not chapter.find("a", href=re.compile("issues/new"))
    assert not chapter.select(".dropdown-launch-buttons, link[rel=canonical], meta[name^=twitter]")
    assert chapter.find("meta", property="og:description")
