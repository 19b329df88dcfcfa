"""The promises are checked by rules that can fail."""

from pathlib import Path

from sqlalchemy import select, update

from core.database.schema import DeliveryRow
from core.webhooks.event_types import EventType
from tests.chaos.cradle import Cradle
from tests.chaos.invariants import of_webhooks, violations
from tests.chaos.world import World
from tests.worker.conftest import QUICK, train_job
from worker.metrics import WorkerMetrics
from worker.runner import JobRunner


def test_what_is_missing_or_never_arrived_is_found(cradle: Cradle, tmp_path: Path) -> None:
    with World(tmp_path / "world", cradle) as world:  # on files; nothing runs
        world.context.webhooks.create(world.receiver_url, [EventType.JOB_SUCCEEDED])
        job = train_job(world.context, world.dataset, QUICK, pruning=())
        assert violations(world.context) == [f"train {job.id}: is queued still"]
        JobRunner(world.context, "here", WorkerMetrics(), lambda: False).wake()
        assert violations(world.context) == list(of_webhooks(world, after=0)) == []
        with world.context.database.begin() as session:
            session.execute(update(DeliveryRow).values(status="delivered"))
            one = session.scalars(select(DeliveryRow.id)).one()
        assert list(of_webhooks(world, 0)) == [f"delivery {one} is delivered, and did not arrive"]
        with world.context.database.begin() as session:
            session.delete(session.scalars(select(DeliveryRow)).one())
        assert list(of_webhooks(world, 0)) == [f"job {job.id} ended 1 times, and has 0 deliveries"]
        world.context.registry.path(world.context.registry.get("line")).rename(tmp_path / "gone")
        [unreadable, lost] = violations(world.context)
        assert (unreadable.startswith("train"), lost.startswith("lost: ")) == (True, True)
