"""Models, predictions, comparisons and monitoring in a browser: pages show what the API answers."""

import csv
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import FilePayload, Page, expect

from app.ui.format import format_value
from app.ui.monitoring import sentence
from models.config import Json
from tests.app.browser import Visit
from tests.app.conftest import MakeService
from tests.app.running import Service, answered, publish, regression_columns, serving

SCRIPT = "<script>alert(1)</script>"
IMAGE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def own(copied: Path) -> Iterator[Service]:
    """Where aliases move; also with names of a feature, a level and a class that are HTML."""
    with serving(copied) as service:
        columns = regression_columns()
        size = [value or 0.0 for value in columns["size"]]
        named: dict[str, list[Any]] = {
            SCRIPT: size,
            "wood": [IMAGE if wood == "oak" else "ash" for wood in columns["wood"]],
            "kind": [IMAGE if value > 0 else "small" for value in size],
        }
        publish(service.context, "awkward", named, target="kind")
        yield service


def facts(page: Page, place: str) -> dict[str, str]:
    """What stands in a list of facts."""
    pairs = page.evaluate(
        """place => [...document.querySelectorAll(`${place} dt`)].map(
            name => [name.textContent, name.nextSibling.textContent])""",
        place,
    )
    return dict(pairs)


def ask(service: Service, **body: Any) -> Any:
    answer = answered(service.post("/predict", body))
    return answer.json()


def plotted(page: Page, place: str) -> list[dict[str, Any]]:
    """The traces of a chart, once it is drawn."""
    page.wait_for_function("place => document.querySelector(place)?.data", arg=place)
    traces: list[dict[str, Any]] = page.evaluate(
        "place => JSON.parse(JSON.stringify(document.querySelector(place).data))", place
    )
    return traces


@pytest.mark.pages
def test_a_row_is_answered_as_by_the_service(own: Service, visit: Visit) -> None:
    page = visit.go(f"{own.url}/ui/predict?model=price&version=champion")
    page.get_by_label("size").fill("1.5")
    page.get_by_label("Threshold").fill("20")
    page.get_by_text("Cost of errors").click()
    page.get_by_label("Cost of one unit too many").fill("1")
    page.get_by_label("Cost of one unit too few").fill("4")
    page.get_by_role("button", name="Predict").click()
    expect(page.get_by_role("heading", name="Prediction")).to_be_focused()
    row = {"size": 1.5, "wood": "oak", "wet": False, "day": page.get_by_label("day").input_value()}
    costs = {"over": 1, "under": 4}
    asked = {"exceeds": [20.0], "density": {"points": 128}, "costs": costs}
    answer = ask(own, model="price", version=1, inputs=[row], **asked)
    told = facts(page, "#facts")
    assert told["mean"] == format_value(answer["mean"][0])
    for kind in ("aleatoric", "epistemic"):
        assert told[f"± {kind}"] == format_value(math.sqrt(answer["variance"][kind][0]))
    ends = [format_value(answer["intervals"][0][end][0]) for end in ("lower", "upper")]
    assert told["90 % interval"] == " to ".join(ends)
    assert told["above 20"] == format_value(answer["exceeds"][0]["probability"][0])
    assert told["action"] == format_value(answer["decisions"]["action"][0])
    (line,) = plotted(page, "#density")
    assert line["x"] == pytest.approx(answer["density"]["values"][0], rel=1e-4)
    assert line["y"] == pytest.approx(answer["density"]["density"][0], rel=1e-4, abs=1e-9)
    expect(page.locator("#caution")).to_be_hidden()


@pytest.mark.pages
def test_names_are_text(own: Service, visit: Visit) -> None:
    page = visit.go(f"{own.url}/ui/predict?model=awkward")
    page.get_by_role("radio", name="Paste or drop many rows").check()
    page.get_by_label("Or paste").fill(f'"{SCRIPT}",wood,{IMAGE}\n-3,{IMAGE},1\n3,ash,2')
    page.get_by_role("button", name="Predict").click()
    expect(page.locator("#results tbody tr")).to_have_count(2)
    expect(page.locator("#results .legend")).to_contain_text(IMAGE)
    page = visit.go(f"{own.url}/ui/models/awkward/versions/1?tab=explain")
    assert {trace["name"] for trace in plotted(page, "#band-mean")} == {
        "small",
        IMAGE.replace("<", "&lt;").replace(">", "&gt;"),
    }
    expect(page.locator("#band-mean .xtitle")).to_have_text(SCRIPT)
    assert page.evaluate("document.querySelectorAll('main img').length") == 0


