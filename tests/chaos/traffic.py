"""Clients of a service in trouble: every answer is right, or a refusal that says when to come back.

No answer at all is forgiven only if the API was away at some time between question and answer.
"""

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.chaos.world import World

ROWS = {"inputs": [{"x": -0.5}, {"x": 0.25}], "seed": 1, "samples": 10}
TINY = {
    "target": "y",
    "network": {"hidden": [8]},
    "pruning": [],
    "training": {"epochs": 3, "batch_size": 64, "learning_rate": 0.01, "fine_tune_epochs": 1},
}
REFUSALS = {429, 503}


@dataclass
class Traffic:
    """Asks, remembers, judges."""

    world: World
    wrong: list[str] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)  # 0: no answer
    predicted: int = 0
    epoch: int = 0  # grows when the API is killed
    _loaded_in: int = -1  # the API's life in which `steady` has been answered
    _mean: list[float] | None = None

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response | None:
        """The answer, judged; None without one."""
        epoch, alive = self.epoch, self.world.api is not None
        try:
            answer = httpx.request(method, self.world.url + path, timeout=30, **options)
        except httpx.TransportError as error:
            self.statuses[0] += 1
            if alive and epoch == self.epoch and self._has_started():
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
        answer = self.ask("GET", "/datasets?limit=100")
        if answer is not None and answer.status_code == 200:
            others = [d["id"] for d in answer.json()["data"] if d["id"] != self.world.dataset]
            if others:
                self.ask("DELETE", f"/datasets/{others[index % len(others)]}")

    def predict(self) -> None:
        """A loaded model answers whatever else is away, and always the same."""
        epoch = self.epoch
        answer = self.ask("POST", "/predict", json={"model": "steady", **ROWS})
        if answer is None:
            return
        if answer.status_code == 200:
            self.predicted += 1
            self._loaded_in = epoch
            mean = answer.json()["mean"]
            self._mean = self._mean or mean
            if mean != self._mean:
                self.wrong.append(f"predicted {mean}, and before {self._mean}")
        elif self._loaded_in == epoch == self.epoch or answer.status_code not in REFUSALS:
            self.wrong.append(f"prediction refused: {answer.status_code} {answer.text[:300]}")

    def _accept(self, path: str, body: dict[str, Any]) -> None:
        answer = self.ask("POST", path, json=body)
        if answer is not None and answer.status_code == 202:
            self.accepted.append(answer.json()["id"])
        elif answer is not None and answer.status_code not in REFUSALS:
            self.wrong.append(f"{path} refused: {answer.status_code} {answer.text[:300]}")

    def _has_started(self) -> bool:
        """Whether this life of the API has answered anything yet."""
        return self._loaded_in == self.epoch


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
        while not self._done.wait(0.05):
            self._traffic.predict()
            time.sleep(0)
