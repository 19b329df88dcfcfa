"""Nothing is kept in memory of a version that was deleted."""

from collections.abc import Iterable

from app.serving.throughput import SpeedKey
from tests.app.conftest import MakeService
from tests.waiting import wait_until

ROW = [1.0, "oak", True, "2026-01-05T00:00:00Z"]


def test_estimates_and_cards_of_a_deleted_version_are_forgotten(make_service: MakeService) -> None:
    """They stayed until others took their place: memory grew with each version that was trained."""
    service = make_service()
    predictor, cards = service.services.predictor, service.services.cards
    throughput = predictor.engine._throughput
    artifacts = []
    for name, rows in (("price", [ROW]), ("tree", [[0.0, 0.0, [[0, 0], [0, 0]]]])):
        answer = service.post("/predict", {"model": name, "inputs": rows})
        version = answer.json()["version"]
        assert service.http.get(f"/models/{name}/versions/{version}/card").status_code == 200
        artifacts.append(service.context.registry.get(name, version).artifact_key)
    gone, kept = artifacts
    assert {key[0] for key in cards._known} == {gone, kept}
    assert artifacts_of(throughput._means) == {gone, kept}
    assert service.http.delete("/models/price").status_code == 204
    wait_until(lambda: {key[0] for key in cards._known} == {kept})
    assert artifacts_of(throughput._means) == {kept}
    assert artifacts_of(throughput._worth_joining) == {kept}
    assert {artifact for artifact, *_ in throughput._cheapest} == {kept}
    assert gone not in throughput._answer_shares


def artifacts_of(known: Iterable[object]) -> set[str]:
    return {key.artifact for key in known if isinstance(key, SpeedKey)}