@pytest.mark.pages
def test_rows_that_are_strange_stand_out_and_can_be_kept(own: Service, visit: Visit) -> None:
    page = visit.go(f"{own.url}/ui/predict?model=price")
    page.get_by_role("radio", name="Paste or drop many rows").check()
    lines = [
        "0.1\toak\tfalse\t2026-01-14",
        "10000\tash\tfalse\t2026-01-06",
        "\toak\ttrue\t2026-01-07",
    ]
    page.get_by_label("Or paste").fill("\n".join(lines))
    page.get_by_role("button", name="Predict").click()
    rows = [
        {"size": 0.1, "wood": "oak", "wet": False, "day": "2026-01-14"},
        {"size": 10000, "wood": "ash", "wet": False, "day": "2026-01-06"},
        {"size": None, "wood": "oak", "wet": True, "day": "2026-01-07"},
    ]
    answer = ask(own, model="price", inputs=rows)
    flags = answer["out_of_distribution"]
    assert flags[:2] == [False, True]
    strange = page.locator("#results tr.flagged")
    assert [int(number) for number in strange.locator("th").all_inner_texts()] == [
        i + 1 for i, flag in enumerate(flags) if flag
    ]
    page.get_by_label("only flagged rows").check()
    expect(page.locator("#results tbody tr")).to_have_count(sum(flags))
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    lines = list(csv.DictReader(download.value.path().read_text().splitlines()))
    assert [float(line["mean"]) for line in lines] == pytest.approx(answer["mean"])
    assert [line["out_of_distribution"] for line in lines] == [str(flag).lower() for flag in flags]
    assert [line["wood"] for line in lines] == ["oak", "ash", "oak"]


