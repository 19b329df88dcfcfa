"""The queue: Celery messages with a job's id. Lost or repeated messages do no harm."""

import ssl
from pathlib import Path
from typing import Any

from celery import Celery
from kombu.exceptions import OperationalError

from core.exceptions import Unavailable
from core.settings import Settings

RUN_JOB = "credence.run_job"
QUEUE = "credence"

POLLING_SECONDS = 0.05  # for the folder; an idle worker uses 0.5 % of a core
CONNECT_TIMEOUT_SECONDS = 2
SILENCE_SECONDS = 10  # then a connection to Redis is checked, and closed if it is dead
REDIS = {
    # If Redis is away when a job ends, its acknowledgement fails and stays outstanding for ever:
    # the worker then fetches no more messages. So nothing is acknowledged: reading a message
    # removes it, and sweeps send lost ones again.
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
        "broker_connection_max_retries": None,  # a worker waits for its broker without limit
        "broker_connection_timeout": CONNECT_TIMEOUT_SECONDS,
        "task_default_queue": QUEUE,
        "task_queues": {QUEUE: {"exchange": "", "routing_key": QUEUE}},  # without bindings
        "task_ignore_result": True,
        "task_serializer": "json",
        "accept_content": ["json"],
        # A message is acknowledged after its job, and meanwhile no other is fetched: an idle worker
        # can then run the other job.
        "task_acks_late": True,
        "worker_prefetch_multiplier": 1,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        # The database shows which workers are live; a busy worker would not answer a ping.
        "worker_enable_remote_control": False,
        "worker_timer_precision": 0.25,  # a worker that stops waits this long for its timer
        "worker_send_task_events": False,
        "worker_hijack_root_logger": False,
    }


class Queue:
    """Sends messages. It connects on first use."""

    def __init__(self, settings: Settings) -> None:
        self._app = Celery("credence", set_as_current=False)
        self._app.conf.update(celery_options(settings))

    def send(self, job_id: str) -> None:
        """Wake a worker for a queued job.

        Raises:
            Unavailable: not sent. The job stays queued; a worker's sweep sends it later.
        """
        try:
            self._app.send_task(RUN_JOB, args=[job_id], retry_policy=RETRIES)
        except (OperationalError, OSError) as error:
            raise Unavailable("the broker takes no messages now") from error

    def check(self) -> None:
        """Raise `Unavailable` if the broker cannot be reached."""
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
    if not url.startswith("rediss://") or "ssl_cert_reqs" in url:
        return {}
    return {"broker_use_ssl": {"ssl_cert_reqs": ssl.CERT_REQUIRED}}


def _folders(root: Path) -> dict[str, Any]:
    """Options with three folders: for messages, for messages being written, and for control."""
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
