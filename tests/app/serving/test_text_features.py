"""Text as a feature among others: learned, stored, predicted in every form."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.context import open_context
from core.settings import load_settings
from models.artifact.export import build
from models.artifact.files import read_model
from models.exceptions import InvalidInput
from models.features.texts import TextEncoder
from tests.app.running import Service, publish, serving

ROWS = 600
GOOD, BAD = ("good", "great", "fine", "lovely"), ("bad", "awful", "poor", "dreadful")


def reviews() -> dict[str, list[Any]]:
    """A label that three words of each text tell, and a number that tells little."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, ROWS)
    texts = []
    for one in label:
        words = [str(word) for word in rng.choice([f"w{i}" for i in range(100)], 12)]
        for _ in range(3):
            kind = GOOD if (rng.random() < 0.9) == one else BAD
            words.insert(int(rng.integers(len(words))), str(rng.choice(kind)))
        texts.append(" ".join(words))
    x = rng.normal(size=ROWS) + 0.3 * label
    classes = np.where(label == 1, "kept", "returned")
    return {"x": x.tolist(), "review": texts, "y": classes.tolist()}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data_dir = tmp_path_factory.mktemp("reviews")
    context = open_context(load_settings(data_dir=data_dir))
    columns = reviews()

    publish(context, "reviews", columns, target="y", features=["x", "review"])
    context.close()
    return data_dir


@pytest.fixture(scope="module")
def service(trained: Path) -> Iterator[Service]:
    with serving(trained) as running:
        yield running


def test_text_is_left_out_unless_it_is_named(service: Service) -> None:
    body = {"model": "m", "target": "y", "data": {"columns": reviews()}}
    job = service.post("/train", body).json()
    assert [f["name"] for f in job["request"]["features"]] == ["x"]
    assert [note for note in job["notes"] if "'review' is free text" in note]
    fix = {"columns": [{"name": "review", "use": True}]}
    changed = service.post(f"/datasets/{job['request']['dataset']}/columns", fix).json()
    job = service.post("/train", {"model": "m", "target": "y", "dataset": changed["id"]}).json()
    assert job["request"]["features"][1] == {"name": "review", "type": "text"}


def test_the_artifact_keeps_hashes_and_no_words(trained: Path, service: Service) -> None:
    context = service.context
    folder = context.registry.path(context.registry.get("reviews"))
    model = read_model(folder)
    encoder = next(e for e in model.encoder.encoders if e.kind == "text")  # type: ignore[attr-defined]
    assert isinstance(encoder, TextEncoder)
    assert "lovely" not in (folder / "model.json").read_text()
    with pytest.raises(InvalidInput, match="'review' is text"):
        build(model)  # type: ignore[arg-type]
