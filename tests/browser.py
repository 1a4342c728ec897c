"""What tests of the rendered book share: the system's browser, a server, the built pages."""

from __future__ import annotations

import gzip
import mimetypes
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

from filelock import FileLock
from pdf import BROWSERS
from playwright.sync_api import Browser, BrowserContext, Page, Route, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / "_build" / "html"
SOURCES = (
    "_config.yml",
    "_toc.yml",
    "benchmarks",
    "book",
    "locale",
    "notebooks",
    "slides",
    "src/attention_book",
)
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def built_book() -> Path:
    """The folder of the built book; it is built first if a source is newer."""
    (ROOT / "_build").mkdir(exist_ok=True)
    with FileLock(ROOT / ".book.lock"):
        made = BUILT / "search.html"
        if not made.exists() or made.stat().st_mtime < _newest_source():
            result = subprocess.run(
                [sys.executable, "tools/book.py"], cwd=ROOT, capture_output=True, text=True
            )
            assert result.returncode == 0, result.stdout + result.stderr
    return BUILT


def _newest_source() -> float:
    files = (
        file
        for source in SOURCES
        for file in [ROOT / source, *(ROOT / source).rglob("*")]
        if file.is_file()
        and file.suffix != ".mo"  # written by the build, from the catalogue beside it
        and "__pycache__" not in file.parts
        and ".ipynb_checkpoints" not in file.parts
    )
    return max(file.stat().st_mtime for file in files)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The system's Chromium, without a window; `tools/system.sh` installs it."""
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    assert path, "no Chromium on this system: run tools/system.sh"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield browser
        browser.close()


class Served:
    """A folder on a local port: its address, and the bytes that went out (compressed, as sent)."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.sent: dict[str, int] = {}


@contextmanager
def serve(folder: Path) -> Iterator[Served]:
    """Serve `folder` as a real host does: compressed, cacheable, on a free port."""
    compressed = cache(gzip.compress)  # each page of a book asks for the same files

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            file = (folder / path.lstrip("/")).resolve()
            if file.is_dir():
                file /= "index.html"
            if not file.is_relative_to(folder.resolve()) or not file.is_file():
                self.send_error(404)
                return
            kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
            body = file.read_bytes()
            self.send_response(200)
            if kind.startswith("text/") or kind.endswith(("javascript", "json", "svg+xml")):
                body = compressed(body)
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            served.sent[path] = len(body)

        def log_message(self, *args: object) -> None:
            """Say nothing: the tests look at what the browser says."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = Served(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield served
    server.shutdown()
    server.server_close()
    thread.join()


def stop_the_clock(page: Page) -> None:
    """Load `page` again with its timers standing still: they move by `page.clock.run_for` alone."""
    page.clock.install(time=0)
    page.clock.pause_at(1000)  # seconds; a clock that is only installed goes on with the real one
    page.reload()


def wait_for_result(page: Page, condition: str) -> None:
    """Wait for a result, `link`, that meets a condition; the page shows one after another."""
    links = "[...document.querySelectorAll('#search-results li a')]"
    page.wait_for_function(f"() => {links}.some((link) => {condition})")


class Watched:
    """A page, what it complained of, and what it asked other hosts for (which it does not get)."""

    def __init__(self, context: BrowserContext, home: str) -> None:
        self.errors: list[str] = []
        self.outside: list[str] = []
        self.page: Page = context.new_page()
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on(
            "console",
            lambda said: self.errors.append(said.text) if said.type == "error" else None,
        )

        def judge(route: Route) -> None:
            if route.request.url.startswith((home, "data:", "blob:")):
                route.continue_()
            else:
                self.outside.append(route.request.url)
                route.abort()

        self.page.route("**/*", judge)


@contextmanager
def from_disk(folder: Path) -> Iterator[Watched]:
    """A built book from a disk, in one tab, with the network off; it must ask for nothing else."""
    with chromium() as browser:
        context = browser.new_context()
        context.set_offline(True)
        watched = Watched(context, folder.as_uri())
        yield watched
        assert watched.outside == []
        assert watched.errors == []
