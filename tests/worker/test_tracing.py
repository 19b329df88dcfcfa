"""What a trace and the log tell of a worker that was lost, and of the one that went on."""

import json

import pytest

from core.context import Context
from core.jobs.jobs import JobStatus, Origin
from core.jobs.specs import TrainSpec
from tests.collector import collecting
from tests.waiting import wait_until
from tests.worker.conftest import train_job, wait_for, worker

pytestmark = pytest.mark.stack
TRACE, REQUEST = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def test_a_lost_worker_and_the_next_attempt_are_in_the_trace_of_the_request(
    context: Context, dataset: str, capfd: pytest.CaptureFixture[str]
) -> None:
    spec = TrainSpec.model_validate(train_job(context, dataset).spec)
    origin = Origin("request-9", f"00-{TRACE}-{REQUEST}-01")
    job = context.jobs.create(spec, origin)
    assert context.jobs.claim(job.id, "lost", lease_seconds=0.0) is not None
    with collecting() as collector:
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "100"}
        variables |= {"CREDENCE_LOG_FORMAT": "json", "CREDENCE_LEASE_SECONDS": "10"}
        with worker(context, **variables):
            assert wait_for(context, job, JobStatus.SUCCEEDED).attempt == 2
            wait_until(lambda: bool(collector.within(TRACE, "job")))
        [lost] = collector.within(TRACE, "worker lost")
        [again] = collector.within(TRACE, "job")
    assert lost.parent_id == again.parent_id == REQUEST
    assert lost.attributes["credence.job.id"] == again.attributes["credence.job.id"] == job.id
    assert (again.events, again.attributes["credence.job.attempt"]) == (["retry"], 2)
    assert lost.end <= again.start
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines() if line[:1] == "{"]
    of_the_job = [line for line in lines if line.get("job_id") == job.id]
    assert {line["request_id"] for line in of_the_job} == {"request-9"}
    assert {"worker lost, job taken back", "job started", "job succeeded"} <= {
        line["message"] for line in of_the_job
    }
