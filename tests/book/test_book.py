"""The rendered book, as a reader meets it: in a browser, from a server and from a disk."""

from __future__ import annotations

import gzip
import inspect
import itertools
import re
import statistics
import threading
from dataclasses import dataclass, field
from functools import cache, partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from browser import ROOT, Served, Watched, built_book, chromium, serve, wait_for_result
from bs4 import BeautifulSoup
from playwright.sync_api import Browser, expect
from scripts import tool

import attention_book

AXE = ROOT / "tests" / "_vendor" / "axe.min.js"
# axe cannot judge text on a gradient, and the shades at the edges of what scrolls are gradients.
FLAT = ".bd-article * { background-image: none !important; }"
#: Of all texts outside figures that have one colour, size, weight and ground, axe compares the
#: contrast of three: a chapter has thousands of words of code and symbols of formulas. A single
#: character it never judges.
THREE_OF_EACH_KIND = """() => {
  const up = (node) => node ? [getComputedStyle(node), ...up(node.parentElement)] : [];
  const isText = (node) => node.nodeType === 3 && node.data.trim().length > 1;
  const isSeen = (node) => node.checkVisibility() && node.getBoundingClientRect().width > 1;
  const kindOf = (node) => {
    const styles = up(node);
    const [{ color, fontSize, fontWeight }] = styles;
    const ground = styles.map((each) => each.backgroundColor)
      .find((each) => !/^rgba.* 0\\)$/.test(each));
    const veils = styles.map((each) => each.opacity).filter((each) => each < 1);
    return [color, fontSize, fontWeight, ground, ...veils].join();
  };
  const kinds = new Map();
  for (const node of document.querySelectorAll("body *")) {
    delete node.dataset.kind;
    if (node.matches("input, select, textarea")) node.dataset.kind = "what a reader gives";
    if (![...node.childNodes].some(isText) || !isSeen(node)) continue;
    const kind = node.closest("attention-figure") ? node : kindOf(node);
    const count = (kinds.get(kind) ?? 0) + 1;
    kinds.set(kind, count);
    if (count <= 3) node.dataset.kind = count;
  }
  axe.configure({ rules: [{ id: "color-contrast", selector: "[data-kind]" }] });
}"""
#: The Chinese pages that are opened: their frame and their scripts are those of the English ones.
CHINESE = {
    f"zh/{page}.html"
    for page in ("book/intro", "book/glossary", "book/api", "notebooks/03_masking", "search")
}


@pytest.fixture(scope="module")
def book() -> Path:
    return built_book()


@pytest.fixture(scope="module")
def pages(book: Path) -> dict[str, BeautifulSoup]:
    """Every page that was built, by its path; that for wrong addresses has a test of its own."""
    found = {
        str(file.relative_to(book)): BeautifulSoup(file.read_text(encoding="utf-8"), "html.parser")
        for file in sorted(book.rglob("*.html"))
        if not {"_static", "_sources", "404.html", "slides"} & set(file.relative_to(book).parts)
    }
    return {path: page for path, page in found.items() if page.body is not None}


def opened(pages: dict[str, BeautifulSoup]) -> list[str]:
    return [path for path in pages if not path.startswith("zh/") or path in CHINESE]


@dataclass
class Visit:
    """What was seen on one page."""

    errors: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    barriers: list[str] = field(default_factory=list)  # by axe, serious or critical
    wider: list[str] = field(default_factory=list)  # what sticks out at 360 px
    sent: dict[str, int] = field(default_factory=dict)  # the bytes of each file


