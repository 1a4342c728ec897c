"""Print each edition of the built book as one PDF, in the order of its contents.

The pages become one document before they are printed, so that links between them still lead
somewhere, page numbers run through, and each font is stored once. The static picture of a figure
stands in for the moving one. Solutions fold on a page; on paper they stand at the end.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from copy import copy
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import unquote, urlsplit

import pikepdf
import yaml
from bs4 import BeautifulSoup, Tag

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "book" / "_ext"))

from editions import EDITIONS, N_, translations  # noqa: E402

#: The first has no windows, so it opens a page in less than half the time.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
#: What only a screen has a use for; a page marks such a passage with the class onscreen. The first
#: paragraph of the exercises says how they are answered there.
SCREEN_ONLY = (
    ".onscreen, script, button, .headerlink, .onlyprint, .toctree-wrapper, nav, #exercises > h2 + p"
)
HEADINGS = "h1, h2, h3, h4, h5, h6"
COVER = '<article class="bd-article cover"><p class="title"></p><p></p><ol></ol></article>'
ON_PAPER = N_(
    "An interactive book. Its figures move in the pages on a screen; here each shows one picture. "
    "The solutions of the exercises stand at the end."
)
AT_THE_END = N_("The solution stands at the end of the book.")
SOLUTIONS = N_("Solutions")


def _piece(html: str) -> Tag:
    return BeautifulSoup(html, "html.parser").find()


def order(contents: dict) -> list[str]:
    """Every page of the book, as `_toc.yml` orders them."""
    chapters = [chapter["file"] for part in contents["parts"] for chapter in part["chapters"]]
    return [contents["root"], *chapters]


def _name(page: str, fragment: str = "") -> str:
    """What an anchor of a page is called where all pages are one."""
    return f"{page.replace('/', '-')}--{fragment}"


def _article(page: str, html: str, pages: set[str]) -> Tag:
    """The text of one page, its anchors and links renamed so that they hold among the others."""
    article = BeautifulSoup(html, "html.parser").select_one("article.bd-article")
    assert article is not None, f"{page} has no text"
    for element in article.select(SCREEN_ONLY):
        element.decompose()
    for element in article.find_all(id=True):
        element["id"] = _name(page, element["id"])
    article["id"] = _name(page)
    for link in article.find_all("a", href=True):
        target = urlsplit(link["href"])
        if target.scheme or target.netloc:
            continue
        path = normpath(join(dirname(page), unquote(target.path))).removesuffix(".html")
        if not target.path or path in pages:
            link["href"] = "#" + _name(path if target.path else page, unquote(target.fragment))
        else:  # a file next to the pages, which the PDF does not hold
            link.unwrap()
    for image in article.find_all("img"):
        image.attrs.pop("loading", None)
    return article


def _entry(place: str, heading: str) -> Tag:
    """A line of the contents; the number of the page is known once the book is printed."""
    entry = _piece(f'<li><a href="#{place}"></a><span class="number">&nbsp;</span></li>')
    entry.a.string = heading
    return entry


def _take_solutions(article: Tag, document: BeautifulSoup, instead: str) -> list[Tag]:
    """Move the folded solutions of a chapter out of it, and leave a link where each stood.

    They are folded cells, and answers that the text itself folds.
    """
    solutions: list[Tag] = []
    for fold in article.select("details"):
        fold.summary.extract()
        answers = not fold.get("class") or "tag_hide-cell" in fold.parent.get("class", [])
        if not answers:  # folded to be out of the way: on paper it lies open
            fold.name, fold.attrs = "div", {}
            continue
        place = f"{article['id']}solution-{len(solutions) + 1}"
        link = document.new_tag("a", href=f"#{place}")
        link.string = instead
        paragraph = document.new_tag("p")
        paragraph.append(link)
        fold.replace_with(paragraph)
        fold.name, fold.attrs = "div", {"id": place, "class": "cell"}
        solutions.append(fold)
    return solutions


def join_pages(book: Path, contents: dict, title: str, language: str = "en") -> BeautifulSoup:
    """A whole edition as one page of HTML, to lie in a folder of the built edition."""
    words = translations(language, "sphinx")
    title, on_paper, at_the_end, ends = (
        words.get(text, text) for text in (title, ON_PAPER, AT_THE_END, SOLUTIONS)
    )
    names = order(contents)
    sources = {name: (book / f"{name}.html").read_text(encoding="utf-8") for name in names}
    document = BeautifulSoup(
        f'<!doctype html><html lang="{EDITIONS[language].tag}" data-theme="light" '
        'data-mode="light"><head>'
        '<meta charset="utf-8"></head><body><main class="print bd-main"></main></body></html>',
        "html.parser",
    )
    main = document.main
    start = BeautifulSoup(sources[names[0]], "html.parser")
    heading = document.new_tag("title")
    heading.string = title
    document.head.extend([heading, *start.select('head link[rel="stylesheet"]')])

    cover = _piece(COVER)
    for paragraph, text in zip(cover.select("p"), (title, on_paper), strict=True):
        paragraph.string = text
    main.append(cover)
    back = _piece('<article class="bd-article" id="solutions"><h1></h1></article>')
    back.h1.string = ends
    for name in names:
        article = _article(name, sources[name], set(names))
        solutions = _take_solutions(article, document, at_the_end)
        main.append(article)
        cover.ol.append(_entry(_name(name), article.h1.get_text()))
        if solutions:
            chapter = document.new_tag("h2")
            chapter.string = article.h1.get_text()
            back.extend([chapter, *solutions])
    main.append(back)
    cover.ol.append(_entry("solutions", ends))
    style = document.new_tag("style")
    style.string = (ROOT / "tools" / "pdf.css").read_text(encoding="utf-8")
    document.head.append(style)
    return document


def print_page(page: Path, printed: Path) -> None:
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    assert browser, "no Chromium on this system: run tools/system.sh"
    with tempfile.TemporaryDirectory() as profile:
        command = [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            f"--user-data-dir={profile}",
            "--no-pdf-header-footer",
            "--generate-pdf-document-outline",
            f"--print-to-pdf={printed}",
            page.as_uri(),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=300)


def finish(printed: Path, headings: list[str], title: str, author: str) -> None:
    """Name the book and its headings (the browser says those twice that it moved to a new page)."""
    with pikepdf.open(printed, allow_overwriting_input=True) as document:
        with document.open_outline() as outline:
            names = iter(headings)

            def rename(items: list[pikepdf.OutlineItem]) -> None:
                for item in items:
                    item.title = next(names)
                    rename(item.children)

            rename(outline.root)
        with document.open_metadata() as metadata:
            metadata["dc:title"], metadata["dc:creator"] = title, [author]
        document.save(printed, object_stream_mode=pikepdf.ObjectStreamMode.generate)


def number_contents(printed: Path, joined: BeautifulSoup, page: Path) -> None:
    """Print the contents once more, with the numbers of the pages, over those without."""
    cover = copy(joined)
    for article in cover.select("article:not(.cover)"):
        article.decompose()
    numbered = printed.with_suffix(".cover.pdf")
    with pikepdf.open(printed, allow_overwriting_input=True) as document:
        with document.open_outline() as outline:
            places = [item.destination[0] for item in outline.root]
        for number, place in zip(cover.select(".number"), places, strict=True):
            number.string = str(document.pages.index(pikepdf.Page(place)) + 1)
        page.write_text(str(cover), encoding="utf-8")
        print_page(page, numbered)
        with pikepdf.open(numbered) as written:
            # What is drawn is new, what is linked stays.
            for old, new in zip(document.pages, written.pages, strict=False):
                for part in ("/Contents", "/Resources"):
                    old.obj[part] = document.copy_foreign(written.make_indirect(new.obj[part]))
            document.save(printed)
    numbered.unlink()


def print_book(joined: BeautifulSoup, book: Path, printed: Path, author: str) -> None:
    # In a folder of the book, from where links to pictures and styles hold.
    page = book / "book" / "print.html"
    page.write_text(str(joined), encoding="utf-8")
    try:
        print_page(page, printed)
        number_contents(printed, joined, page)
    finally:
        page.unlink()
    headings = [" ".join(heading.get_text().split()) for heading in joined.select(HEADINGS)]
    finish(printed, headings, joined.title.get_text(), author)


def main() -> int:
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    for language, edition in EDITIONS.items():
        book = ROOT / "_build" / "html" / edition.folder
        printed = ROOT / "_build" / edition.printed
        joined = join_pages(book, contents, config["title"], language)
        print_book(joined, book, printed, config["author"])
        print(f"The book is printed: {printed}, {printed.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
