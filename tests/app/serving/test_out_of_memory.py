"""A prediction that needs too much memory is tried with half of its rows, then refused by name."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor

from app.errors import status_of
from app.serving.batching import Computed, Entry
from app.serving.engine import Engine
from app.serving.throughput import Throughput
from core.exceptions import Unavailable
from models.prediction.options import PredictOptions, ResolvedOptions
from models.prediction.prediction import RowPrediction
from tests.app.serving.test_batching import truth

OPTIONS = {"samples": 10, "seed": 1, "sampler": "monte_carlo", "top": 10, "horizon": 1}


@dataclass
class Small:
    """A device that holds so many rows, and answers by `truth`."""

    most: int
    error: type[Exception] = torch.OutOfMemoryError
    asked: list[int] = field(default_factory=list)

    def predict_rows(self, x: Tensor, options: PredictOptions) -> RowPrediction:
        self.asked.append(len(x))
        if len(x) > self.most:
            raise self.error("CUDA out of memory. Tried to allocate 2.00 GiB")
        return truth(x, options)


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine(1, Throughput())
    yield engine
    assert engine.close(120.0)


def ask(engine: Engine, model: Small, *sizes: int, **options: Any) -> list[Computed | Exception]:
    """The answers to requests of these numbers of rows, which come at once."""

    async def gathered() -> list[Computed | BaseException]:
        asked = ResolvedOptions(**OPTIONS | options)
        entries = [Entry("a", model, torch.ones(size, 3), asked) for size in sizes]
        waiting = [engine.compute(entry) for entry in entries]
        return await asyncio.gather(*waiting, return_exceptions=True)

    return asyncio.run(gathered())  # type: ignore[arg-type]


@pytest.mark.parametrize("error", [torch.OutOfMemoryError, MemoryError])
def test_half_of_the_rows_are_tried_for_a_whole(engine: Engine, error: type[Exception]) -> None:
    model = Small(5, error)
    (answer,) = ask(engine, model, 8)
    assert isinstance(answer, Computed)
    assert answer.prediction.num_rows == 8
    assert model.asked == [8, 4, 4]


def test_what_half_of_the_memory_cannot_hold_is_a_503_that_says_so(engine: Engine) -> None:
    model = Small(1)
    (answer,) = ask(engine, model, 8)
    assert isinstance(answer, Unavailable)
    assert status_of(answer) == 503
    assert "out of memory at 4 rows × 10 samples: send fewer rows" in str(answer)
    assert model.asked == [8, 4], "once, not down to a row"
    assert answer.__context__ is None, "it would hold the frames, and they the tensors"
    assert isinstance(ask(engine, model, 1)[0], Computed), "the engine goes on"


def test_a_batch_falls_apart_first(engine: Engine) -> None:
    """Small requests beside each other are too much together, and not alone."""
    model = Small(5)
    answers = ask(engine, model, 3, 3, 3)
    assert all(isinstance(answer, Computed) for answer in answers)
