"""The examples of docs/api.md, run as they stand there, against a service that has their model."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.context import open_context
from core.settings import load_settings
from tests.app.running import Service, publish, serving

API = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
ADDRESS = "127.0.0.1:8000"


def examples(language: str, section: str) -> list[str]:
    """Fenced blocks below a heading, up to the next one."""
    (text,) = re.findall(
        rf"^#+ {re.escape(section)}\n(.*?)(?=^#+ |\Z)", API, re.MULTILINE | re.DOTALL
    )
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def concrete(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with the model of the examples, and missing values in its training rows."""
    data_dir = tmp_path_factory.mktemp("examples")
    context = open_context(load_settings(data_dir=data_dir))
    x = np.random.default_rng(0).uniform(0, 500, (60, 2))
    x1: list[Any] = [None, *x[1:, 1].tolist()]
    columns = {"x0": x[:, 0].tolist(), "x1": x1, "y": x.sum(axis=1).tolist()}
    publish(context, "concrete", columns, target="y", alias="champion")
    context.close()
    with serving(data_dir) as running:
        yield running


def run(code: str, service: Service) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(code.replace(ADDRESS, service.url.removeprefix("http://")), names)
    return names


def test_the_arrow_example_runs(concrete: Service) -> None:
    (code,) = examples("python", "Arrow")
    table = run(code, concrete)["table"]
    assert table.num_rows == 2
    assert "lower_0.5" in table.column_names


def test_the_protocols_examples_say_the_same(concrete: Service) -> None:
    (code,) = examples("python", "Open Inference Protocol v2")
    mean = run(code, concrete)["result"].as_numpy("mean")
    (body,) = examples("json", "Open Inference Protocol v2")
    answer = concrete.post("/v2/models/concrete/infer", json.loads(body)).json()
    assert [output["name"] for output in answer["outputs"]] == ["mean", "epistemic_variance"]
    assert answer["outputs"][0]["data"] == pytest.approx(mean.tolist(), rel=1e-5)
    assert answer["id"] == "42"
