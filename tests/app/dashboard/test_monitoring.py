"""True values from a page: sent as a file, compared, withdrawn; and the alarm that they raise."""

import re

import numpy as np
import pytest
from playwright.sync_api import FilePayload, expect

from app.ui.monitoring import feedback_verdict, how_often, sentence
from tests.app.browser import Visit, serious_problems
from tests.app.conftest import MakeService
from tests.app.running import Service
from tests.corpus.workbooks import xlsx

PAGE = "/ui/models/price/versions/1"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


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
    expect(answer).to_contain_text(
        re.compile("120 rows compared: RMSE [0-9.]+, 0 % inside the 90 % intervals")
    )
    expect(answer).to_contain_text("columns that the model does not use: note")
    check = own.http.get("/models/price/feedback?version=1").json()["metrics"]["check"]
    said = sentence(check)
    assert said.startswith(
        "Of the last 100 true values, 0 % were inside the 90 % intervals; of the"
    )
    assert said.endswith(
        "The intervals are too narrow now, and 100 % of the true values are above the predicted "
        "medians"
    )
    expect(still).to_contain_text("An alert fires if that is once in 10,000 times or rarer.")
    expect(still.get_by_role("link", name="train on newer rows")).to_be_visible()
    expect(page.locator("#alarm")).to_contain_text(said)
    expect(still).to_contain_text("The newest 20 true values wait for the next test.")
    expect(still).to_contain_text("Scores of the last 120 rows with known truth")
    assert serious_problems(page) == []
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Withdraw them").click()
    expect(still).to_contain_text("Not known yet")
    expect(page.locator("#alarm")).to_be_empty()
    assert visit.complaints == []


def test_what_is_wrong_is_said_at_its_field(service: Service, visit: Visit) -> None:
    page = visit.go(service.url + PAGE)
    page.get_by_role("button", name="Send true values").click()
    expect(page.locator("#error-labelled")).to_have_text("choose a file")
    page.get_by_label("File").set_input_files(csv("size,wood,wet,day,came\n1,oak,true,,2\n"))
    page.get_by_role("button", name="Send true values").click()
    expect(page.locator("#error-labelled")).to_contain_text("no column 'price' of true values")


def test_a_sheet_of_a_workbook(make_service: MakeService, visit: Visit) -> None:
    own = make_service()
    page = visit.go(own.url + PAGE)
    table = [("size", "wood", "wet", "day", "came"), (0.5, "oak", True, None, 1.5)]
    buffer = xlsx({"Notes": [("nothing",)], "May": table})()
    page.get_by_label("File").set_input_files(
        {"name": "measured.xlsx", "mimeType": XLSX, "buffer": buffer}
    )
    page.get_by_label("Sheet").fill("May")
    page.get_by_label("Column of true values").fill("came")
    page.get_by_role("button", name="Send true values").click()
    expect(page.locator("#labels-answer")).to_contain_text("1 row compared")
    expect(page.locator("#still")).to_contain_text("Too few true values for the first test: 1 of")


def test_a_language_model_has_no_such_form(cards: Service) -> None:
    page = cards.http.get("/ui/models/lines/versions/1").text
    assert 'id="labels"' not in page
    assert "Send true values of this model with <code>POST /feedback</code>" in page


def test_too_few_labels_and_none_are_no_verdict() -> None:
    assert feedback_verdict({}, 1000) is None
    few = feedback_verdict({"check": {"labels": 40, "rows": 0, "alarm_p_value": 1e-4}}, 1000)
    assert few is not None
    assert (few.kind, few.text) == ("equal", "Too few true values for the first test: 40 of 100")
    right = {"rows": 100, "correct": 60, "expected_correct": 84.6, "p_value": 1e-9}
    check = {"labels": 100, "rows": 100, "alarm_p_value": 1e-4, "calibration": right}
    found = feedback_verdict({"check": check}, 1000)
    assert found is not None
    assert found.kind == "worse"
    assert found.text == (
        "Of the last 100 true values, 60 % were the predicted class; the confidence promised 85 %. "
        "The probabilities are too high now"
    )


@pytest.mark.parametrize(
    ("probability", "said"),
    [
        (0.56, "56 in 100 times"),
        (1e-4, "once in 10,000 times"),
        (2.839e-7, "once in 3.5 million times"),
        (1e-12, "less than once in a billion times"),
        (0.0, "less than once in a billion times"),
    ],
)
def test_probabilities_are_counts_of_times(probability: float, said: str) -> None:
    assert how_often(probability) == said
