"""Nothing is kept in memory of a version that was deleted."""

from functools import partial

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.app.conftest import MakeService
from tests.app.running import Service, serving
from tests.waiting import wait_until

ROW = [1.0, "oak", True, "2026-01-05T00:00:00Z"]


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.serving.deleted_models.SECONDS", 0.1)


def test_every_replica_forgets_a_model_that_another_one_deleted(make_service: MakeService) -> None:
    """Counters and models of those that were deleted stayed in each process for its lifetime."""
    first = make_service()
    with serving(first.context.settings.data_dir) as second:
        for service in (first, second):
            answer = service.post("/predict", {"model": "price", "inputs": [ROW], "store": True})
            labels = {"prediction": answer.json()["id"], "truth": [1.0]}
            assert service.post("/feedback", labels).status_code == 201
            other = {"model": "tree", "inputs": [[0.0, 0.0, [[0, 0], [0, 0]]]]}
            assert service.post("/predict", other).status_code == 200
            assert len(metrics_of(service, "price")) > 20
        assert first.http.delete("/models/price").status_code == 204
        for service in (first, second):
            assert metrics_of(service, "price") == set()
            assert len(metrics_of(service, "tree")) > 10
            wait_until(partial(is_all_in_memory, service, "tree"))


def is_all_in_memory(service: Service, model: str) -> bool:
    loaded = service.services.predictor.cache.loaded()
    return {entry.version.model for entry in loaded} == {model}


def metrics_of(service: Service, model: str) -> set[str]:
    """The names of the metrics with a series of the model."""
    families = text_string_to_metric_families(service.http.get("/metrics").text)
    samples = [sample for family in families for sample in family.samples]
    return {sample.name for sample in samples if sample.labels.get("model") == model}
