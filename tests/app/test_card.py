"""/models/{name}/versions/{version}/card: what it tells of each task."""

import gzip
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from app.schemas.card import CardResponse
from app.ui.calibration import LEVELS
from app.ui.card.page import sections
from app.ui.format import with_error
from tests.app.cards import TASKS
from tests.app.conftest import MakeService
from tests.app.running import Service, carry_out, regression_columns
from tests.app.test_archives import exported, send, unpacked

HTML = {"Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}  # as browsers ask


def card(service: Service, model: str, version: int | str = 1) -> dict[str, Any]:
    answer = service.http.get(f"/models/{model}/versions/{version}/card")
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


@pytest.mark.parametrize("model", TASKS)
def test_a_card_tells_what_its_schema_says(cards: Service, model: str) -> None:
    found = card(cards, model)
    assert CardResponse.model_validate(found).model_dump(mode="json") == found
    version = cards.http.get(f"/models/{model}/versions/1").json()
    assert found["variants"] == version["variants"]
    assert found["rows"]["learned"] > found["rows"]["held_out"] > 0
    told = cards.http.get(f"/models/{model}/versions/1/card", headers=HTML).text
    for use, words in (("stopping", "that chose the epoch"), ("calibration", "for calibration")):
        assert (f"{found['rows'][use]} {words}" in told) == (found["rows"][use] > 0)
    assert [c["role"] for c in found["rows"]["columns"]][-1] == "target"
    assert found["learning_curve"][0]["epoch"] == 1
    counted = sum(found["signal_to_noise"]["counts"])
    assert counted == found["num_weights"]
    assert [cut["prune"] for cut in found["signal_to_noise"]["cuts"]] == [0.5]
    assert found["notes"] == version["notes"]
    assert found["limits"]
    assert set(found["limits"]).isdisjoint(version["notes"])


def test_an_alias_names_a_card(cards: Service) -> None:
    assert card(cards, "price", "champion") == card(cards, "price", 1)


def test_regression_and_classification_have_their_own_diagrams(cards: Service) -> None:
    price, tree = (card(cards, model)["variants"] for model in ("price", "tree"))
    assert [sum(v["metrics"]["pit"]) for v in price] == [12, 12]
    bins = tree[0]["metrics"]["reliability"]
    assert sum(b["rows"] for b in bins) == tree[0]["metrics"]["rows"]
    mean = np.average([b["accuracy"] for b in bins], weights=[b["rows"] for b in bins])
    assert mean == pytest.approx(tree[0]["metrics"]["accuracy"])


def test_classes_have_scores_of_their_own(cards: Service) -> None:
    found = card(cards, "tree")
    metrics = found["variants"][0]["metrics"]
    by_name = {section.name: section for section in sections(found)}
    each, confusion = by_name["classes"].tables[0], by_name["classes"].tables[-1]
    assert [row[1] for row in each.rows] == [one["rows"] for one in metrics["by_class"]]
    assert [list(row[1:]) for row in confusion.rows] == metrics["confusion"]["counts"]
    counted = np.array(metrics["confusion"]["counts"])
    assert counted.sum() == metrics["rows"]
    assert counted.trace() / counted.sum() == pytest.approx(metrics["accuracy"])
    page = cards.http.get("/models/tree/versions/1/card", headers=HTML).text
    assert "Rows by true and predicted class" in page
    coverage, sizes = by_name["coverage"].tables
    for table, name in ((coverage, "set_coverage"), (sizes, "set_size")):
        for row, prefix in zip(table.rows, ("", "conformal_"), strict=False):
            assert list(row[2:]) == list(metrics[f"{prefix}{name}"].values())
    assert [row[-1] for row in each.rows] == [
        one["conformal_set_coverage"]["0.9"] for one in metrics["by_class"]
    ]
    assert "in conformal 90 % sets" in page
    other = {section.name: section for section in sections(card(cards, "price"))}
    assert not other["classes"].tables


def test_the_curve_goes_through_the_coverage_of_the_metrics(cards: Service) -> None:
    """Levels of 50, 80 and 90 % are told twice: as metrics, and as sums of the PIT's bins."""
    found = card(cards, "sales")
    (curve, _) = next(s for s in sections(found) if s.name == "calibration").charts
    drawn = dict(zip(LEVELS, curve.figure["data"][0]["y"], strict=True))
    coverage = found["variants"][0]["metrics"]["coverage"]
    for level in ("0.5", "0.8", "0.9"):
        assert drawn[float(level)] == pytest.approx(coverage[level])


def test_what_calibration_and_abstaining_left_is_shown(cards: Service) -> None:
    """In the form in which versions that have it tell it: a null width has no end."""
    found = card(cards, "price")
    full = found["variants"][0]
    full["calibration"] = {"variance_scale": 1.44, "rows": 39}
    full["out_of_distribution"] = {"score": "x", "threshold": 1.0, "false_alarm_rate": 0.05}
    full["metrics"] |= {
        "uncalibrated": {"log_likelihood": -9.5},
        "conformal_coverage": {"0.5": 0.4, "0.8": 0.7, "0.9": 0.8, "0.95": 0.9},
        "conformal_width": {"0.5": 1.0, "0.8": 2.0, "0.9": 3.0, "0.95": None},
        "risk_coverage": [
            {"threshold": 0.1, "coverage": 0.5, "risk": 0.2},
            {"threshold": 0.2, "coverage": 1.0, "risk": 0.3},
        ],
    }
    by_name = {section.name: section for section in sections(found)}
    (corrections,) = by_name["calibration"].tables
    assert corrections.rows[0][1:4] == ["variance scale 1.44", 39, -9.5]
    coverage, widths, by_size = by_name["coverage"].tables
    assert by_size.caption == "Coverage of 90 % intervals by size of the prediction"
    assert [row[1] for row in by_size.rows] == [
        part["rows"] for part in full["metrics"]["coverage_by_size"]["parts"]
    ]
    assert coverage.rows[1] == ["full posterior", "conformal", 0.4, 0.7, 0.8, 0.9]
    assert widths.rows[1] == ["full posterior", "conformal", 1.0, 2.0, 3.0, "unbounded"]
    (risk,) = by_name["risk"].charts
    assert (risk.figure["data"][0]["x"], risk.figure["data"][0]["y"]) == ([0.5, 1.0], [0.2, 0.3])


def test_simple_methods_stand_beside_the_model(cards: Service) -> None:
    found = card(cards, "price")
    version = cards.http.get("/models/price/versions/1").json()
    for name in ("baselines", "recommended_variant", "selection"):
        assert found[name] == version[name]
    assert [one["kind"] for one in found["baselines"]] == ["constant", "linear", "boosted_trees"]
    ((table,), (chart,)) = next(
        (section.tables, section.charts)
        for section in sections(found)
        if section.name == "baselines"
    )
    own, *others = table.rows
    crps = table.headers.index("CRPS")
    measured = [found["variants"][0]["metrics"], *(b["metrics"] for b in found["baselines"])]
    errors = [one["standard_errors"]["crps"] for one in measured]
    assert [row[crps] for row in (own, *others)] == [
        with_error(one["crps"], error) for one, error in zip(measured, errors, strict=True)
    ]
    assert [row[1] for row in others] == [108, 108, 108]
    advantages = [(b["advantage"], b["advantage_error"]) for b in found["baselines"]]
    assert [tuple(row[1:]) for row in chart.table.rows] == advantages
    (dots, best) = chart.figure["data"]
    assert dots["error_x"]["array"] == [error for _, error in advantages]
    assert best["x"] == []
    page = cards.http.get("/models/price/versions/1/card", headers=HTML).text
    assert "Beside simple methods" in page
    assert any("a linear model" in note for note in found["notes"])


def test_the_recommended_variant_has_a_row_of_its_own(cards: Service) -> None:
    found = card(cards, "price") | {"recommended_variant": 0.5}
    (table,) = next(s for s in sections(found) if s.name == "baselines").tables
    assert [row[0] for row in table.rows] == [
        "this model", "50 % pruned", "constant", "linear model", "boosted trees",
    ]  # fmt: skip
    assert table.headers[-1] == "90 % coverage"


def test_candidates_are_shown_from_the_best_to_the_worst(cards: Service) -> None:
    found = card(cards, "price")
    (table,) = next(s for s in sections(found) if s.name == "selection").tables
    assert table.caption == "Candidates on 96 rows left out"
    assert [list(row) for row in table.rows] == [
        ["KL 1", -1.0, 0.2, 0.0, 0.1, "yes", "kl 1, width [20,20]"],
        ["KL 0.3", -1.05, 0.2, -0.05, 0.1, "yes", "kl 0.3"],
        ["KL 0.05", -1.5, 0.2, -0.5, 0.1, "no", "kl 0.05"],
    ]
    page = cards.http.get("/models/price/versions/1/card", headers=HTML).text
    assert "KL 0.3 is within a standard error of KL 1." in page


def test_without_a_comparison_the_card_says_so(cards: Service) -> None:
    page = cards.http.get("/models/lines/versions/1/card", headers=HTML).text
    assert "Nothing was compared" in page
    assert "Not fitted for this version" in page


def test_limits_follow_from_the_facts(cards: Service) -> None:
    price, tree, sales, lines = (" ".join(card(cards, model)["limits"]) for model in TASKS)
    assert "mean-field" in price
    assert "12 held-out rows" in price
    assert "% of all rows like them (95 % interval)" in price
    assert "random" in price
    assert "size, wood" in price
    assert "extrapolations" in tree
    assert "independent ones" in sales  # forecasts from neighbouring origins overlap
    assert "the latest rows" in sales
    assert "last" in lines


def test_settings_that_were_asked_for_are_told_from_the_recipes(make_service: MakeService) -> None:
    own = make_service()
    request = {
        "model": "asked",
        "data": {"columns": regression_columns()},
        "target": "price",
        "features": ["size", "day"],
        "likelihood": None,
        "network": {"hidden": [5]},
        "method": {"kind": "bbb", "kl": {"weight": 0.5}},
        "training": {"epochs": 2, "split": {"time": "day"}},
        "pruning": [],
    }
    job = own.post("/train", request).json()
    assert "given" not in job["request"]
    carry_out(own.context, job["id"])
    found = card(own, "asked")
    given = {s["setting"] for s in found["recipe"] if s["given"]}
    assert given == {
        "network.hidden",
        "method.kind",
        "method.kl.weight",
        "training.epochs",
        "training.split.time",
        "pruning",
    }
    by_recipe = {s["setting"]: s["value"] for s in found["recipe"] if s["given"] is False}
    assert (
        by_recipe.items() >= {"likelihood": "heteroscedastic", "training.batch_size": 256}.items()
    )
    assert any("objective is no ELBO" in note for note in found["notes"])
    assert found["rows"]["split"] == {"time": "day"}


def test_each_method_of_a_comparison_has_its_own_settings(make_service: MakeService) -> None:
    own = make_service()
    request = {
        "model": "compared",
        "data": {"columns": regression_columns()},
        "target": "price",
        "methods": ["map", {"kind": "ensemble", "members": 3}],
        "training": {"epochs": 2},
    }
    job = own.post("/compare", request)
    assert job.status_code == 202, job.text
    parts = own.context.jobs.parts(job.json()["id"])
    assert [part.spec["given"] for part in parts] == [
        ["target", "training.epochs", "method.kind"],
        ["target", "training.epochs", "method.kind", "method.members"],
    ]


@pytest.mark.parametrize(
    ("path", "accept", "status"),
    [
        ("/models/none/versions/1/card", "*/*", 404),
        ("/models/price/versions/9/card", "text/html", 404),
        ("/models/price/versions/gold/card", "*/*", 404),
        ("/models/price/versions/1/card?x=1", "*/*", 422),
        ("/models/price/versions/1/card", "text/csv", 406),
    ],
)
def test_what_is_not_there_is_a_problem(
    cards: Service, path: str, accept: str, status: int
) -> None:
    answer = cards.http.get(path, headers={"Accept": accept})
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_a_browser_gets_a_page_that_may_load_nothing_from_elsewhere(cards: Service) -> None:
    answer = cards.http.get("/models/price/versions/1/card", headers=HTML)
    assert answer.headers["Content-Type"].startswith("text/html")
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert (
        cards.http.get("/models/price/versions/1/card").headers["Content-Type"]
        == "application/json"
    )


def test_names_are_text_and_no_markup(make_service: MakeService) -> None:
    own = make_service()
    columns = regression_columns()
    hostile = "</script><script>alert(1)</script>"
    columns[hostile] = columns.pop("size")
    columns["wood"] = [hostile if v == "oak" else v for v in columns["wood"]]
    request = {"model": "hostile", "data": {"columns": columns}, "target": "price"}
    settings = {"network": {"hidden": [2]}, "training": {"epochs": 1}, "pruning": []}
    carry_out(own.context, own.post("/train", request | settings).json()["id"])
    page = own.http.get("/models/hostile/versions/1/card", headers=HTML).text
    assert "<script>alert" not in page
    assert page.count("&lt;/script&gt;&lt;script&gt;alert(1)") >= 2


def test_assets_are_open_and_the_card_is_not(make_service: MakeService, tmp_path: Path) -> None:
    key_file = tmp_path / "key"
    key_file.write_text("cred_" + 40 * "k")
    own = make_service(admin_key_file=key_file, auth="auto")
    path = "/models/price/versions/1/card"
    assert own.http.get(path).status_code == 401
    key = {"Authorization": f"Bearer {key_file.read_text()}"}
    assert httpx.get(own.url + path, headers=key, timeout=120).status_code == 200
    page = httpx.get(own.url + path, headers=key | HTML, timeout=120).text
    for address in (
        "/ui/static/base.css",
        "/ui/static/charts.js",
        "/ui/static/vendor/plotly-basic.min.js",
    ):
        assert address in page
        assert own.http.get(address).status_code == 200


@pytest.mark.parametrize("model", TASKS)
def test_the_card_travels_with_the_version(cards: Service, model: str) -> None:
    """Of every task, also in gzip; what is exported again is what was imported."""
    first, copy = exported(cards, model), f"{model}-copy"
    made = send(cards, gzip.compress(first), copy)
    assert made.status_code == 201, made.text
    again = unpacked(exported(cards, copy))
    files = unpacked(first)
    assert again.pop("origin.json") != files.pop("origin.json")
    assert again == files
    there, here = card(cards, copy), card(cards, model)
    for part in ("rows", "variants", "learning_curve", "signal_to_noise", "limits"):
        assert there[part] == here[part]
    assert {setting["given"] for setting in there["recipe"]} == {None}
    assert cards.http.delete(f"/models/{copy}").status_code == 204
