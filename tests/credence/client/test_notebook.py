"""What somebody does in a notebook, with a real service."""

import asyncio
import re
from html import unescape
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from credence import AsyncClient, Client
from credence.client.summaries import job_html, model_html
from credence.types import Json, Version
from tests.credence.conftest import TINY
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
