"""Versions as models of MLflow: logged, loaded, and served."""

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import pyarrow as pa
import pytest

from credence.scoring.model import LoadedModel
from tests.engines.conftest import OPTIONS, check
from tests.waiting import free_port, wait_until

mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed: make test-engines")
engine = pytest.importorskip("credence.engines.mlflow")
pytestmark = pytest.mark.filterwarnings("ignore")  # of MLflow about what it uses itself


@pytest.fixture(scope="module")
def uri(model: LoadedModel, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{folder}/runs.db")
    mlflow.create_experiment("prices", (folder / "artifacts").as_uri())
    mlflow.set_experiment("prices")
    with mlflow.start_run():
        return str(engine.log_model(model, "price", options=OPTIONS).model_uri)


def test_the_flavour_gives_the_model_back(
    uri: str, model: LoadedModel, rows: pa.Table, wanted: pa.Table
) -> None:
    again = engine.load_model(uri)
    assert again.source.digest == model.source.digest
    means = [one.predict_table(rows, **OPTIONS)["mean"] for one in (again, model)]
    assert means[0] == means[1]
    assert "credence" in mlflow.models.get_model_info(uri).flavors


def test_pyfunc_has_a_signature_and_predicts(uri: str, rows: pa.Table, wanted: pa.Table) -> None:
    loaded = mlflow.pyfunc.load_model(uri)
    assert loaded.metadata.get_input_schema().input_names() == ["size", "wood", "wet", "day"]
    assert loaded.metadata.get_output_schema().input_names() == wanted.column_names
    found = loaded.predict(rows.drop_columns(["key"]).to_pandas())
    check(found.to_dict("records"), wanted)


def test_it_is_served(uri: str, rows: pa.Table, wanted: pa.Table, tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "mlflow", "models", "serve", "--model-uri", uri]
    command += ["--env-manager", "local", "--port", str(port)]
    environment = os.environ | {
        "MLFLOW_TRACKING_URI": mlflow.get_tracking_uri(),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    log = (tmp_path / "log").open("w")
    server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: _answers(url, server))
        records = rows.slice(0, 20).drop_columns(["key"]).to_pandas()
        body = {"dataframe_split": json.loads(records.to_json(orient="split", date_format="iso"))}
        headers = {"Content-Type": "application/json"}
        request = Request(f"{url}/invocations", json.dumps(body).encode(), headers)
        with urlopen(request, timeout=60) as response:
            check(json.load(response)["predictions"], wanted.slice(0, 20))
    finally:
        server.terminate()
        server.wait(120)
        log.close()


def _answers(url: str, server: "subprocess.Popen[bytes]") -> bool:
    assert server.poll() is None, "the server did not start"
    try:
        urlopen(f"{url}/ping", timeout=60).close()
    except (URLError, OSError):
        return False
    return True
