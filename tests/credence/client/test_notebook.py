"""What somebody does in a notebook, with a real service."""

import asyncio
import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from credence import AsyncClient, Client, CredenceAPIError, JobFailed
from credence.types import Json, Version
from tests.credence.conftest import TINY
from tests.credence.running import Service

ROWS = pd.DataFrame({"y": 0.0, "x1": [1.0, 2.0], "x0": [0.5, np.nan], "kind": ["odd", "even"]})

pytestmark = pytest.mark.usefixtures("version")


@pytest.fixture(scope="module")
def truth(client: Client) -> Json:
    """The service's own answer to ROWS, in JSON."""
    inputs = [{"x0": 0.5, "x1": 1.0, "kind": "odd"}, {"x0": None, "x1": 2.0, "kind": "even"}]
    return dict(client.submit_predict({"model": "small", "inputs": inputs, "seed": 3}))


@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        pl.from_pandas(ROWS),
        pa.Table.from_pandas(ROWS),
        ROWS.to_dict("list"),
        ROWS.to_dict("records"),
    ],
    ids=["pandas", "polars", "pyarrow", "arrays", "records"],
)
def test_rows_in_any_form_get_the_same_answer(client: Client, truth: Json, rows: Any) -> None:
    prediction = client.predict("small", rows, seed=3)
    told = truth["variance"]
    np.testing.assert_allclose(prediction.mean, truth["mean"], rtol=1e-5)
    np.testing.assert_allclose(prediction.std**2, told["total"], rtol=1e-5)
    np.testing.assert_allclose(prediction.aleatoric_deviation**2, told["aleatoric"], rtol=1e-5)
    np.testing.assert_allclose(prediction.epistemic_deviation**2, told["epistemic"], rtol=1e-5)
    np.testing.assert_allclose(prediction.interval(0.9).lower, truth["intervals"][0]["lower"], 1e-5)
    assert prediction.out_of_distribution.tolist() == truth["out_of_distribution"]
    assert (prediction.model, prediction.version, prediction.seed) == ("small", 1, 3)
    frame = prediction.to_frame()
    assert len(frame) == 2 or isinstance(frame, dict)


def test_a_frame_keeps_its_index(client: Client) -> None:
    rows = ROWS.set_index(pd.Index(["second", "first"], name="row"))
    frame = client.predict("small", rows, intervals=[0.5]).to_frame()
    assert frame.index.tolist() == ["second", "first"]
    assert list(frame)[:7] == [
        "mean", "median", "aleatoric_variance", "epistemic_variance", "total_variance",
        "mc_error", "lower_0.5",
    ]  # fmt: skip


def test_a_notebook_shows_the_uncertainty(client: Client) -> None:
    strange = ROWS.assign(x0=[0.5, 900.0], x1=[0.2, -900.0])
    prediction = client.predict("small", strange)
    page = prediction._repr_html_()
    drawings = re.findall(r'x1="([-\d.]+)" x2="([-\d.]+)".*?cx="([-\d.]+)"', page)
    lower, upper = prediction.interval(0.9)
    scale = 300 / (upper[0] - lower[0])  # the axis is that of the usual rows
    for (start, end, dot), a, b, mean in zip(drawings, lower, upper, prediction.mean, strict=True):
        drawn = np.clip((np.array([a, mean, b]) - lower[0]) * scale, 0, 300)
        assert [float(start), float(dot), float(end)] == pytest.approx(drawn, abs=0.06)
    assert page.count("<td>unlike training</td>") == 1
    ElementTree.fromstring(f"<html>{page}</html>")  # well-formed


def test_an_interval_that_was_not_asked_for_is_named(client: Client) -> None:
    with pytest.raises(
        ValueError, match=r"no credible interval of level 0.5, .* intervals=\[0.5\]"
    ):
        client.predict("small", ROWS).interval(0.5)
    with pytest.raises(ValueError, match="predicts numbers"):
        _ = client.predict("small", ROWS).probabilities


def test_probabilities_quantiles_and_densities_are_arrays(client: Client) -> None:
    asked: Json = {"exceeds": [0.5, -1], "quantiles": [0.1, 0.9], "density": {"points": 16}}
    prediction = client.predict("small", ROWS, seed=3, return_mc_errors=True, **asked)
    inputs = [{"x0": 0.5, "x1": 1.0, "kind": "odd"}, {"x0": None, "x1": 2.0, "kind": "even"}]
    truth = client.submit_predict({"model": "small", "inputs": inputs, "seed": 3, **asked})
    for one in truth["exceeds"]:
        found = prediction.exceeds(one["threshold"])
        np.testing.assert_allclose(found, one["probability"], rtol=1e-5)
    for quantile in truth["quantiles"]:
        np.testing.assert_allclose(
            prediction.quantile(quantile["p"]), quantile["values"], rtol=1e-5
        )
    density = prediction.density()
    assert (density.kind, density.density.shape, density.atoms) == ("density", (2, 16), {})
    np.testing.assert_allclose(density.values, truth["density"]["values"], rtol=1e-4)
    with pytest.raises(ValueError, match=r"exceeds has no 2.0, but: 0.5, -1.0; .*exceeds=\[2.0\]"):
        prediction.exceeds(2)
    with pytest.raises(ValueError, match=r"predict with quantiles=\[0.5\]"):
        prediction.quantile(0.5)
    with pytest.raises(ValueError, match="predict with density="):
        client.predict("small", ROWS).density()


