"""Clients of a service in trouble: every answer is right, or a refusal that says when to come back.

No answer at all is forgiven only if the API was away at some time between question and answer.
"""

import itertools
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.chaos.world import Replica, World

ROWS = {"inputs": [{"x": -0.5}, {"x": 0.25}], "seed": 1, "samples": 10}
TINY = {
    "target": "y",
    "network": {"hidden": [4]},
    "pruning": [],
    "training": {"epochs": 3, "batch_size": 64, "learning_rate": 0.01, "fine_tune_epochs": 1},
}
REFUSALS = {429, 503}
PATIENCE_SECONDS = 120  # then an answer counts as missing: a machine may be busy


@dataclass
class Traffic:
    """Asks the replicas in turn, remembers, judges."""

    world: World
    wrong: list[str] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)  # 0: no answer
    predicted: int = 0

    def __post_init__(self) -> None:
        self._turns = itertools.cycle(self.world.replicas)

    def ask(
        self, method: str, path: str, replica: Replica | None = None, **options: Any
    ) -> httpx.Response | None:
        """The answer, judged; None without one."""
        replica = replica or next(self._turns)
        life, alive = replica.life, replica.pid is not None
        try:
            answer = self.world.http.request(
                method, replica.url + path, timeout=PATIENCE_SECONDS, **options
            )
        except httpx.TransportError as error:
            self.statuses[0] += 1
            if alive and life == replica.life == replica.loaded_in:
                self.wrong.append(f"{method} {path}: {error!r} from an API that lives")
            return None
        self.statuses[answer.status_code] += 1
        polite = answer.status_code in REFUSALS and "retry-after" in answer.headers
        if answer.status_code >= 500 and not polite:
            self.wrong.append(f"{method} {path}: {answer.status_code} {answer.text[:300]}")
        return answer

    def submit(self, seed: int) -> None:
        training = {**TINY["training"], "seed": seed, "epochs": 3 + seed % 40}  # type: ignore[dict-item]
        body = {**TINY, "training": training, "model": f"m{seed % 3}"}
        self._accept("/train", {**body, "dataset": self.world.dataset})

    def submit_with_data(self, seed: int) -> None:
        """Rows within the request: a data set of its own, which may be deleted."""
        columns = {"x": [i / 40 for i in range(40)], "y": [seed + i / 7 for i in range(40)]}
        self._accept("/train", {**TINY, "model": "inline", "data": {"columns": columns}})

    def submit_batch(self, seed: int) -> None:
        body = {"model": "steady", "dataset": self.world.dataset, "samples": 10, "seed": seed}
        self._accept("/predict/batch", {**body, "chunk_rows": 60})

    def delete_data(self, index: int) -> None:
        """A data set that came with a request; refused while a job uses it."""
        others = [one["id"] for one in self._datasets() if one["name"].startswith("inline")]
        if others:
            self.ask("DELETE", f"/datasets/{others[index % len(others)]}")

    def refresh(self) -> None:
        """Read the newest data set of the source again."""
        read = [one["id"] for one in self._datasets() if one["name"] == "lake"]
        if read:
            self.ask("POST", f"/datasets/{read[0]}/refresh")

    def predict(self) -> None:
        """A loaded model answers whatever else is away, and always the same."""
        replica = next(self._turns)
        life = replica.life
        answer = self.ask("POST", "/predict", replica, json={"model": "steady", **ROWS})
        if answer is None:
            return
        if answer.status_code == 200:
            self.predicted += 1
            replica.loaded_in = life
            mean = answer.json()["mean"]
            self.world.mean = self.world.mean or mean
            if mean != self.world.mean:
                self.wrong.append(f"predicted {mean}, and before {self.world.mean}")
        elif replica.loaded_in == life == replica.life or answer.status_code not in REFUSALS:
            self.wrong.append(f"prediction refused: {answer.status_code} {answer.text[:300]}")

    def _datasets(self) -> list[dict[str, Any]]:
        answer = self.ask("GET", "/datasets?limit=100")
        return answer.json()["data"] if answer is not None and answer.status_code == 200 else []

    def _accept(self, path: str, body: dict[str, Any]) -> None:
        answer = self.ask("POST", path, json=body)
        if answer is not None and answer.status_code == 202:
            self.accepted.append(answer.json()["id"])
        elif answer is not None and answer.status_code not in REFUSALS:
            self.wrong.append(f"{path} refused: {answer.status_code} {answer.text[:300]}")


class Predicting:
    """A client that asks for predictions all the time, in a thread."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic, self._done = traffic, threading.Event()
        self._thread = threading.Thread(target=self._run, name="predicting")

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._done.wait(0.1):
            self._traffic.predict()
