"""What a start must not wait for."""

import subprocess
import sys

import pytest

PRINT_LOADED = "import sys, {}; print(*sys.modules)"
LATER = {"boto3", "pandas", "sklearn", "scipy", "statsforecast", "numba", "torch._dynamo"}
HEAVY = {"torch", "fastapi", "uvicorn", "pyarrow", "celery", "alembic"}
EARLY = (
    "app.access.bind_address, core.settings, credence.cli, credence.serving.listener, "
    "credence.serving.worker_process"
)


def loaded(modules: str) -> set[str]:
    """What a new process has loaded once it has imported these."""
    command = [sys.executable, "-c", PRINT_LOADED.format(modules)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("process", ["credence.serving.supervisor", "worker.main"])
def test_libraries_that_few_requests_need_are_loaded_later(process: str) -> None:
    assert not loaded(process) & LATER


def test_the_worker_is_started_before_the_api_loads_its_libraries() -> None:
    assert not loaded(EARLY) & HEAVY
