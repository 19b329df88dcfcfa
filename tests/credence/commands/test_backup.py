"""A service under training, backed up, killed, restored elsewhere."""

from pathlib import Path

import httpx
import psutil
import pytest

from core.access.keys import Keys, Scope
from core.database.database import Database
from core.settings import load_settings
from credence.client import Client
from credence.exceptions import CredenceAPIError
from tests.credence.conftest import TINY
from tests.credence.running import credence, serving
from tests.credence.serving.test_serve import start_long_job
from tests.fixtures.test_releases import assert_close
from tests.waiting import PATIENCE, wait_until

ROWS = [{"x0": 0.25, "x1": -1.5, "kind": "odd"}, {"x0": None, "x1": 2.0, "kind": "even"}]


@pytest.mark.slow
def test_a_killed_service_lives_on_in_its_backup(tmp_path: Path, table: Path) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    data, again = (tmp_path / name / "data" for name in ("first", "second"))
    question = {"model": "small", "inputs": ROWS, "samples": 64, "seed": 7, "return_draws": True}
    with serving(tmp_path / "first", CREDENCE_CHECKPOINT_SECONDS="1") as service:
        with Client(service.url) as client:
            dataset = client.upload(table)["id"]
            request = {"model": "small", "dataset": dataset, "target": "y", "alias": "champion"}
            trained = client.wait(client.submit_train(request | TINY)["id"])
            assert trained["status"] == "succeeded", trained["error"]
            before = client.submit_predict(question)
            job = start_long_job(client, table)
        checkpoints = data / "artifacts" / "checkpoints" / job
        wait_until(lambda: list(checkpoints.glob("*")))
        database = Database(load_settings(data_dir=data).sqlalchemy_url)
        _, key = Keys(database).create("me", Scope.ADMIN)
        database.dispose()
        done = credence("backup", str(tmp_path / "all.tar"), "--data-dir", str(data))
        assert done.returncode == 0, done.stderr
        family = service.family()
        for process in family:
            process.kill()
        psutil.wait_procs(family, timeout=PATIENCE)

    done = credence("restore", str(tmp_path / "all.tar"), "--data-dir", str(again))
    assert done.returncode == 0, done.stderr

    with serving(tmp_path / "second") as service, Client(service.url, key=key) as client:
        with (
            Client(service.url, key="cred_another") as stranger,
            pytest.raises(CredenceAPIError, match="Unauthorized"),
        ):
            stranger.submit_predict(question)
        after = client.submit_predict(question)
        # torch answers until the loops are compiled, which round otherwise.
        assert_close({**after, "timings_ms": None}, {**before, "timings_ms": None}, "", 1e-4)
        assert client.version("small", "champion")["version"] == 1
        authorization = {"Authorization": f"Bearer {key}"}

        def told(name: str) -> list[str]:
            url = f"{service.url}/jobs/{job}/events?limit=1000"
            events = httpx.get(url, headers=authorization, timeout=120).json()["data"]
            return [event[name] for event in events if name in event]

        wait_until(lambda: "continues from a checkpoint" in told("message"))
        assert told("reason") == ["restored from a backup"]
        assert client.job(job)["attempt"] == 2
