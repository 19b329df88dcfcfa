"""A small model as an archive, rows, and the answers of the loaded model itself."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import credence
from core.registry import archives
from credence.scoring.model import LoadedModel
from models.artifact.files import write_model
from models.config import MLPConfig, ModelConfig, TrainingConfig
from models.features.columns import ColumnProfile
from models.training.recipe import resolve
from models.training.train import train

ROWS = 500
OPTIONS: dict[str, Any] = {"samples": 20, "seed": 3, "quantiles": [0.1], "density": {"points": 4}}


@pytest.fixture(scope="session", autouse=True)
def _importable() -> None:
    """Workers of the engines import what this process imports."""
    root = str(Path(__file__).parents[2])
    os.environ["PYTHONPATH"] = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    os.environ["PYSPARK_PYTHON"] = sys.executable


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[None]:
    """One for all tests: Ray starts once per process."""
    ray = pytest.importorskip("ray", reason="ray is not installed: make test-engines")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    yield
    ray.shutdown()


@pytest.fixture(scope="session")
def rows() -> pa.Table:
    """Numbers, a category, a boolean and times, with missing values, and a key."""
    random = np.random.default_rng(0)
    size = random.normal(size=ROWS)
    days = np.datetime64("2026-01-01") + np.arange(ROWS) % 30
    return pa.table(
        {
            "key": pa.array(range(ROWS)),
            "size": pa.array(size, mask=np.arange(ROWS) % 17 == 0),
            "wood": pa.array([("oak", "ash", None)[i % 3] for i in range(ROWS)]),
            "wet": pa.array((random.random(ROWS) < 0.5).tolist()),
            "day": pa.array(days.astype("datetime64[us]")),
        }
    )


@pytest.fixture(scope="session")
def archive(rows: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    columns = {
        "size": rows["size"].to_numpy(),
        "wood": np.array(rows["wood"].to_pylist(), dtype=object),
        "wet": rows["wet"].to_numpy().astype(float),
        "day": rows["day"].to_numpy(),
    }
    columns["price"] = 2 * np.nan_to_num(columns["size"]) + columns["wet"]
    profiles = [
        ColumnProfile(name="size", type="number", missing=ROWS // 17, min=-3.0, max=3.0),
        ColumnProfile(name="wood", type="category", missing=ROWS // 3, levels=("ash", "oak")),
        ColumnProfile(name="wet", type="boolean"),
        ColumnProfile(name="day", type="datetime"),
        ColumnProfile(name="price", type="number", min=-6.0, max=7.0),
    ]
    types = {profile.name: profile.type for profile in profiles}
    config = ModelConfig(
        target="price",
        task="regression",
        network=MLPConfig(hidden=(8,)),
        training=TrainingConfig(epochs=5, fine_tune_epochs=1),
        pruning=(),
    )
    chosen = resolve(config, profiles, ROWS, lambda names: {name: columns[name] for name in names})
    write_model(train(columns, types, chosen), folder / "files")
    path = folder / "price.tar"
    path.write_bytes(b"".join(archives.pack(folder / "files")))
    return path


@pytest.fixture(scope="session")
def model(archive: Path) -> LoadedModel:
    return credence.load(archive, threads=1)


@pytest.fixture(scope="session")
def wanted(model: LoadedModel, rows: pa.Table) -> pa.Table:
    """The answers of the loaded model, which those of the service are (tests/app/test_loading)."""
    (found,) = model.predict_batches([rows], **OPTIONS)
    assert any(found["reasons"].to_pylist()), "a row is unlike those of training"
    return found


def skip_without(engine: str) -> None:
    """Skip where Ray or Spark is not installed; during the collection the whole file."""
    if engine == "ray":
        pytest.importorskip("ray", reason="make test-engines")
    if engine == "spark":
        pytest.importorskip("pyspark", reason="make test-engines")
        if shutil.which("java") is None:
            reason = "Spark needs Java 17: apt install openjdk-17-jre-headless"
            pytest.skip(reason, allow_module_level=True)


def check(found: list[dict[str, Any]], wanted: pa.Table) -> None:
    """Whether predictions by row, in the order of the keys, are the wanted ones to 1e-6."""
    assert len(found) == wanted.num_rows
    for name in ("mean", "lower_0.9", "epistemic_variance", "quantile_0.1", "ood_score"):
        np.testing.assert_allclose(
            [row[name] for row in found], wanted[name].to_numpy(), rtol=1e-6, atol=1e-6
        )
    density = np.array([list(row["density"]) for row in found])
    np.testing.assert_allclose(density, np.array(wanted["density"].to_pylist()), atol=1e-6)
    reasons = [[one["text"] for one in row["reasons"]] for row in found]
    assert reasons == [[one["text"] for one in row] for row in wanted["reasons"].to_pylist()]
    flags = wanted["out_of_distribution"].to_pylist()
    assert [row["out_of_distribution"] for row in found] == flags
