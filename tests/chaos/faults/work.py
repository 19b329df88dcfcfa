"""What clients want: trainings, offline predictions, cancels and resumes, deletions."""

import time
from contextlib import suppress

from core.exceptions import CredenceError
from core.jobs.jobs import FINAL
from tests.chaos.faults.fault import Fault, Run

LOOK_SECONDS, LOOKS = 0.02, 150


def submit(run: Run) -> None:
    run.traffic.submit(run.random.randrange(1000))


def submit_with_data(run: Run) -> None:
    run.traffic.submit_with_data(run.random.randrange(1000))


def submit_batch(run: Run) -> None:
    run.traffic.submit_batch(run.random.randrange(1000))


def cancel(run: Run) -> None:
    if job := some_job(run):
        run.traffic.ask("POST", f"/jobs/{job}/cancel")


def cancel_at_the_end(run: Run) -> None:
    """While a job publishes what it made: its last epoch is over, and it has not ended."""
    submit(run)
    job = run.traffic.accepted[-1] if run.traffic.accepted else None
    if job is None:
        return
    for _ in range(LOOKS):
        with suppress(CredenceError):
            now = run.world.context.jobs.get(job)
            if now.status in FINAL or (now.progress or {}).get("fraction", 0) >= 1:
                break
        time.sleep(LOOK_SECONDS)
    run.pause(0, 0.3)
    run.traffic.ask("POST", f"/jobs/{job}/cancel")


def resume(run: Run) -> None:
    if job := some_job(run):
        run.traffic.ask("POST", f"/jobs/{job}/resume")


def delete_data(run: Run) -> None:
    run.traffic.delete_data(run.random.randrange(1000))


def wait(run: Run) -> None:
    run.pause(0, 1)


def some_job(run: Run) -> str | None:
    """Any that this schedule has asked for."""
    return run.random.choice(run.traffic.accepted) if run.traffic.accepted else None


FAULTS = {
    "submit": Fault(submit, 6),
    "submit_with_data": Fault(submit_with_data, 2),
    "submit_batch": Fault(submit_batch, 2),
    "cancel": Fault(cancel, 2),
    "cancel_at_the_end": Fault(cancel_at_the_end, 2),
    "resume": Fault(resume, 2),
    "delete_data": Fault(delete_data, 1),
    "wait": Fault(wait, 2),
}
