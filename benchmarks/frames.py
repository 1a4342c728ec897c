"""Measure how long a slow phone needs from a move of a slider to the picture that it makes.

Run it on a quiet machine after `make book`: `python -m benchmarks.frames [what names of pages
contain]`. It is no test, because the milliseconds are the machine's.
"""

from __future__ import annotations

import shutil
import statistics
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from pdf import BROWSERS  # noqa: E402

BOOK = ROOT / "_build" / "html"
PHONE = {"width": 360, "height": 640}
SLOWER = 4  #: Times, as browsers' tools simulate a phone of the middle class.
MOVES = 40
MOVE_AND_PAINT = """([node, i]) => new Promise((done) => {
  const input = node.querySelector(".af-slider:not([hidden]) input");
  const start = performance.now();
  input.value = i % (Number(input.max) + 1);
  input.dispatchEvent(new Event("input", { bubbles: true }));
  requestAnimationFrame(() => {
    const after = new MessageChannel(); // its message comes when the frame is painted
    after.port1.onmessage = () => done(performance.now() - start);
    after.port2.postMessage(0);
  });
})"""


def main() -> None:
    wanted = sys.argv[1] if sys.argv[1:] else ""
    path = next(found for name in BROWSERS if (found := shutil.which(name)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for file in sorted(BOOK.glob("notebooks/*.html")):
            if wanted not in file.name:
                continue
            page = browser.new_page(viewport=PHONE)
            page.goto(file.as_uri())
            page.wait_for_timeout(1500)
            session = page.context.new_cdp_session(page)
            session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
            for figure in page.query_selector_all("attention-figure"):
                if not figure.query_selector(".af-slider:not([hidden]) input"):
                    continue
                figure.scroll_into_view_if_needed()
                page.evaluate(MOVE_AND_PAINT, [figure, 1])  # the first move compiles
                times = [page.evaluate(MOVE_AND_PAINT, [figure, i]) for i in range(MOVES)]
                print(
                    f"{file.stem:28} {figure.get_attribute('kind'):12}"
                    f" median {statistics.median(times):5.1f} ms,"
                    f" p95 {statistics.quantiles(times, n=20)[-1]:5.1f} ms",
                    flush=True,
                )
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
