"""What is attacked: a real server process with trained models, and the names of what it has."""

import random
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.credence.running import Service, serving
from tests.fuzz.bombs import Bomb
from tests.fuzz.mutations import mutated, requests
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


def explode(target: Target, bomb: Bomb) -> tuple[int, int]:
    """By how many bytes the server has grown at most, and the status."""
    body = bomb.body()
    target.forget_peak()
    before = target.process.memory_info().rss
    try:
        answer = httpx.post(
            f"{target.url}{bomb.path}", content=body, headers=bomb.headers, timeout=PATIENCE
        )
    except httpx.HTTPError as error:
        error.add_note(f"bomb {bomb.name}")
        raise
    check(answer, f"bomb {bomb.name}")
    return target.peak_bytes() - before, answer.status_code


def sent_mutated(target: Target, seed: int) -> Counter[int]:
    """Every valid request, damaged by this seed, and the statuses of the answers."""
    statuses: Counter[int] = Counter()
    with httpx.Client(base_url=target.url, timeout=PATIENCE) as client:
        for number, valid in enumerate(requests()):
            body = mutated(valid.body, random.Random(f"{seed}/{number}"))
            answer = client.post(valid.path, content=body, headers=valid.headers)
            check(answer, f"seed {seed}, request {number}: {valid.path} {valid.headers} {body!r}")
            target.learn(answer.text if len(answer.content) < 2**20 else "")
            statuses[answer.status_code] += 1
    return statuses


def check(answer: httpx.Response, what: str) -> None:
    """Done, or a problem that says what is wrong; 503 only with the time to come back."""
    status = answer.status_code
    is_polite = status == 503 and "retry-after" in answer.headers
    assert status < 500 or is_polite, f"{status} to {what[:2000]}: {answer.text[:500]}"
    if status >= 400:
        assert answer.headers["content-type"] == "application/problem+json", what[:2000]
        assert answer.json()["status"] == status, what[:2000]
        assert "Traceback" not in answer.text, what[:2000]
