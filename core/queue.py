"""The queue carries wake-ups: a job's id, nothing else. Losing or doubling one does no harm."""

from typing import Any

from celery import Celery
from kombu.exceptions import OperationalError

from core.exceptions import Unavailable
from core.settings import Settings

RUN_JOB = "credence.run_job"
QUEUE = "credence"

POLLING_SECONDS = 0.05
VISIBILITY_TIMEOUT_SECONDS = 24 * 3600
PUBLISH_RETRIES = {"max_retries": 1, "interval_start": 0.1, "interval_step": 0, "interval_max": 0.1}


def celery_options(settings: Settings) -> dict[str, Any]:
    """The Celery configuration that sender and worker share."""
    return {
        "broker_url": settings.resolved_broker_url,
        "broker_transport_options": _transport_options(settings),
        "broker_connection_retry_on_startup": True,
        "task_default_queue": QUEUE,
        "task_ignore_result": True,
        "task_serializer": "json",
        "accept_content": ["json"],
        "enable_utc": True,
        # A message is acknowledged after its job, and none is fetched meanwhile: a busy worker
        # must not sit on the wake-up of a job that an idle one could run.
        "task_acks_late": True,
        "worker_prefetch_multiplier": 1,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        # Workers are watched through the database; a busy one would answer no ping anyway.
        "worker_enable_remote_control": False,
        "worker_send_task_events": False,
    }


class Queue:
    """The sending end; connects on first use."""

    def __init__(self, settings: Settings) -> None:
        self._app = Celery("credence", set_as_current=False)
        self._app.conf.update(celery_options(settings))

    def send(self, job_id: str) -> None:
        """Wake a worker for a queued job.

        Raises:
            Unavailable: the job stays queued, and whoever sweeps `Jobs.queued_ids` sends it again.
        """
        try:
            self._app.send_task(RUN_JOB, args=[job_id], retry_policy=PUBLISH_RETRIES)
        except (OperationalError, OSError) as error:
            raise Unavailable("the broker does not take messages") from error

    def check(self) -> None:
        """Raise `Unavailable` when the broker cannot be reached."""
        try:
            with self._app.connection_for_write(connect_timeout=2) as connection:
                connection.ensure_connection(max_retries=1, interval_start=0.1)
        except (OperationalError, OSError) as error:
            raise Unavailable("the broker does not answer") from error

    def close(self) -> None:
        """Close the connections."""
        self._app.close()


def _transport_options(settings: Settings) -> dict[str, Any]:
    if not settings.resolved_broker_url.startswith("filesystem://"):
        return {
            "visibility_timeout": VISIBILITY_TIMEOUT_SECONDS,
            "socket_connect_timeout": 2,
            "socket_timeout": 10,
        }
    root = settings.data_dir / "queue"
    folders = {name: root / name for name in ("messages", "control", "processed")}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    return {
        "polling_interval": POLLING_SECONDS,
        "data_folder_in": str(folders["messages"]),
        "data_folder_out": str(folders["messages"]),
        "control_folder": str(folders["control"]),
        "processed_folder": str(folders["processed"]),
    }
