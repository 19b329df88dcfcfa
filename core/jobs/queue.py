"""The queue: Celery messages that carry a job's id. A lost or doubled message does no harm."""

import ssl
from pathlib import Path
from typing import Any

from celery import Celery
from kombu.exceptions import OperationalError

from core.exceptions import Unavailable
from core.settings import Settings

RUN_JOB = "credence.run_job"
QUEUE = "credence"

POLLING_SECONDS = 0.05  # of the folder; an idle worker then takes half a percent of a core
CONNECT_TIMEOUT_SECONDS = 2
SILENCE_SECONDS = 10  # after which a connection to Redis is tried, and given up if it is dead
REDIS = {
    # An acknowledgement that fails, because Redis is away when a job ends, counts as outstanding
    # for ever, and the worker fetches no more messages. So nothing is acknowledged: a message is
    # gone when it is read, and sweeps send lost ones again.
    "ack_emulation": False,
    "socket_connect_timeout": CONNECT_TIMEOUT_SECONDS,
    "socket_timeout": SILENCE_SECONDS,
    "socket_keepalive": True,
    "health_check_interval": SILENCE_SECONDS,
    "retry_on_timeout": True,
}
RETRIES = {"max_retries": 1, "interval_start": 0.1, "interval_step": 0.0, "interval_max": 0.1}


def celery_options(settings: Settings) -> dict[str, Any]:
    """The Celery configuration that sender and worker share."""
    return _broker(settings) | {
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,  # a worker waits for its broker, however long
        "broker_connection_timeout": CONNECT_TIMEOUT_SECONDS,
        "task_default_queue": QUEUE,
        "task_queues": {QUEUE: {"exchange": "", "routing_key": QUEUE}},  # no bindings to keep
        "task_ignore_result": True,
        "task_serializer": "json",
        "accept_content": ["json"],
        # A message is acknowledged after its job, and none is fetched meanwhile: a busy worker
        # must not sit on the wake-up of a job that an idle one could run.
        "task_acks_late": True,
        "worker_prefetch_multiplier": 1,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        # Workers are watched through the database; a busy one would answer no ping anyway.
        "worker_enable_remote_control": False,
        "worker_timer_precision": 0.25,  # a worker that stops waits so long for its timer
        "worker_send_task_events": False,
        "worker_hijack_root_logger": False,
    }


class Queue:
    """Sends messages; connects on first use."""

    def __init__(self, settings: Settings) -> None:
        self._app = Celery("credence", set_as_current=False)
        self._app.conf.update(celery_options(settings))

    def send(self, job_id: str) -> None:
        """Wake a worker for a queued job.

        Raises:
            Unavailable: not sent. The job stays queued, and a worker's sweep sends it again.
        """
        try:
            self._app.send_task(RUN_JOB, args=[job_id], retry_policy=RETRIES)
        except (OperationalError, OSError) as error:
            raise Unavailable("the broker takes no messages now") from error

    def check(self) -> None:
        """Raise `Unavailable` when the broker cannot be reached."""
        try:
            with self._app.connection_for_write() as connection:
                connection.ensure_connection(**RETRIES)
                connection.default_channel.queue_declare(QUEUE)  # counts the messages
        except (OperationalError, OSError) as error:
            raise Unavailable("the broker does not answer") from error

    def close(self) -> None:
        """Close the connections."""
        self._app.close()


def _broker(settings: Settings) -> dict[str, Any]:
    url = settings.resolved_broker_url
    if url.startswith("filesystem://"):
        return {
            "broker_url": url,
            "broker_transport": "core.jobs.filesystem_broker:Transport",
            "broker_transport_options": _folders(settings.data_dir / "queue"),
        }
    return {"broker_url": url, "broker_transport_options": REDIS} | _verified(url)


def _verified(url: str) -> dict[str, Any]:
    """Options that verify the certificate of a TLS server, unless the URL has its own.

    Without them kombu would send the password to any server.
    """
    is_silent = url.startswith("rediss://") and "ssl_cert_reqs" not in url
    return {"broker_use_ssl": {"ssl_cert_reqs": ssl.CERT_REQUIRED}} if is_silent else {}


def _folders(root: Path) -> dict[str, Any]:
    """Options for folders: one for messages, one on the same disk for messages being written."""
    messages, between, control = (root / name for name in ("messages", "between", "control"))
    for folder in (messages, between, control):
        folder.mkdir(parents=True, exist_ok=True)
    return {
        "polling_interval": POLLING_SECONDS,
        "data_folder_in": str(messages),
        "data_folder_out": str(messages),
        "processed_folder": str(between),
        "control_folder": str(control),
    }