@pytest.mark.pages
def test_the_band_is_what_the_service_predicts(own: Service, visit: Visit) -> None:
    page = visit.go(f"{own.url}/ui/models/price/versions/1?tab=explain")
    card = own.http.get("/models/price/versions/1/card").json()
    size = next(c for c in card["rows"]["columns"] if c["name"] == "size")
    page.get_by_label("Feature", exact=True).select_option(label="size")
    expect(page.locator("#band-mean .xtitle")).to_have_text("size")
    lower, total, *_, mean = plotted(page, "#band-mean")
    x = mean["x"]
    half = (size["max"] - size["min"]) / 2
    assert x[0] == pytest.approx(size["min"] - half, abs=1e-6)
    assert x[-1] == pytest.approx(size["max"] + half, abs=1e-6)
    held = page.evaluate("JSON.parse(document.getElementById('question').textContent).features")
    base = {feature["name"]: feature["typical"] for feature in held}
    rows = [base | {"size": v} for v in x]
    answer = ask(own, model="price", version=1, inputs=rows, samples=100)
    means, deviation = np.array(answer["mean"]), np.sqrt(answer["variance"]["total"])
    np.testing.assert_allclose(mean["y"], means, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(total["y"], means + deviation, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(lower["y"], means - deviation, rtol=1e-4, atol=1e-4)


@pytest.mark.pages
def test_one_click_promotes(own: Service, visit: Visit) -> None:
    page = visit.go(f"{own.url}/ui/models/price")
    page.get_by_role("button", name="Make champion").click()
    expect(page.locator("#notices")).to_contain_text("champion is now version 2")
    assert own.http.get("/models/price").json()["aliases"] == {"champion": 2}
    page.get_by_role("textbox", name="Alias").fill("7")
    page.get_by_role("button", name="Set alias").click()
    expect(page.get_by_role("textbox", name="Alias")).to_be_focused()
    page.get_by_role("textbox", name="Alias").fill("staging")
    page.get_by_role("button", name="Set alias").click()
    expect(page.locator("#notices")).to_contain_text("staging is now version 2")
    own.http.put("/models/price/aliases/champion", json={"version": 1})
    own.http.delete("/models/price/aliases/staging")
    visit.complaints.clear()  # of the 422


@pytest.mark.pages
def test_versions_are_compared_as_they_are_chosen(own: Service, visit: Visit) -> None:
    """The table offers whole versions; pruned variants are a link away."""
    page = visit.go(f"{own.url}/ui/compare")
    expect(page.get_by_label("price 1, 50 % pruned")).to_have_count(0)
    full, pruned = own.http.get("/models/price/versions/1").json()["variants"]
    page.get_by_role("link", name="With pruned variants").click()
    page.get_by_role("checkbox", name="price 1, full posterior").check()
    page.get_by_role("checkbox", name="price 1, 50 % pruned").check()
    expect(page.locator("#comparison tbody tr th a")).to_have_count(2)
    scores = [v["metrics"] for v in (full, pruned)]
    gap = abs(scores[0]["log_likelihood"] - scores[1]["log_likelihood"])
    error = math.hypot(*(one["standard_errors"]["log_likelihood"] for one in scores))
    first = page.locator("#comparison tbody tr td:first-of-type.best")
    expect(first).to_have_count(1 if gap > error else 0)
    size = plotted(page, "[data-figure='group-1-size-figure']")
    assert [trace["x"] for trace in size] == [[v["bytes"] / 1000] for v in (full, pruned)]
    assert page.url.endswith("?versions=price/1/0,price/1/0.5&pruned=true")


@pytest.mark.pages
def test_a_forecast_tells_of_its_total(cards: Service, visit: Visit) -> None:
    page = visit.go(f"{cards.url}/ui/predict?model=sales")
    *_, mean = plotted(page, "#fan")
    page.get_by_label("Steps ahead").fill("4")
    page.get_by_label("Threshold", exact=True).fill("170")
    page.get_by_label("Threshold of the total").fill("650")
    expect(page.locator("#facts")).to_contain_text("total above 650")
    found = facts(page, "#facts")
    lines = [line.split(",") for line in page.get_by_label("History").input_value().splitlines()]
    history = {"quarter": [a for a, _ in lines[1:]], "sales": [float(b) for _, b in lines[1:]]}
    asked: Any = {"intervals": [0.5, 0.9], "totals": {"exceeds": [650]}, "exceeds": [170]}
    answer = ask(cards, model="sales", inputs=history, horizon=4, **asked)
    total = answer["totals"]
    assert mean["y"] == pytest.approx(answer["mean"][: len(mean["y"])], rel=1e-4)
    ends = [format_value(total["intervals"][1][end][-1]) for end in ("lower", "upper")]
    assert found["total of 4 steps"] == format_value(total["mean"][-1])
    assert found["90 % of the total"] == " to ".join(ends)
    assert found["total above 650"] == format_value(total["exceeds"][0]["probability"][-1])
    ever = answer["exceeds"][0]["any_above"][-1]
    assert found["above 170 at some step"] == format_value(ever)


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


def csv_file(text: str) -> FilePayload:
    return {"name": "measured.csv", "mimeType": "text/csv", "buffer": text.encode()}


@pytest.mark.pages
def test_a_file_of_truths_alarms_and_is_withdrawn(make_service: MakeService, visit: Visit) -> None:
    own = make_service()
    page = visit.go(own.url + PAGE)
    still = page.locator("#still")
    expect(still).to_contain_text("Not known yet")
    page.get_by_label("File").set_input_files(csv_file(labelled(own, 120, shift=4.0)))
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


def address(service: Service, model: str, tab: str) -> str:
    return f"{service.url}/ui/models/{model}/versions/1?tab={tab}"


def card(service: Service, model: str) -> Json:
    found: Json = service.http.get(f"/models/{model}/versions/1/card").json()
    return found


def drawn(page: Page) -> None:
    page.wait_for_function(
        """() => [...document.querySelectorAll('[data-figure]')].every(
            e => e.querySelector('.main-svg'))"""
    )


@pytest.mark.pages
def test_predicted_stands_against_actual_with_intervals(cards: Service, visit: Visit) -> None:
    found = card(cards, "price")["held_out"]
    page = visit.go(address(cards, "price", "scores"))
    drawn(page)
    traces = page.evaluate(
        "JSON.parse(JSON.stringify(document.querySelector('[data-figure=held-out-figure]').data))"
    )
    actual = sorted(v for trace in traces[:2] for v in trace["x"])
    assert actual == pytest.approx(sorted(found["actual"]))
    inside = [
        low <= y <= high
        for y, low, high in zip(*(found[n] for n in ("actual", "lower", "upper")), strict=True)
    ]
    assert [len(trace["x"]) for trace in traces[:2]] == [sum(inside), len(inside) - sum(inside)]
    metrics = card(cards, "price")["variants"][0]["metrics"]
    assert sum(inside) / len(inside) == pytest.approx(metrics["coverage"]["0.9"])
    rmse = math.sqrt(
        sum((a - b) ** 2 for a, b in zip(found["actual"], found["mean"], strict=True)) / len(inside)
    )
    assert rmse == pytest.approx(metrics["rmse"], rel=1e-4)


TABS = "/ui/models/price/versions/1/expected"


def test_the_page_of_a_version_leads_to_the_scores_of_a_data_set(make_service: MakeService) -> None:
    service = make_service()
    columns = regression_columns(60)
    columns.pop("price")
    dataset, _ = service.context.datasets.add_columns("next month", columns)
    assert f'href="{TABS}"' in service.http.get("/ui/models/price/versions/1").text
    choice = answered(service.http.get(TABS))
    assert f'href="{TABS}?dataset={dataset.id}">next month</a>' in choice.text
    shown = answered(service.http.get(TABS, params={"dataset": dataset.id}))
    answer = service.http.get(
        "/models/price/expected", params={"dataset": dataset.id, "version": 1}
    ).json()
    rows = re.findall(r'<th scope="row">', shown.text)
    assert len(rows) == len(answer["scores"])
    assert f"{answer['scores']['rmse']['expected']:.4g}" in shown.text
    assert "actual" not in shown.text


def test_a_data_set_without_the_columns_is_refused_on_the_page(service: Service) -> None:
    dataset, _ = service.context.datasets.add_columns("other", {"z": [1.0, 2.0]})
    shown = service.http.get(TABS, params={"dataset": dataset.id}, headers={"Accept": "text/html"})
    assert shown.status_code == 422
    assert "other cannot be used:" in shown.text