def _barriers(watched: Watched, scheme: str) -> list[str]:
    watched.page.emulate_media(color_scheme=scheme)
    watched.page.wait_for_function(f"document.documentElement.dataset.theme === '{scheme}'")
    watched.page.evaluate(THREE_OF_EACH_KIND)
    found = watched.page.evaluate(
        "(rules) => axe.run({ resultTypes: ['violations'], ...rules }).then((r) => r.violations)",
        {} if scheme == "light" else {"runOnly": ["color-contrast"]},  # the rest is as in the light
    )
    return [
        f"{scheme}: {rule['id']}: {node['html'][:120]}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


def _narrow(watched: Watched) -> list[str]:
    """What sticks out of a page on a phone."""
    return watched.page.evaluate(
        """() => document.documentElement.scrollWidth <= 360 ? [] :
          [...document.querySelectorAll("main *")]
            .filter(element => element.getBoundingClientRect().right > 361)
            .filter(element => !element.closest("pre, .pst-scrollable-table-container, .scrolls"))
            .slice(-3).map(element => element.outerHTML.slice(0, 120))"""
    )


def _visit(browser: Browser, host: Served, book: Path, path: str) -> Visit:
    """Open a page for the first time on a desk, from the server, in light and in dark, and on a
    phone, from a disk."""
    desk = Watched(
        browser.new_context(
            viewport={"width": 1280, "height": 900}, color_scheme="light", reduced_motion="reduce"
        ),
        host.address,
    )
    phone = Watched(browser.new_context(viewport={"width": 360, "height": 740}), book.as_uri())
    host.sent.clear()
    desk.page.goto(f"{host.address}/{path}", wait_until="networkidle")
    sent = dict(host.sent)
    desk.page.add_style_tag(content=FLAT)
    desk.page.evaluate(AXE.read_text(encoding="utf-8"))
    barriers = _barriers(desk, "light") + _barriers(desk, "dark")
    phone.page.goto(f"{book.as_uri()}/{path}", wait_until="networkidle")
    wider = _narrow(phone)
    for watched in (desk, phone):
        watched.page.context.close()
    return Visit(desk.errors + phone.errors, desk.outside + phone.outside, barriers, wider, sent)


@pytest.fixture(scope="module")
def visits(book: Path, pages: dict[str, BeautifulSoup]) -> dict[str, Visit]:
    with chromium() as browser, serve(book) as host:
        return {path: _visit(browser, host, book, path) for path in opened(pages)}


def _nothing(kind: str, visits: dict[str, Visit]) -> None:
    """Fail with one line for each thing of this kind that was seen on any page."""
    seen = [f"{path}: {what}" for path, visit in visits.items() for what in getattr(visit, kind)]
    assert not seen, "\n".join(seen)


def test_no_page_asks_another_host_for_anything(visits):
    _nothing("outside", visits)


def test_no_page_complains_in_the_console(visits):
    _nothing("errors", visits)


def test_no_page_shuts_a_reader_out_in_light_or_dark(visits):
    _nothing("barriers", visits)


def test_no_page_scrolls_sideways_on_a_phone(visits):
    _nothing("wider", visits)


@cache
def _size(file: Path) -> int:
    """The bytes of a file as a host sends it."""
    stored = file.read_bytes()
    return len(gzip.compress(stored) if file.suffix in (".html", ".css", ".js") else stored)


def _pictures(page: BeautifulSoup) -> list[str]:
    """The addresses of a page's pictures, which have names of their own in each edition."""
    found = [str(image["src"]) for image in page.select('img[src*="_images/"]')]
    return [address[address.index("/_images/") :] for address in found]


def test_a_first_visit_is_light(book, pages, visits):
    model = "notebooks/11_language_model.html"
    sent = {path: sum(visit.sent.values()) for path, visit in visits.items()}
    for path in pages.keys() - visits.keys():  # it asks for what the English page asks for
        own = dict(
            zip(*(_pictures(pages[p]) for p in (path.removeprefix("zh/"), path)), strict=True)
        )
        files = visits[path.removeprefix("zh/")].sent
        sent[path] = sum(_size(book / f"zh{own.get(file, file)}") for file in files)
    for path in (model, f"zh/{model}"):  # a language model may weigh 150 KB on its own page
        sent[path] -= 150_000
    assert max(sent.values()) <= 500_000, max(sent.items(), key=lambda item: item[1])
    assert statistics.median(sent.values()) <= 350_000


def test_every_link_within_the_book_leads_somewhere(book, pages):
    broken = []
    ids = {path: {tag["id"] for tag in page.find_all(id=True)} for path, page in pages.items()}
    for path, page in pages.items():
        for link in page.find_all("a", href=True):
            target = urlsplit(link["href"])
            if target.scheme or target.netloc:
                continue
            file = (book / path).parent.joinpath(unquote(target.path)).resolve()
            if not target.path:
                file = (book / path).resolve()
            name = (
                str(file.relative_to(book.resolve())) if file.is_relative_to(book.resolve()) else ""
            )
            anchor = unquote(target.fragment)
            if not file.is_file() or (anchor and name in ids and anchor not in ids[name]):
                broken.append(f"{path}: {link['href']}")
    assert not broken, "\n".join(broken)


def test_every_picture_has_words_and_a_size(pages):
    for path, page in pages.items():
        for image in page.select("main img"):
            assert image.get("alt", "").strip(), f"{path}: {image}"
            assert not image["alt"].startswith(".."), f"{path}: {image}"


def test_headings_descend_one_level_at_a_time(pages):
    for path, page in pages.items():
        levels = [
            int(heading.name[1]) for heading in page.select("article :is(h1, h2, h3, h4, h5)")
        ]
        if levels:
            assert levels[0] == 1, path
            assert levels.count(1) == 1, path
            assert all(b <= a + 1 for a, b in itertools.pairwise(levels)), path


def test_every_page_names_the_licences_of_text_and_code(pages):
    for path, page in pages.items():
        foot = page.select_one("footer a[rel=license]")
        assert foot is not None, path
        assert "CC BY 4.0" in foot.parent.get_text(), path
        assert "MIT" in foot.parent.get_text(), path


def test_the_book_is_built_without_pytorch_and_its_signatures_are_those_of_the_code(pages):
    api = pages["book/api.html"]
    shown = {sig.get_text().strip() for sig in api.select("dt.sig")}
    for name in ("masked_softmax", "MultiHeadAttention"):
        written = inspect.signature(getattr(attention_book, name))
        [line] = [line for line in shown if line.startswith((f"{name}(", f"class {name}("))]
        assert [*written.parameters] == re.findall(r"(\w+): ", line)
    from_stand_in = [line for line in shown if "*args" in line or re.search("<(?!factory>)", line)]
    assert not from_stand_in


def test_every_page_and_every_chapter_stands_in_the_contents():
    contents = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    toc = yaml.safe_load(contents)
    named = {toc["root"], *(c["file"] for part in toc["parts"] for c in part["chapters"])}
    folders = ("book/*.md", "notebooks/*.ipynb", "coursework/student/*.ipynb")
    written = [file for folder in folders for file in ROOT.glob(folder)]
    assert named == {str(file.relative_to(ROOT).with_suffix("")) for file in written}


def test_next_on_the_start_page_leads_to_the_first_chapter(pages):
    onwards = pages["book/intro.html"].select_one("a.right-next")
    assert onwards["href"] == "../notebooks/01_queries_keys_values.html"


def test_every_line_of_the_configuration_says_what_it_is_for():
    lines = (ROOT / "_config.yml").read_text(encoding="utf-8").splitlines()
    sections = {"execute:", "parse:", "html:", "sphinx:", "config:"}
    sections |= {"html_theme_options:"}
    unexplained = [line for line in lines if line.strip() and "#" not in line]
    assert {line.strip() for line in unexplained} <= sections


#: What is searched for, and the page that a reader wants first.
SEARCHES = {
    "mask": "notebooks/03_masking.html",
    "causal": "notebooks/03_masking.html",
    "softmax": "notebooks/01_queries_keys_values.html",
    "kv cache": "notebooks/09_three_uses.html",
    "flash attention": "notebooks/10_fast_and_exact.html",
    "why divide by sqrt": "notebooks/06_scaled_dot_product.html",
    "gradient vanishing": "notebooks/06_scaled_dot_product.html",
}


def test_search_begins_with_the_chapter_that_explains_a_term_from_a_server_and_from_a_disk(book):
    with chromium() as browser, serve(book) as host:
        for home in (host.address, book.as_uri()):
            context = browser.new_context()
            watched = Watched(context, home)
            for asked, page in SEARCHES.items():
                watched.page.goto(f"{home}/search.html?q={asked}")
                wait_for_result(watched.page, "link.href.includes('#')")
                found = watched.page.locator("#search-results li a").evaluate_all(
                    "links => links.map(link => link.href)"
                )
                assert page in found[0], (asked, found[:3])
            assert not watched.errors
            context.close()


def test_a_search_for_a_term_offers_its_glossary_and_excerpts_are_sentences(book):
    with chromium() as browser, serve(book) as host:
        watched = Watched(browser.new_context(), host.address)
        for asked in ("softmax", "kv cache", "teacher forcing"):
            watched.page.goto(f"{host.address}/search.html?q={asked}")
            wait_for_result(watched.page, "link.textContent.startsWith('Glossary')")
            watched.page.locator("#search-results li p.context").nth(2).wait_for()
            found = watched.page.locator("#search-results li").all()[:3]
            assert found[1].locator("a").inner_text().startswith("Glossary"), asked
            for result in found:
                heading = result.locator("a").inner_text().split(" › ")[-1]
                excerpt = result.locator("p.context").inner_text()
                assert not excerpt.startswith((heading, "Reading time")), (asked, excerpt)
                assert "import " not in excerpt


def test_a_heading_that_a_link_leads_to_is_marked_until_it_has_been_seen(book):
    ground = "getComputedStyle(document.querySelector('#exercises > h2')).backgroundColor"
    unmarked = f"{ground} === 'rgba(0, 0, 0, 0)'"
    with chromium() as browser:
        for motion in ("no-preference", "reduce"):
            page = browser.new_page(reduced_motion=motion)
            page.goto((book / "notebooks" / "03_masking.html").as_uri() + "#exercises")
            assert not page.evaluate(unmarked)
            if motion == "no-preference":
                page.wait_for_function(unmarked)
            page.close()


def test_a_picture_stands_before_its_folded_code_and_output_after_code_that_is_seen(pages):
    chapter = pages["notebooks/06_scaled_dot_product.html"]
    folds = [fold for fold in chapter.select("div.cell > details.hide") if "picture" in fold.text]
    assert folds
    for fold in folds:
        assert fold.find_previous_sibling("div", class_="cell_output").find("img")
    for code in chapter.select("div.cell > .cell_input"):
        assert not code.find_previous_sibling("div", class_="cell_output")


def test_a_figure_stands_before_the_folded_line_that_makes_it(pages):
    cells = [
        figure.find_parent("div", class_="cell")
        for path, page in pages.items()
        if path.startswith("notebooks/")
        for figure in page.select("div.cell attention-figure")
    ]
    first = [cell.find(True).get("class") for cell in cells if "with " not in cell.pre.text]
    assert len(first) > 20
    assert all("cell_output" in kinds for kinds in first)


def test_a_page_carries_the_parameters_of_its_model_once_and_all_its_figures_live(book):
    file = book / "notebooks" / "11_language_model.html"
    assert len(re.findall(r'"parameters":"[^"]{1000}', file.read_text(encoding="utf-8"))) == 1
    with chromium() as browser:
        page = browser.new_page()
        page.goto(file.as_uri())
        lives = page.locator("attention-figure[kind=language_model] .af-now")
        expect(lives).to_have_count(2)
        for sentence in lives.all():
            expect(sentence).to_contain_text(re.compile(r"\d\.\d\d"))


def test_the_download_button_says_what_it_gives(pages):
    expected = {
        "notebooks/03_masking.html": ["This page as a notebook (.ipynb)", "Print this page"],
        "book/glossary.html": ["This page as text (.md)", "Print this page"],
    }
    for path, names in expected.items():
        items = pages[path].select(".dropdown-download-buttons .dropdown-item")
        assert [item.get_text(strip=True) for item in items] == names


def test_an_address_that_leads_nowhere_gets_a_page_of_the_book(book, monkeypatch):
    serving = tool("serve")
    handler = partial(serving.Handler, directory=book)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, chromium() as browser:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = browser.new_page()
        answer = page.goto(f"http://127.0.0.1:{server.server_port}/notebooks/none/at/all.html")
        assert answer.status == 404
        assert page.locator("article h1").inner_text() == "There is no such page"
        with page.expect_navigation():
            page.locator("article a").click()
        assert page.locator("h1").first.inner_text().startswith("Attention, Shape by Shape")
        server.shutdown()


def test_a_chapter_leads_once_to_each_term_that_another_chapter_explains(book, pages):
    lines = {
        f"{tr['id']}": [td.get_text(strip=True) for td in tr.find_all("td")]
        for tr in pages["book/glossary.html"].select("tr[id]")
    }
    assert len(lines) > 70
    for path, page in pages.items():
        links = page.select("a.term")
        named = [link["href"].partition("#")[2] for link in links]
        assert len(named) == len(set(named)), path
        for link, anchor in zip(links, named, strict=True):
            if path.startswith("notebooks/"):
                assert link["title"] == lines[anchor][2], (path, anchor)
                assert not link.find_parent(["h1", "h2", "h3", "code", "strong", "table"]), path
                number = re.match(r"notebooks/0?(\d+)", path)[1]
                assert lines[anchor][3] != number, (path, anchor)
    assert len(pages["notebooks/07_multi_head.html"].select("a.term")) > 15
    chinese = pages["zh/notebooks/07_multi_head.html"].select("a.term")
    assert len(chinese) > 15
    assert all(re.search("[\u4e00-\u9fff]", link["title"]) for link in chinese)


def test_the_theme_s_stylesheet_holds_what_pages_use_and_little_else(book):
    sheet = (book / "_static" / "styles" / "pydata-sphinx-theme.css").read_text(encoding="utf-8")
    assert len(sheet) < 130_000
    for needed in (".bd-sidebar-primary", ".dropdown-menu", ".bd-article-container"):
        assert needed in sheet, needed
    assert ".btn-outline-warning" not in sheet


def test_a_page_that_is_read_on_dark_ground_is_printed_on_white(book):
    with chromium() as browser:
        page = browser.new_page(color_scheme="dark")
        page.goto((book / "notebooks" / "03_masking.html").as_uri())
        ground = "getComputedStyle(document.body).backgroundColor"
        dark = page.evaluate(ground)
        page.emulate_media(media="print", color_scheme="dark")
        page.wait_for_function(f"{ground} === 'rgb(255, 255, 255)'")
        page.emulate_media(media="screen", color_scheme="dark")
        page.wait_for_function(f"{ground} === '{dark}'")
        assert dark != "rgb(255, 255, 255)"
