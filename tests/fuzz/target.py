"""What is attacked: a real server process with trained models, and the names of what it has."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.credence.running import Service, serving
from tests.waiting import PATIENCE

MODELS = ("price", "tree", "sales", "lines")
FINDABLE = re.compile(r"(ds|job|pred|fb)_[0-9a-f]{8,}")


ROWS: dict[str, Any] = {
    "price": [[1.0, "oak", True, "2026-01-05"], [None, None, None, None]],
    "tree": {"x": [0.5], "y": [-0.5], "image": [[[0.5, 0.0], [0.0, 1.0]]]},
    "sales": {"quarter": [f"{2010 + i // 4}-{3 * (i % 4) + 1:02d}" for i in range(20)]}
    | {"sales": [50.0 + i for i in range(20)]},
    "lines": ["a b c", ""],
}
INLINE = {"columns": {"x": [1.0, 2.0, 3.5, 4.0] * 5, "y": [2.0, 4.5, 7.0, 8.0] * 5}}
TENSOR = {"name": "x", "shape": [1, 1], "datatype": "FP64", "data": [0.5]}


@dataclass
class Target:
    """A running service, and ids that its answers have named, by their prefix."""

    service: Service
    ids: dict[str, set[str]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.service.url

    @property
    def process(self) -> psutil.Process:
        return psutil.Process(self.service.process.pid)

    def learn(self, text: str) -> None:
        """Keep the ids in an answer, for requests to come; a few hundred are enough."""
        for found in FINDABLE.finditer(text):
            known = self.ids.setdefault(found[1], set())
            if len(known) < 200:
                known.add(found[0])

    def names(self, parameter: str) -> list[Any]:
        """What a parameter of this name may mean here."""
        kinds = {"dataset_id": "ds", "dataset": "ds", "job_id": "job", "parent": "job"}
        if parameter in kinds:
            return sorted(self.ids.get(kinds[parameter], ()))
        return {
            "name": list(MODELS),
            "model": list(MODELS),
            "version": ["1", "champion"],
            "alias": ["champion", "other"],
            "prediction": sorted(self.ids.get("pred", ())),
        }.get(parameter, [])

    def meant(self, path: str) -> list[dict[str, Any]]:
        """Members that make the body of a route one that may be taken."""
        if path in ("/predict", "/feedback"):
            return [{"model": model, "inputs": rows} for model, rows in ROWS.items()]
        if path in ("/train", "/compare"):
            return [{"model": "new", "target": "y", "data": INLINE}]
        return [{"inputs": [TENSOR, TENSOR | {"name": "y"}]}] if path.startswith("/v2") else []

    def peak_bytes(self) -> int:
        """The most memory that the server has held since `forget_peak`."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return 1024 * int(status.partition("VmHWM:")[2].split()[0])

    def forget_peak(self) -> None:
        """Linux' own counter starts again from what is held now."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def is_well(self) -> bool:
        """A prediction is right: equal to every other answer to the same question."""
        body = {"model": "price", "inputs": [[1.0, "oak", True, None]], "samples": 100, "seed": 1}
        answer = httpx.post(f"{self.url}/predict", json=body, timeout=PATIENCE)
        return answer.status_code == 200 and answer.json()["samples"] == 100


@contextmanager
def attacked(
    trained: Path, directory: Path, command: str = "api", **settings: str
) -> Iterator[Target]:
    """A server of its own on a copy of the trained models."""
    shutil.copytree(trained, directory / "data", dirs_exist_ok=True)
    with serving(directory, command, CREDENCE_LOG_LEVEL="warning", **settings) as service:
        target = Target(service)
        for path in ("/datasets", "/jobs"):
            target.learn(httpx.get(f"{service.url}{path}", timeout=PATIENCE).text)
        yield target
