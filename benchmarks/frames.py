"""Measure what one move of a slider costs the page, against a frame of 16.7 ms.

Run it on a quiet machine after `make book`: `python -m benchmarks.frames`. It is no test, because
the milliseconds are the machine's.
"""

from __future__ import annotations

import statistics
from pathlib import Path

from playwright.sync_api import sync_playwright

BOOK = Path(__file__).resolve().parent.parent / "_build" / "html"
MOVES = 50
MOVE_AND_PAINT = """([node, i]) => new Promise((done) => {
  const input = node.querySelector(".af-slider:not([hidden]) input");
  input.value = i % (Number(input.max) + 1);
  input.dispatchEvent(new Event("input", { bubbles: true }));
  requestAnimationFrame(() => {
    const after = new MessageChannel(); // its message comes when the frame is painted
    after.port1.onmessage = () => done();
    after.port2.postMessage(0);
  });
})"""


def main() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        for path in sorted(BOOK.glob("notebooks/[0-9]*.html")):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(path.as_uri())
            page.wait_for_timeout(1500)
            session = page.context.new_cdp_session(page)
            session.send("Performance.enable", {"timeDomain": "threadTicks"})
            for figure in page.query_selector_all("attention-figure"):
                if not figure.query_selector(".af-slider:not([hidden]) input"):
                    continue
                figure.scroll_into_view_if_needed()
                times = []
                for i in range(MOVES):
                    before = _spent(session)
                    page.evaluate(MOVE_AND_PAINT, [figure, i])
                    times.append(_spent(session) - before)
                p95 = statistics.quantiles(times, n=20)[-1]
                kind = figure.get_attribute("kind")
                print(f"{path.stem:28} {kind:12} median {statistics.median(times):5.1f} ms, "
                      f"p95 {p95:5.1f} ms of 16.7 ms", flush=True)  # fmt: skip
            page.close()
        browser.close()


def _spent(session: object) -> float:
    """Milliseconds of the page's main thread, not counting those it waited for others."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return 1000 * next(each["value"] for each in metrics if each["name"] == "TaskDuration")


if __name__ == "__main__":
    main()
