"""Each whole path once, with real processes: what a user starts, trains, asks and stops."""

import csv
import io
import signal
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.credence.running import CREDENCE, credence, environment, serving
from tests.waiting import PATIENCE, wait_until

LINE = {"x": [i / 50 - 1 for i in range(100)], "y": [3 * (i / 50 - 1) for i in range(100)]}
REQUEST = {
    "model": "line",
    "target": "y",
    "network": {"hidden": [8]},
    "training": {"epochs": 40, "learning_rate": 0.03},
    "pruning": [0.5],
    "alias": "champion",
}


def finished(http: httpx.Client, job: str) -> dict[str, Any]:
    """The job once it has ended well."""

    def ended() -> bool:
        status = http.get(f"/jobs/{job}").json()["status"]
        assert status not in ("failed", "cancelled"), http.get(f"/jobs/{job}").json()["error"]
        return bool(status == "succeeded")

    wait_until(ended)
    found: dict[str, Any] = http.get(f"/jobs/{job}").json()
    return found


def test_one_command_serves_trains_predicts_and_stops(tmp_path: Path) -> None:
    with serving(tmp_path) as service, httpx.Client(base_url=service.url, timeout=120) as http:
        sent = http.post("/train", json=REQUEST | {"data": {"columns": LINE}})
        assert sent.status_code == 202
        job = finished(http, sent.json()["id"])
        assert (job["model"], job["version"]) == ("line", 1)

        question = {"model": "line", "version": "champion", "inputs": [{"x": 0.5}], "samples": 50}
        answers = [http.post("/predict", json=question | {"seed": 7}).json() for _ in range(2)]
        for answer in answers:
            variance = answer["variance"]
            assert answer["mean"][0] == pytest.approx(1.5, abs=0.5)
            parts = variance["aleatoric"][0] + variance["epistemic"][0]
            assert variance["total"][0] == pytest.approx(parts)
            for interval in answer["intervals"]:
                assert interval["lower"][0] < answer["mean"][0] < interval["upper"][0]
        assert answers[0]["mean"] == answers[1]["mean"]
        assert 'credence_jobs{status="succeeded"} 1' in http.get("/metrics").text

        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(PATIENCE) == 0


def test_the_parts_run_apart_and_commands_use_them(tmp_path: Path) -> None:
    table = tmp_path / "line.csv"
    rows = zip(*LINE.values(), strict=True)
    table.write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in rows))
    with serving(tmp_path, "api") as api:
        worker = subprocess.Popen(
            [*CREDENCE, "worker"], env=environment(CREDENCE_DATA_DIR=str(tmp_path / "data"))
        )
        try:
            options = ("--epochs", "5")
            trained = credence("train", str(table), "--target", "y", *options, url=api.url)
            assert trained.returncode == 0, trained.stderr
            done = credence("predict", "line", str(table), url=api.url)
            assert done.returncode == 0, done.stderr
            answers = list(csv.DictReader(io.StringIO(done.stdout)))
            assert len(answers) == 100
            assert {"mean", "epistemic_variance", "lower_0.9"} <= set(answers[0])
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(PATIENCE) == 0
        finally:
            worker.kill()
            worker.wait()
