"""Schedules: trainings that are repeated, and what their gates decided."""

from typing import Literal

from credence.client.calls import Calls
from credence.client.operations import Listing, Operation, listing, method
from credence.client.requests import path
from credence.types import Json, Schedule, ScheduleRun


class ScheduleCalls(Calls):
    """Repeat a training, run it now, read what its gate decided, stop repeating it."""

    @method
    def create_schedule(
        self,
        name: str,
        train: Json,
        *,
        cron: str | None = None,
        time_zone: str | None = None,
        on: Literal["refresh"] | None = None,
        gate: Json | None = None,
    ) -> Operation[Schedule]:
        """Repeat a training, and move its alias only if the new version is not worse.

        Args:
            train: the body of `POST /train`.
            cron: minute, hour, day, month, weekday, as `0 3 * * *`; or give `on`.
            time_zone: whose clock `cron` means, as `Europe/Paris`; by default UTC.
            on: `refresh` runs it when a refresh of the data set gives other rows.
            gate: `max_loss` in nats per row (by default 0), and `min_coverage` (by default 0.87).
        """
        given = {"cron": cron, "time_zone": time_zone, "on": on, "gate": gate}
        options = {key: value for key, value in given.items() if value is not None}
        return self.create("/schedules", json={"name": name, "train": train, **options})

    @listing
    def schedules(self) -> Listing[Schedule]:
        """Schedules, newest first, page after page."""
        return self.pages("/schedules")

    @method
    def schedule(self, name: str) -> Operation[Schedule]:
        """A schedule, with its newest ten runs."""
        return self.call("GET", path("schedules", name))

    @listing
    def schedule_runs(self, name: str) -> Listing[ScheduleRun]:
        """All runs of a schedule, newest first, page after page."""
        return self.pages(path("schedules", name, "runs"))

    @method
    def run_schedule(self, name: str) -> Operation[ScheduleRun]:
        """Run a schedule now; `wait` for the run's `job`."""
        return self.create(path("schedules", name, "run"))

    @method
    def delete_schedule(self, name: str) -> Operation[None]:
        """Stop repeating a training; a job that has begun goes on."""
        return self.call("DELETE", path("schedules", name))
