"""True values from a page: sent as a file, compared, withdrawn; and the alarm that they raise."""

import numpy as np
import pytest
from playwright.sync_api import FilePayload, expect

from app.ui.monitoring import sentence
from tests.app.browser import Visit
from tests.app.conftest import MakeService
from tests.app.running import Service

PAGE = "/ui/models/price/versions/1"


def labelled(service: Service, count: int, shift: float) -> str:
    """A CSV file whose truth is the prediction and `shift` standard deviations more."""
    sizes = np.random.default_rng(0).uniform(-2, 2, count).round(3).tolist()
    inputs = [{"size": size, "wood": "oak", "wet": True, "day": None} for size in sizes]
    answer = service.post("/predict", {"model": "price", "version": 1, "inputs": inputs}).json()
    truth = np.array(answer["mean"]) + shift * np.sqrt(answer["variance"]["total"])
    lines = [
        f"{size};oak;true;;{value:.4f};x".replace(".", ",")
        for size, value in zip(sizes, truth.tolist(), strict=True)
    ]
    return "\n".join(["size;wood;wet;day;price;note", *lines])


def csv(text: str) -> FilePayload:
    return {"name": "measured.csv", "mimeType": "text/csv", "buffer": text.encode()}


@pytest.mark.pages
def test_a_file_of_true_values_raises_the_alarm_and_can_be_withdrawn(
    make_service: MakeService, visit: Visit
) -> None:
    own = make_service()
    page = visit.go(own.url + PAGE)
    still = page.locator("#still")
    expect(still).to_contain_text("Not known yet")
    page.get_by_label("File").set_input_files(csv(labelled(own, 120, shift=4.0)))
    page.get_by_role("button", name="Send true values").click()
    answer = page.locator("#labels-answer")
    expect(answer).to_contain_text("120 rows compared")
    check = own.http.get("/models/price/feedback?version=1").json()["metrics"]["check"]
    expect(page.locator("#alarm")).to_contain_text(sentence(check))
    expect(still.get_by_role("link", name="train on newer rows")).to_be_visible()
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Withdraw them").click()
    expect(still).to_contain_text("Not known yet")
    expect(page.locator("#alarm")).to_be_empty()
