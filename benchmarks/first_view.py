"""How soon a page of the dashboard is seen, in Chromium with an empty cache.

credence train app/ui/static/examples/bike-hires.csv --target hires
python -m benchmarks.first_view http://127.0.0.1:8000 bike-hires
"""

import argparse
import os
import shutil
import statistics
from collections.abc import Sequence
from typing import Any

from playwright.sync_api import Browser, sync_playwright

VISITS = 9  # of each page, besides a first one that warms up the service
MEASURED = """async () => {
    const paint = () => performance.getEntriesByName("first-contentful-paint")[0];
    while (!paint()) await new Promise(done => setTimeout(done, 10));
    const drawn = () => !document.querySelector(".chart") || document.querySelector(".main-svg");
    while (!drawn()) await new Promise(done => requestAnimationFrame(done));
    const requests = performance.getEntriesByType("resource");
    const scripts = requests.filter(e => new URL(e.name).pathname.endsWith(".js"));
    return {
        painted: paint().startTime,
        drawn: performance.now(),
        bytes: scripts.reduce((sum, e) => sum + e.encodedBodySize, 0),
        elsewhere: requests.filter(e => new URL(e.name).origin !== location.origin).length,
    };
}"""


def visit(browser: Browser, url: str) -> dict[str, float]:
    """Milliseconds to the first paint and until a chart is drawn, bytes of scripts, compressed."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    page.goto(url)
    found: dict[str, float] = page.evaluate(MEASURED)
    context.close()
    return found


def told(values: Sequence[float]) -> str:
    """The median and the range."""
    return f"{statistics.median(values):5.0f} ({min(values):.0f} to {max(values):.0f})"


def main() -> None:
    """A line for each page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("model")
    given: Any = parser.parse_args()
    pages = ("/", f"/ui/models/{given.model}/versions/1", f"/ui/predict?model={given.model}")
    with sync_playwright() as playwright:
        path = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for address in pages:
            visits = [visit(browser, given.url + address) for _ in range(VISITS + 1)][1:]
            painted, drawn = ([v[name] for v in visits] for name in ("painted", "drawn"))
            print(
                f"{address}: first contentful paint {told(painted)} ms, "
                f"content complete {told(drawn)} ms, "
                f"{visits[0]['bytes'] / 1000:.0f} kB of scripts, "
                f"{sum(v['elsewhere'] for v in visits):.0f} requests elsewhere"
            )
        browser.close()
    print(f"load {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
