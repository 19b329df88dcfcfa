"""A real browser: pages as people see them, and what it complains of."""

import shutil
from typing import Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
Theme = Literal["light", "dark"]


def installed_browser() -> str | None:
    """The path of one that can be driven."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def serious_problems(page: Page, *rules: str) -> list[tuple[str, str]]:
    """What axe finds that keeps somebody from reading or using a page: the rule, and an element.

    By all of its rules, or by those that are named.
    """
    options = {"resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
    found = Axe().run(page, options=options).response["violations"]
    return [
        (v["id"], v["nodes"][0]["html"]) for v in found if v["impact"] in ("serious", "critical")
    ]


class Visit:
    """A page and what the browser complained of, or asked for, while it was there."""

    def __init__(self, browser: Browser, theme: Theme = "light", width: int = 1200) -> None:
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme
        )
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda m: self.complaints.append(f"{m.type}: {m.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def go(self, url: str) -> Page:
        """Charts are drawn by the time that a page is loaded."""
        self.page.goto(url)
        return self.page
