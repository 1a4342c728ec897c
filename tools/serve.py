"""Build the book and serve it on this computer: `python tools/serve.py PORT`."""

from __future__ import annotations

import contextlib
import sys
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class Handler(SimpleHTTPRequestHandler):
    """Files, and the book's own page for an address that leads to none."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        page = Path(self.directory) / "404.html"
        if code != HTTPStatus.NOT_FOUND or not page.is_file():
            return super().send_error(code, message, explain)
        self.error_message_format = page.read_text(encoding="utf-8").replace("%", "%%")
        return super().send_error(code)


def main(port: str) -> int:
    import book

    handler = partial(Handler, directory=ROOT / "_build" / "html")
    try:  # before the book is built, which takes longer
        server = ThreadingHTTPServer(("127.0.0.1", int(port)), handler)
    except (OSError, OverflowError, ValueError) as error:
        print(f"Port {port} cannot be used ({error}): name another with make serve PORT=…")
        return 1
    with server:
        if book.main():
            return 1
        print(f"It is served on http://localhost:{port} until you press Ctrl+C.", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
