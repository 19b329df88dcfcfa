"""The client's calls against a real service, and what somebody does in a notebook."""

import asyncio
import re
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet

from credence import AsyncClient, Client
from credence.client.summaries import job_html, model_html
from credence.commands.following import follow
from credence.exceptions import CredenceAPIError, ServiceUnreachable
from credence.types import Json, Version
from tests.credence.conftest import TINY
from tests.credence.invoking import NOBODY
from tests.credence.running import Service

ROWS = pd.DataFrame({"y": 0.0, "x1": [1.0, 2.0], "x0": [0.5, np.nan], "kind": ["odd", "even"]})
INPUTS = [{"x0": 0.5, "x1": 1.0, "kind": "odd"}, {"x0": None, "x1": 2.0, "kind": "even"}]

pytestmark = [pytest.mark.stack, pytest.mark.usefixtures("version")]


@pytest.fixture(scope="module")
def truth(client: Client) -> Json:
    """The service's own answer to ROWS, in JSON."""
    return dict(client.submit_predict({"model": "small", "inputs": INPUTS, "seed": 3}))


def test_a_prediction_is_the_services_own_answer(client: Client, truth: Json) -> None:
    prediction = client.predict("small", ROWS, seed=3)
    told = truth["variance"]
    np.testing.assert_allclose(prediction.mean, truth["mean"], rtol=1e-5)
    np.testing.assert_allclose(prediction.std**2, told["total"], rtol=1e-5)
    np.testing.assert_allclose(prediction.aleatoric_deviation**2, told["aleatoric"], rtol=1e-5)
    np.testing.assert_allclose(prediction.epistemic_deviation**2, told["epistemic"], rtol=1e-5)
    np.testing.assert_allclose(prediction.interval(0.9).lower, truth["intervals"][0]["lower"], 1e-5)
    assert prediction.out_of_distribution.tolist() == truth["out_of_distribution"]
    assert (prediction.model, prediction.version, prediction.seed) == ("small", 1, 3)


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


def test_five_lines(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(1).normal(size=(80, 2))
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "label": np.where(x[:, 0] > 0, "up", "down")})
    with Client(service.url, progress=True) as client:
        model = client.train(frame, target="label", **TINY | {"pruning": []})
        prediction = model.predict(frame)
        sets = model.predict(frame, set_level=0.9)
    assert "succeeded" in capsys.readouterr().err
    assert (model.name, model.version, model.features) == ("label", 1, ["a", "b"])
    assert prediction.classes == ("down", "up")
    best = np.array(prediction.classes)[prediction.probabilities.argmax(axis=1)]
    assert prediction.labels.tolist() == best.tolist()
    entropy = -(prediction.probabilities * np.log(prediction.probabilities)).sum(axis=1)
    np.testing.assert_allclose(prediction["predictive_entropy"], entropy, rtol=1e-5, atol=1e-6)
    parts = prediction["expected_entropy"] + prediction["mutual_information"]
    np.testing.assert_allclose(parts, entropy, atol=1e-5)
    members = sets.sets(0.9)
    assert [row[0] for row in members] == prediction.labels.tolist()
    with pytest.raises(ValueError, match=r"set_level=0\.9"):
        prediction.sets()


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


EVIL = "<script>alert('x')</script>"


def test_no_text_becomes_markup(client: Client, version: Version) -> None:
    hostile: Any = {**version, "target": EVIL, "aliases": [EVIL], "notes": [EVIL], "task": EVIL}
    hostile["baselines"] = [{"kind": EVIL, "metrics": {}, "seconds": 0.0, "rows": 1}]
    assert "<script" not in model_html(hostile, 'http://x"><script>')
    job: Any = {**client.job(version["job"]), "status": "failed", "model": EVIL, "kind": EVIL}
    job["error"] = {"code": EVIL, "message": EVIL}
    page = job_html(job, "http://x")
    assert "<script" not in page
    assert EVIL in unescape(page)


def test_a_refusal_carries_the_problem_document(client: Client) -> None:
    request = {"model": "small", "dataset": "ds_none", "target": "y", "network": {"hidden": [0]}}
    with pytest.raises(CredenceAPIError) as caught:
        client.submit_train(request)
    error = caught.value
    assert error.status == 422
    assert error.title
    assert error.request_id
    assert any(field.path.startswith("/network/hidden") for field in error.errors)
    assert "/network/hidden" in str(error)


def test_a_name_cannot_climb_out_of_its_place(client: Client, version: Version) -> None:
    with pytest.raises(CredenceAPIError) as caught:
        client.delete_version("small", "..")
    assert caught.value.status in (404, 422)
    assert client.version("small", 1)["version"] == 1


def test_lists_go_over_all_pages(client: Client, version: Version) -> None:
    ids = [job["id"] for job in client.jobs(model="small")]
    assert version["job"] in ids
    assert len(ids) == len(set(ids))
    with Client(NOBODY, retries=0) as nobody, pytest.raises(ServiceUnreachable):
        list(nobody.jobs())


def test_what_is_said_about_a_file_and_its_columns_is_kept(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "said.csv"
    path.write_text("id,x,y\n" + "".join(f"{i},{i * i % 7},{i % 5}\n" for i in range(30)))
    said = client.upload(path, delimiter=",")
    changed = client.fix_columns(said["id"], [{"name": "id", "use": False}], name="without id")
    assert changed["id"] != said["id"]
    assert changed["name"] == "without id"
    assert [column["use"] for column in changed["columns"]] == [False, True, True]
    headless = client.fix_columns(said["id"], header=False)
    assert (said["rows"], headless["rows"]) == (30, 31)


def test_a_data_set_is_predicted_to_a_file(
    client: Client, version: Version, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = {"model": "small", "dataset": version["dataset"], "seed": 7, "chunk_rows": 25}
    job = follow(client, client.submit_batch(request)["id"])
    progress = {"chunk": 3, "chunks": 3, "fraction": 1.0, "eta_seconds": 0.0}
    assert job["progress"].items() >= progress.items()
    assert "chunk 3/3" in capsys.readouterr().err
    client.download_result(job["id"], tmp_path / "result.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["result.parquet"]
    rows = client.dataset_rows(version["dataset"], 60)
    inputs = [{name: row[name] for name in ("x0", "x1", "kind")} for row in rows]
    online = client.submit_predict({"model": "small", "inputs": inputs, "seed": 7})
    mean = parquet.read_table(tmp_path / "result.parquet").column("mean").to_numpy()
    assert np.allclose(mean, online["mean"], rtol=1e-5, atol=1e-5)