def test_many_rows_are_more_than_one_request_may_have(client: Client, service: Service) -> None:
    """The service takes 1000 rows of 100 samples at once, and the client does not know it."""
    many = pd.concat([ROWS] * 1000, ignore_index=True)
    few, all_ = client.predict("small", ROWS), client.predict("small", many)
    np.testing.assert_allclose(all_.mean, np.tile(few.mean, 1000), rtol=1e-4, atol=1e-4)
    assert "413" in service.log_file.read_text() or len(all_) == 2000
    with pytest.raises(CredenceAPIError, match="CREDENCE_MAX_WORK"):
        client.predict("small", many, target_mc_error=1e-9)  # which is about all rows at once


def test_five_lines(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(1).normal(size=(80, 2))
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "label": np.where(x[:, 0] > 0, "up", "down")})
    with Client(service.url, progress=True) as client:
        model = client.train(frame, target="label", **TINY | {"pruning": []})
        prediction = model.predict(frame)
        sets = model.predict(frame, set_level=0.9)
    assert "succeeded" in capsys.readouterr().err
    assert (model.name, model.version, model.features) == ("label", 1, ["a", "b"])
    assert "accuracy" in repr(model)
    assert prediction.classes == ("down", "up")
    best = np.array(prediction.classes)[prediction.probabilities.argmax(axis=1)]
    assert prediction.labels.tolist() == best.tolist()
    np.testing.assert_allclose(prediction.probabilities.sum(axis=1), 1.0, rtol=1e-6)
    entropy = -(prediction.probabilities * np.log(prediction.probabilities)).sum(axis=1)
    np.testing.assert_allclose(prediction["predictive_entropy"], entropy, rtol=1e-5, atol=1e-6)
    parts = prediction["expected_entropy"] + prediction["mutual_information"]
    np.testing.assert_allclose(parts, entropy, atol=1e-5)
    assert next(iter(prediction.to_frame())) == "label"
    members = sets.sets(0.9)
    assert [row[0] for row in members] == prediction.labels.tolist()
    assert {len(row) for row in members} <= {1, 2}
    assert sets["set_0.9"].tolist() == sets.to_frame()["set_0.9"].map(list).tolist()
    with pytest.raises(ValueError, match=r"are: none; predict with set_level=0\.9"):
        prediction.sets()
    with pytest.raises(ValueError, match=r"no conformal sets .* there are: set_0\.9"):
        sets.sets(0.9, "conformal")  # 80 rows are too few to hold any out for calibration
    assert "and 60 more rows" in prediction._repr_html_()


def test_the_same_methods_are_awaited(service: Service, truth: Json) -> None:
    async def ask() -> None:
        async with AsyncClient(service.url) as client:
            model = await client.model("small")
            predictions = await asyncio.gather(
                model.predict(ROWS, seed=3), client.predict("small", ROWS, seed=3)
            )
            for prediction in predictions:
                np.testing.assert_allclose(prediction.mean, truth["mean"], rtol=1e-5)
            assert "small" in [found["name"] async for found in client.models()]
            assert (await model.card())["model"] == "small"

    asyncio.run(ask())


def test_a_model_is_told_what_came_true(client: Client, version: Version) -> None:
    model = client.model("small")
    rows = client.dataset_rows(version["dataset"], 60)
    scores = model.evaluate(version["dataset"])
    told = model.feedback(pd.DataFrame(rows), truth="y")
    assert told["rows"] == 60
    assert told["metrics"]["rmse"] == pytest.approx(scores["rmse"], rel=1e-4)
    few = model.feedback(rows[:3], [rows[0]["y"], None, np.nan])
    assert few["rows"] == 1
    with pytest.raises(ValueError, match="2 values for 3 rows"):
        model.feedback(rows[:3], [1.0, 2.0])
    with pytest.raises(ValueError, match="no column 'z'"):
        model.feedback(rows, "z")
    with pytest.raises(ValueError, match="no value is known"):
        model.feedback(rows[:2], [None, None])


def test_a_model_says_which_rows_to_label(client: Client, version: Version) -> None:
    model = client.model("small")
    rows = pd.DataFrame(client.dataset_rows(version["dataset"], 60)).drop(columns="y")
    far = rows.iloc[[7]].assign(**{rows.columns[0]: 1e3})
    found = model.acquire(pd.concat([rows, far]), 3)
    assert found["rows"][0] == 60
    assert (found["candidates"], len(found["information"])) == (61, 3)


def test_a_model_says_which_scores_to_expect_of_rows_without_labels(
    client: Client, version: Version
) -> None:
    model = client.model("small")
    rows = pd.DataFrame(client.dataset_rows(version["dataset"], 60))
    found = model.expected(rows.drop(columns="y"), level=0.8)
    assert (found["rows"], found["level"], found["labelled_rows"]) == (60, 0.8, 0)
    rmse = found["scores"]["rmse"]
    assert rmse["promised"] == pytest.approx(version["metrics"]["rmse"], rel=1e-6)
    assert "actual" not in rmse
    same = client.expected("small", found["dataset"], version=model.version, level=0.8)
    assert same == found
    beside = model.expected(rows, level=0.8)
    assert beside["scores"]["rmse"]["expected"] == rmse["expected"]
    assert beside["scores"]["rmse"]["actual"] > 0


def test_a_training_that_fails_says_why(client: Client, version: Version) -> None:
    wild = {"learning_rate": 100.0, "optimizer": "sgd", "gradient_clip": 1e6, "epochs": 200}
    with pytest.raises(JobFailed, match="diverged") as caught:
        client.train(version["dataset"], target="y", model="diverging", training=wild)
    assert caught.value.job["status"] == "failed"


def test_the_service_is_where_the_environment_says(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CREDENCE_URL", service.url)
    with Client() as client:
        assert client.version("small")["version"] == 1
