"""Webhooks in the browser: a secret that is shown once, deliveries, and one sent again."""

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import expect

from core.webhooks.deliveries import Deliveries
from core.webhooks.sending import send
from tests.app.browser import Visit
from tests.app.running import Service, serving
from tests.core.webhooks.receiving import Receiving, answer, receiver

pytestmark = pytest.mark.pages


@pytest.fixture(scope="module")
def receiving() -> Iterator[Receiving]:
    with receiver() as got:
        yield got


@pytest.fixture(scope="module")
def service(
    trained: Path, receiving: Receiving, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("told") / "data"
    shutil.copytree(trained, folder)
    with serving(folder, webhooks=f"private+http://127.0.0.1:{receiving.port}") as running:
        yield running


def deliver(service: Service) -> None:
    """As a worker does."""
    deliveries = Deliveries(service.context.database)
    while attempt := deliveries.claim(""):
        deliveries.record(attempt, send(attempt, service.context.webhook_rules))


def test_a_webhook_is_made_told_and_told_again(
    service: Service, receiving: Receiving, visit: Visit
) -> None:
    page = visit.go(f"{service.url}/ui/webhooks")
    page.get_by_label("URL of the receiver").fill("https://169.254.169.254/")
    page.get_by_role("button", name="Add webhook").click()
    expect(page.locator(".error")).to_contain_text("CREDENCE_WEBHOOKS")
    page.get_by_label("URL of the receiver").fill(f"http://127.0.0.1:{receiving.port}/hook")
    page.get_by_label("alias.moved").check()
    page.get_by_role("button", name="Add webhook").click()
    secret = page.locator("#secret")
    expect(secret).to_contain_text("whsec_")
    receiving.secret = secret.inner_text()
    page.get_by_role("link", name="Go on").click()
    assert receiving.secret not in page.content()

    service.http.put("/models/price/aliases/staging", json={"version": 2})
    deliver(service)
    receiving.respond = partial(answer, status=410)
    service.http.put("/models/price/aliases/staging", json={"version": 1})
    deliver(service)
    page.reload()
    rows = page.get_by_role("row").filter(has_text="price/staging")
    expect(rows.locator(".badge")).to_have_text(["failed", "delivered"])
    expect(rows.first).to_contain_text("410")
    expect(page.locator(".attention")).to_have_count(1)

    receiving.respond = partial(answer, status=204)
    page.get_by_role("button", name="Enable").click()
    expect(page.locator(".attention")).to_have_count(0)
    rows.first.get_by_role("button", name="again").click()
    expect(rows.first.locator(".badge")).to_have_text("pending")
    deliver(service)
    page.reload()
    expect(rows.first.locator(".badge")).to_have_text("delivered")
    assert len(receiving.ids) == 3
    assert receiving.ids[1] == receiving.ids[2]

    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete this webhook").click()
    expect(page.locator("main")).to_contain_text("None yet.")
    visit.complaints.clear()  # of the refusal
