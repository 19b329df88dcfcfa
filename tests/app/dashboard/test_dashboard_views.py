"""Models, predictions and comparisons in a browser: pages show what the API answers."""

import csv
import html
import math
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from app.access.session import COOKIE
from app.ui.format import format_value, with_error
from core.access.keys import Keys, Scope
from tests.app.browser import Visit, serious_problems
from tests.app.running import Service, publish, regression_columns, serving
from tests.app.test_keys import ADMIN_KEY, key_file, made, wait_until

SCRIPT = "<script>alert(1)</script>"
IMAGE = "<img src=x onerror=alert(1)>"
HEADER = "size,wood,wet,day"


@pytest.fixture(scope="module")
def own(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Where aliases move; also with names of a feature, a level and a class that are HTML."""
    data_dir = tmp_path_factory.mktemp("views") / "data"
    shutil.copytree(trained, data_dir)
    with serving(data_dir) as service:
        columns = regression_columns()
        size = [value or 0.0 for value in columns["size"]]
        named: dict[str, list[Any]] = {
            SCRIPT: size,
            "wood": [IMAGE if wood == "oak" else "ash" for wood in columns["wood"]],
            "kind": [IMAGE if value > 0 else "small" for value in size],
        }
        publish(service.context, "awkward", named, target="kind")
        yield service


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """Nothing is complained of, and nothing pops up, while a test looks at pages."""
    visit = Visit(browser)
    visit.page.on("dialog", lambda dialog: visit.complaints.append(dialog.message))
    yield visit
    visit.context.close()
    assert visit.complaints == []


def facts(page: Page, place: str) -> dict[str, str]:
    """What stands in a list of facts."""
    pairs = page.evaluate(
        """place => [...document.querySelectorAll(`${place} dt`)].map(
            name => [name.textContent, name.nextSibling.textContent])""",
        place,
    )
    return dict(pairs)


def slide(page: Page, name: str, value: int) -> None:
    """Move a slider as its user does, but at once."""
    slider = page.get_by_role("slider", name=name)
    slider.evaluate(
        "(e, v) => { e.value = v; e.dispatchEvent(new Event('input', {bubbles: true})) }", value
    )


def ask(service: Service, **body: Any) -> Any:
    answer = service.post("/predict", body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def plotted(page: Page, place: str) -> list[dict[str, Any]]:
    """The traces of a chart, once it is drawn."""
    page.wait_for_function("place => document.querySelector(place)?.data", arg=place)
    traces: list[dict[str, Any]] = page.evaluate(
        "place => JSON.parse(JSON.stringify(document.querySelector(place).data))", place
    )
    return traces


def test_a_row_is_answered_as_by_the_service(own: Service, visit: Visit) -> None:
    page = visit.go(f"{own.url}/ui/predict?model=price&version=champion")
    page.get_by_label("size").fill("1.5")
    page.get_by_role("button", name="Predict").click()
    expect(page.get_by_role("heading", name="Prediction")).to_be_focused()
    row = {"size": 1.5, "wood": "oak", "wet": False, "day": page.get_by_label("day").input_value()}
    answer = ask(own, model="price", version=1, inputs=[row])
    told = facts(page, "#facts")
    assert told["mean"] == format_value(answer["mean"][0])
    for kind in ("aleatoric", "epistemic"):
        assert told[f"± {kind}"] == format_value(math.sqrt(answer["variance"][kind][0]))
    names = ("90 % interval", "90 % conformal interval (use this one for a promise)")
    for name, interval in zip(names, answer["intervals"], strict=True):
        assert (
            told[name]
            == f"{format_value(interval['lower'][0])} to {format_value(interval['upper'][0])}"
        )
    assert page.locator("#summary").inner_text().startswith(told["mean"])
    expect(page.locator("#caution")).to_be_hidden()
    assert serious_problems(page) == []


def test_a_threshold_gets_its_probability_and_a_row_its_density(own: Service, visit: Visit) -> None:
    page = visit.go(f"{own.url}/ui/predict?model=price&version=champion")
    page.get_by_label("size").fill("1.5")
    page.get_by_label("Threshold").fill("20")
    page.get_by_role("button", name="Predict").click()
    expect(page.get_by_role("heading", name="Prediction")).to_be_focused()
    row = {"size": 1.5, "wood": "oak", "wet": False, "day": page.get_by_label("day").input_value()}
    asked = {"exceeds": [20.0], "density": {"points": 128}}
    answer = ask(own, model="price", version=1, inputs=[row], **asked)
    told = facts(page, "#facts")
    assert told["above 20"] == format_value(answer["exceeds"][0]["probability"][0])
    (line,) = plotted(page, "#density")
    assert line["x"] == answer["density"]["values"][0]
    assert line["y"] == answer["density"]["density"][0]
    page.get_by_label("Threshold").fill("high")
    expect(page.get_by_label("Threshold")).to_have_attribute("aria-invalid", "true")
    page.get_by_label("Threshold").fill("")
    page.get_by_label("Paste or drop many rows").check()
    page.get_by_label("Or paste from a spreadsheet").fill("size,wood,wet,day\n1,oak,true,\n2,,,\n")
    expect(page.locator("#results")).to_contain_text("± total")
    expect(page.locator("#density-part")).to_be_hidden()
    visit.complaints.clear()  # of the 422
    assert serious_problems(page) == []


def test_an_answer_follows_what_is_typed(own: Service, visit: Visit) -> None:
    """Old from the first key, gone once it is refused; of a strange row it says so in words."""
    page = visit.go(f"{own.url}/ui/predict?model=price&version=champion")
    answer = page.locator("#answer")
    expect(answer).to_have_attribute("aria-busy", "false")
    size = page.get_by_label("size")
    size.evaluate(
        "e => { e.value = '10000'; e.dispatchEvent(new Event('input', {bubbles: true})) }"
    )
    expect(page.locator("#caution")).to_contain_text(
        "neither the prediction nor its uncertainty is reliable"
    )
    expect(answer).to_have_attribute("aria-busy", "false")
    busy = """e => { e.value = "1.5"; e.dispatchEvent(new Event("input", {bubbles: true}));
                     return document.getElementById("answer").getAttribute("aria-busy") }"""
    assert size.evaluate(busy) == "true"
    expect(page.locator("#caution")).to_be_hidden()
    slide(page, "Samples", 0)
    expect(page.locator("#cost")).to_contain_text("1 sample in")
    assert facts(page, "#facts")["± epistemic"] == "needs two samples"
    size.press_sequentially("x")
    expect(answer).to_be_hidden()
    expect(page.locator("#cost")).to_be_empty()
    visit.complaints.clear()  # of the 422


def test_more_samples_cost_more_and_err_less(own: Service, visit: Visit) -> None:
    page = visit.go(f"{own.url}/ui/predict?model=awkward")
    row: dict[str, Any] = {SCRIPT: float(page.get_by_label(SCRIPT).input_value())}
    row["wood"] = page.get_by_label("wood").input_value()
    for position, samples in ((75, 1000), (25, 10)):
        slide(page, "Samples", position)
        expect(page.locator("#cost")).to_contain_text(f"{samples:,} samples in")
        answer = ask(own, model="awkward", inputs=[row], samples=samples)
        assert facts(page, "#facts")["Monte-Carlo error"] == format_value(
            max(answer["mc_error"][0])
        )
    slide(page, "Samples", 0)
    expect(page.locator("#cost")).to_contain_text("1 sample in")
    assert facts(page, "#facts")["Monte-Carlo error"] == "not known"


def test_a_row_is_explained_by_bars(own: Service, visit: Visit) -> None:
    page = visit.go(f"{own.url}/ui/predict?model=price")
    expect(page.locator("#why")).to_be_hidden()
    page.get_by_label("Explain the row").check()
    expect(page.locator("#why")).to_be_visible()
    row = {name: page.locator(f"#f{i}").input_value() for i, name in enumerate(HEADER.split(","))}
    asked = {**row, "size": float(row["size"]), "wet": row["wet"] == "true"}
    found = ask(own, model="price", inputs=[asked], explain=True)["contributions"]
    for part in ("mean", "aleatoric", "epistemic"):
        (bars,) = plotted(page, f"#why-{part}")
        expected = sorted(found[part][0], key=lambda value: -abs(value))
        assert bars["x"] == pytest.approx(expected, rel=1e-4, abs=1e-6)
    base = found["base"]["mean"]
    expect(page.locator("#why-mean-reading")).to_have_text(
        f"From {format_value(base)}, the mean over training rows (base), "
        f"to {format_value(base + sum(found['mean'][0]))}."
    )
    ticks = page.locator("#why-mean .ytick").all_text_contents()
    assert f"size: {row['size']}" in ticks
    page.get_by_label("Explain the row").uncheck()
    expect(page.locator("#why")).to_be_hidden()


def test_names_are_text(own: Service, visit: Visit) -> None:
    page = visit.go(f"{own.url}/ui/predict?model=awkward")
    page.get_by_role("radio", name="Paste or drop many rows").check()
    page.get_by_label("Or paste").fill(f'"{SCRIPT}",wood,{IMAGE}\n-3,{IMAGE},1\n3,ash,2')
    page.get_by_role("button", name="Predict").click()
    expect(page.locator("#results tbody tr")).to_have_count(2)
    expect(page.locator("#results .legend")).to_contain_text(IMAGE)
    expect(page.locator("#preview")).to_contain_text(f"kept in the file: {IMAGE}")
    page = visit.go(f"{own.url}/ui/models/awkward/versions/1?tab=explain")
    assert {trace["name"] for trace in plotted(page, "#band-mean")} == {
        "small",
        IMAGE.replace("<", "&lt;").replace(">", "&gt;"),
    }
    expect(page.locator("#band-mean .xtitle")).to_have_text(SCRIPT)
    page.get_by_label("Feature", exact=True).select_option(label="wood")
    expect(page.locator("#band-mean .xtitle")).to_have_text("wood")
    assert page.evaluate("document.querySelectorAll('main img').length") == 0


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
    expect(page.locator("#summary")).to_have_text(f"3 rows; {sum(flags)} out of distribution")
    strange = page.locator("#results tr.flagged")
    assert [int(number) for number in strange.locator("th").all_inner_texts()] == [
        i + 1 for i, flag in enumerate(flags) if flag
    ]
    assert "out of distribution" in strange.first.inner_text()
    page.get_by_label("only flagged rows").check()
    expect(page.locator("#results tbody tr")).to_have_count(sum(flags))
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    lines = list(csv.DictReader(download.value.path().read_text().splitlines()))
    assert [float(line["mean"]) for line in lines] == pytest.approx(answer["mean"])
    assert [line["out_of_distribution"] for line in lines] == [str(flag).lower() for flag in flags]
    assert [line["wood"] for line in lines] == ["oak", "ash", "oak"]


def test_a_wrong_cell_is_shown_in_its_row(own: Service, visit: Visit) -> None:
    page = visit.go(f"{own.url}/ui/predict?model=price")
    page.get_by_role("radio", name="Paste or drop many rows").check()
    good = "1,oak,true,2026-01-05"
    file = "\n".join([HEADER, *[good] * 8, "big,oak,true,2026-01-05"])
    page.locator("#file").set_input_files(
        {"name": "rows.csv", "mimeType": "text/csv", "buffer": file.encode()}
    )
    cell = page.locator('[data-path="/inputs/8/size"]')
    expect(cell).to_be_focused()
    expect(cell).to_have_text("bigmust be a number or null")
    row = page.locator("#preview tbody tr", has=cell)
    assert row.locator("th").inner_text() == "9"
    assert not page.locator("#answer").is_visible()
    page.get_by_label("Or paste").fill(f"{HEADER}\nbig,oak,true,2026-01-05")
    page.get_by_role("button", name="Predict").click()
    expect(page.locator('#preview [data-path="/inputs/0/size"]')).to_be_focused()
    for row, cells in (("1,oak,true", 3), ("1,oak,true,2026-01-05,6", 5)):
        page.get_by_label("Or paste").fill(f"{HEADER}\n{good}\n{row}")
        page.get_by_role("button", name="Predict").click()
        expect(page.locator("#many")).to_contain_text(f"Row 2 has {cells} cells, but there are 4")
    page.get_by_label("Or paste").fill("1,2\n3,4")
    page.get_by_role("button", name="Predict").click()
    expect(page.locator("#many")).to_contain_text("2 cells, but the model has 4 features")
    visit.complaints.clear()  # a browser complains of each 422


def test_the_band_is_what_the_service_predicts(own: Service, visit: Visit) -> None:
    page = visit.go(f"{own.url}/ui/models/price/versions/1")
    told = page.locator("#trust").inner_text().splitlines()[-1]
    page = visit.go(f"{own.url}/ui/models/price/versions/1?tab=explain")
    card = own.http.get("/models/price/versions/1/card").json()
    size = next(c for c in card["rows"]["columns"] if c["name"] == "size")
    metrics = own.http.get("/models/price/versions/1").json()["metrics"]
    held = f"{100 * metrics['coverage']['0.9']:.0f} % of {metrics['rows']} held-out rows"
    assert told == held
    most = max(card["importance"]["features"], key=lambda one: one["mean"])["name"]
    feature = page.get_by_label("Feature", exact=True)
    assert feature.evaluate("e => e.selectedOptions[0].text") == most
    feature.select_option(label="size")
    expect(page.locator("#band-mean .xtitle")).to_have_text("size")
    lower, total, _, aleatoric, mean = plotted(page, "#band-mean")
    x = mean["x"]
    half = (size["max"] - size["min"]) / 2
    assert x[0] == pytest.approx(size["min"] - half, abs=1e-6)
    assert x[-1] == pytest.approx(size["max"] + half, abs=1e-6)
    held = page.evaluate("JSON.parse(document.getElementById('question').textContent).features")
    base = {feature["name"]: feature["typical"] for feature in held}
    rows = [base | {"size": v} for v in x]
    answer = ask(own, model="price", version=1, inputs=rows, samples=100)
    assert mean["y"] == pytest.approx(answer["mean"], abs=1e-5)  # of floats, batched otherwise
    deviation = [math.sqrt(v) for v in answer["variance"]["total"]]
    assert total["y"] == pytest.approx(
        [m + s for m, s in zip(answer["mean"], deviation, strict=True)]
    )
    assert lower["y"] == pytest.approx(
        [m - s for m, s in zip(answer["mean"], deviation, strict=True)]
    )
    noise = [math.sqrt(v) for v in answer["variance"]["aleatoric"]]
    assert aleatoric["y"] == pytest.approx(
        [m + s for m, s in zip(answer["mean"], noise, strict=True)]
    )


def test_retraining_opens_the_form_with_the_same_rows_and_target(own: Service) -> None:
    page = own.http.get("/ui/models/price/versions/1", headers={"Accept": "text/html"}).text
    (address,) = re.findall(r'href="(/ui/train[?][^"]+)"[^>]*>Retrain', page)
    form = own.http.get(html.unescape(address), headers={"Accept": "text/html"})
    assert form.status_code == 200
    assert re.search(r'<option value="&#34;price&#34;" selected>price', form.text)


def test_over_two_features_there_are_two_maps(own: Service, visit: Visit) -> None:
    """Heat maps need the whole of plotly, which is loaded for them alone."""
    page = visit.go(f"{own.url}/ui/models/price/versions/1?tab=explain")
    assert not any("/ui/plotly" in url for url in visit.requests)
    plotted(page, "#band-unknown")
    page.get_by_label("Feature", exact=True).select_option(label="size")
    page.get_by_label("and", exact=True).select_option(label="day")
    expect(page.locator("#band-unknown-title")).to_have_text("epistemic standard deviation")
    (means,) = plotted(page, "#band-mean")
    (unknown,) = plotted(page, "#band-unknown")
    held = page.evaluate("JSON.parse(document.getElementById('question').textContent).features")
    base = {feature["name"]: feature["typical"] for feature in held}
    rows = [base | {"size": a, "day": b} for b in means["y"] for a in means["x"]]
    answer = ask(own, model="price", version=1, inputs=rows)
    assert [v for line in means["z"] for v in line] == pytest.approx(answer["mean"], abs=1e-5)
    deviations = [math.sqrt(v) for v in answer["variance"]["epistemic"]]
    assert [v for line in unknown["z"] for v in line] == pytest.approx(deviations)


def test_the_pruning_slider_tells_each_variants_own_scores(own: Service, visit: Visit) -> None:
    page = visit.go(f"{own.url}/ui/models/price/versions/1?tab=variants")
    variants = own.http.get("/models/price/versions/1").json()["variants"]
    expect(page.locator("#variant-facts")).to_contain_text("RMSE")
    for position, variant in enumerate(variants):
        slide(page, "Pruned", position)
        told = facts(page, "#variant-facts")
        assert told["RMSE"] == format_value(variant["metrics"]["rmse"])
        assert told["log likelihood, nats"] == format_value(variant["metrics"]["log_likelihood"])
        assert told["weights"] == format_value(variant["num_weights"])
        assert told["stored, kB"] == format_value(variant["bytes"] / 1000)
    expect(page.locator("#variant-facts")).not_to_contain_text("measuring")
    assert float(facts(page, "#variant-facts")["latency, ms"]) > 0


def test_one_click_promotes(own: Service, visit: Visit) -> None:
    page = visit.go(f"{own.url}/ui/models/price")
    page.get_by_role("button", name="Make champion").click()
    expect(page.locator("#notices")).to_contain_text("champion is now version 2")
    assert own.http.get("/models/price").json()["aliases"] == {"champion": 2}
    page.get_by_role("textbox", name="Alias").fill("7")
    page.get_by_role("button", name="Set alias").click()
    expect(page.get_by_role("textbox", name="Alias")).to_be_focused()
    expect(page.locator("#alias")).to_contain_text("read as a version number")
    page.get_by_role("textbox", name="Alias").fill("staging")
    page.get_by_role("button", name="Set alias").click()
    expect(page.locator("#notices")).to_contain_text("staging is now version 2")
    own.http.put("/models/price/aliases/champion", json={"version": 1})
    own.http.delete("/models/price/aliases/staging")
    visit.complaints.clear()  # of the 422


def test_versions_are_compared_as_they_are_chosen(own: Service, visit: Visit) -> None:
    """The table offers whole versions; pruned variants are a link away."""
    page = visit.go(f"{own.url}/ui/compare")
    expect(page.get_by_label("price 1, 50 % pruned")).to_have_count(0)
    row = page.locator(".choices tr", has_text="price 1, full posterior")
    full, pruned = own.http.get("/models/price/versions/1").json()["variants"]
    error = full["metrics"]["standard_errors"]["rmse"]
    assert format_value(with_error(full["metrics"]["rmse"], error)) in row.inner_text()
    assert "price" in row.locator("td").nth(2).inner_text()
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


def test_methods_are_compared_from_a_form(own: Service, visit: Visit) -> None:
    page = visit.go(f"{own.url}/ui/compare")
    offered = page.get_by_label("Data set").locator("option", has_text="price (120 rows, ")
    page.get_by_label("Data set").select_option(offered.first.get_attribute("value"))
    page.get_by_label("Column to predict").select_option("price")
    for method in page.get_by_role("group", name="Methods").get_by_role("checkbox").all():
        method.uncheck()
    page.get_by_role("button", name="Compare methods").click()
    expect(page.locator("#compare")).to_contain_text("names 0: give 2 to 16 methods")
    for name in ("bbb", "map"):
        page.locator(f"[name=method][value={name}]").check()
    page.get_by_label("Epochs").fill("2")
    page.get_by_role("button", name="Compare methods").click()
    page.wait_for_url("**/ui/jobs/job_*")
    job = own.http.get(f"/jobs/{page.url.rpartition('/')[2]}").json()
    assert [method["kind"] for method in job["request"]["methods"]] == ["bbb", "map"]
    assert (job["model"], job["request"]["training"]["epochs"]) == ("price-methods", 2)
    visit.complaints.clear()  # of the 422


def test_a_forecast_is_a_fan(cards: Service, visit: Visit) -> None:
    page = visit.go(f"{cards.url}/ui/predict?model=sales")
    *_, mean = plotted(page, "#fan")
    lines = [line.split(",") for line in page.get_by_label("History").input_value().splitlines()]
    history = {"quarter": [a for a, _ in lines[1:]], "sales": [float(b) for _, b in lines[1:]]}
    assert history["quarter"][-1] == "2019-10-01T00:00:00Z"
    assert mean["y"] == pytest.approx(ask(cards, model="sales", inputs=history)["mean"])


def test_a_forecast_tells_of_its_total(cards: Service, visit: Visit) -> None:
    page = visit.go(f"{cards.url}/ui/predict?model=sales")
    plotted(page, "#fan")
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
    ends = [format_value(total["intervals"][1][end][-1]) for end in ("lower", "upper")]
    assert found["total of 4 steps"] == format_value(total["mean"][-1])
    assert found["90 % of the total"] == " to ".join(ends)
    assert found["total above 650"] == format_value(total["exceeds"][0]["probability"][-1])
    ever = answer["exceeds"][0]["any_above"][-1]
    assert found["above 170 at some step"] == format_value(ever)


def test_a_series_is_chosen_and_filled_in(cards: Service, visit: Visit) -> None:
    page = visit.go(f"{cards.url}/ui/predict?model=shops")
    *_, mean = plotted(page, "#fan")
    history = page.get_by_label("History")
    assert {line.split(",")[0] for line in history.input_value().splitlines()[1:]} == {"north"}
    assert max(mean["y"]) < 50
    headers = page.locator("#results th[scope=col]").all_inner_texts()
    assert headers[4:8] == ["50 %", "90 %", "50 % conformal", "90 % conformal"]
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    (file,) = csv.DictReader(Path(download.value.path()).read_text().splitlines()[:2])
    assert file["shop"] == "north"
    assert file["lower_0.9"] != file["conformal_lower_0.9"]
    assert float(file["total_mean"]) == pytest.approx(mean["y"][0])
    page.get_by_label("Steps ahead").fill("2")
    page.get_by_label("shop", exact=True).select_option("<b>south")
    expect(history).to_have_value(re.compile("<b>south"))
    expect(page.locator("#facts")).to_contain_text("total of 2 steps")
    page.wait_for_function("document.querySelector('#fan').data.at(-1).y[0] > 50")
    assert "north" not in history.input_value()
    assert "series=%3Cb%3Esouth" in page.url
    *_, mean = plotted(visit.go(page.url), "#fan")
    assert len(mean["y"]) == 3
    assert min(mean["y"]) > 50
    south = history.input_value()
    north = visit.go(f"{cards.url}/ui/predict?model=shops&series=north")
    plotted(north, "#fan")
    rows = [*history.input_value().splitlines(), *south.splitlines()[1:]]
    history.fill("\n".join(rows))
    expect(page.locator("#summary")).to_have_text("2 series. The picture shows north")
    assert {"north: total of 3 steps", "<b>south: total of 3 steps"} <= facts(page, "#facts").keys()
    *_, mean = plotted(page, "#fan")
    assert len(mean["y"]) == 3
    page.get_by_label("Add up series").select_option("all")
    expect(page.locator("#facts")).to_contain_text("all series: total of 3 steps")
    cells = [row.split("\t") for row in page.locator("#results tbody tr").all_inner_texts()]
    assert [row[0] for row in cells] == ["north"] * 3 + ["<b>south"] * 3 + ["all series"] * 3
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    file = list(csv.DictReader(Path(download.value.path()).read_text().splitlines()))
    assert [row["group"] for row in file] == [""] * 6 + ["all series"] * 3
    for name in ("mean", "total_mean"):
        values = [float(row[name]) for row in file]
        assert values[6:] == pytest.approx([values[i] + values[i + 3] for i in range(3)])
    assert serious_problems(page) == []


def test_texts_are_answered_with_tokens(cards: Service, visit: Visit) -> None:
    page = visit.go(f"{cards.url}/ui/predict?model=lines")
    page.get_by_label("Texts").fill("a b\n<b>")
    page.get_by_role("button", name="Predict").click()
    expect(page.locator("#results tbody tr")).to_have_count(2)
    answer = ask(cards, model="lines", inputs=["a b", "<b>"])
    first = page.locator("#results tbody tr").first.locator("code")
    assert first.all_inner_texts() == [t["token"] for t in answer["next_tokens"][0]]
    assert (
        format_value(answer["perplexity"][1]) in page.locator("#results tbody tr").last.inner_text()
    )


def test_tensors_are_for_programs(own: Service, visit: Visit) -> None:
    page = visit.go(f"{own.url}/ui/predict?model=tree")
    assert "image, 2×2" in page.locator("main").inner_text()
    assert '"image": [[0, 0], [0, 0]]' in page.locator("#snippet-python").inner_text()
    assert sum("/app.js" in url for url in visit.requests) == 1  # twice would do all twice


def test_a_key_for_predictions_predicts_and_sees_what_it_may(
    trained: Path, tmp_path: Path, browser: Browser
) -> None:
    shutil.copytree(trained, tmp_path / "data")
    with serving(tmp_path / "data", admin_key_file=key_file(tmp_path)) as service:
        visit = Visit(browser)
        for key, may in ((made(service, Scope.PREDICT), False), (ADMIN_KEY, True)):
            page = visit.go(f"{service.url}/ui/sign-in?next=/ui/models/price/versions/1")
            page.get_by_label("Key").fill(key)
            page.keyboard.press("Enter")
            page.wait_for_url(f"{service.url}/ui/models/price/versions/1")
            assert ("need a key of scope train" in page.locator("main").inner_text()) is not may
            assert page.get_by_role("link", name="Explain").count() == may
            page = visit.go(f"{service.url}/ui/models/price")
            assert (page.get_by_role("button", name="Make champion").count() == 1) is may
        visit.context.close()


def test_a_key_for_predictions_is_led_to_what_it_opens(own: Service, tmp_path: Path) -> None:
    with serving(tmp_path / "empty", admin_key_file=key_file(tmp_path)) as service:
        _, key = Keys(service.context.database).create("predicts", Scope.PREDICT)
        cookie = {"Cookie": f"{COOKIE}={key}"}
        wait_until(lambda: service.http.get("/models", headers=cookie).status_code == 200)
        start = service.http.get("/", headers=cookie)
        assert (start.status_code, start.headers["Location"]) == (303, "/ui/models")
        for path, status in (("models", 200), ("predict", 200), ("train", 403), ("models/no", 404)):
            answer = service.http.get(f"/ui/{path}", headers=cookie)
            assert answer.status_code == status
            assert "/ui/train" not in answer.text.replace("next=/ui/train", "")
            assert ('<a class="button" href="/ui/models">' in answer.text) is (status > 400)
            assert ("/ui/sign-in?next=" in answer.text) is (status > 400)
    assert "/ui/sign-in" not in own.http.get("/ui/models/no").text  # where no key is asked for


def test_an_empty_service_says_where_to_begin(tmp_path: Path, visit: Visit) -> None:
    with serving(tmp_path / "empty") as service:
        for path in ("models", "predict", "compare"):
            page = visit.go(f"{service.url}/ui/{path}")
            assert page.get_by_role("link", name="Train").count() >= 1
            assert page.locator(".empty").is_visible()
        assert serious_problems(page) == []
        assert service.http.get("/ui/models/nothing").status_code == 404
