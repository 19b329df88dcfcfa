"""The dashboard's pictures in these pages, of a service that has the example's model:

credence train app/ui/static/examples/bike-hires.csv --target hires --alias champion
credence train app/ui/static/examples/bike-hires.csv --target hires --method ensemble
python docs/screenshots.py http://127.0.0.1:8000 docs/images
"""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

ROW = {"hour": "17", "weekday": "Fri", "temperature": "34", "wind": "3"}


@contextmanager
def page_of(browser: Browser, width: int, height: int, theme: str = "light") -> Iterator[Page]:
    """A window; it waits until nothing is under way."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if theme == "dark" else "light",
        device_scale_factor=1.5,
    )
    yield context.new_page()
    context.close()


def go(page: Page, address: str) -> None:
    """Events of a job may stream on: no waiting for silence."""
    page.goto(address)
    page.wait_for_timeout(2500)


def take(browser: Browser, url: str, folder: Path) -> None:
    """All of them."""
    predict = f"{url}/ui/predict?model=bike-hires&version=champion"
    with page_of(browser, 1200, 1104) as page:
        go(page, predict)
        for name, value in ROW.items():
            page.get_by_label(name, exact=True).fill(value)
        page.get_by_role("button", name="Predict").click()
        page.wait_for_timeout(2500)
        page.screenshot(path=folder / "dashboard-predict.png")
    with page_of(browser, 1200, 1000) as page:
        go(page, f"{url}/ui/models/bike-hires/versions/1")
        page.screenshot(path=folder / "dashboard-model.png")
    with page_of(browser, 1200, 1130) as page:
        go(page, f"{url}/ui/compare")
        for row in page.locator("#choice input").all()[:2]:
            row.check()
        page.wait_for_timeout(1500)
        page.screenshot(path=folder / "dashboard-compare.png")
    with page_of(browser, 1200, 900) as page:
        go(page, f"{url}/ui/jobs")
        page.locator("main table a[href^='/ui/jobs/']").last.click()
        page.locator("#losses .main-svg").first.wait_for()
        page.wait_for_timeout(1000)
        page.screenshot(path=folder / "dashboard-job.png")
    with page_of(browser, 390, 800, "dark") as page:
        go(page, predict)
        page.screenshot(path=folder / "dashboard-phone.png")


def main() -> None:
    """Into the folder that is named."""
    url, folder = sys.argv[1], Path(sys.argv[2])
    with sync_playwright() as playwright:
        path = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        take(browser, url.rstrip("/"), folder)
        browser.close()


if __name__ == "__main__":
    main()
