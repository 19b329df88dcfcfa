"""The engine: rows in slices, pauses in what cannot be cut, and memory that does not suffice."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from app.errors import status_of
from app.serving.batching import Computed, Entry
from app.serving.engine import Engine
from core.exceptions import Unavailable
from models.prediction.options import PredictOptions, ResolvedOptions
from models.prediction.pauses import Pause, go_on
from models.prediction.prediction import RowPrediction
from tests.app.serving.test_batching import Model, assert_equal, at, truth

OPTIONS: Any = {"samples": 10, "seed": 1, "sampler": "monte_carlo", "top": 10, "horizon": 1}
LARGE = 32
PATIENCE = 120.0


class Until:
    """Pauses until `may_end` holds."""

    def __init__(self, may_end: Callable[[], bool] = lambda: True) -> None:
        super().__init__()
        self.may_end = may_end

    def wait(self, pause: Pause) -> None:
        until = time.monotonic() + PATIENCE
        while not self.may_end():
            assert time.monotonic() < until, "nobody ran in the pauses"
            pause()


class Series(Until, Model):
    """A row takes long."""

    def predict_pausing(self, x: Tensor, options: PredictOptions, pause: Pause) -> RowPrediction:
        with torch.inference_mode():
            self.wait(pause)
        return super().predict_rows(x, options)


class Drawing(Until, Model):
    """A draw has the sum of a row, plus its number; draws take long."""

    def __init__(self, may_end: Callable[[], bool] = lambda: True) -> None:
        super().__init__(may_end)
        self.has_begun = threading.Event()

    def predict_rows(self, x: Tensor, options: PredictOptions) -> RowPrediction:
        assert not options.return_draws
        return super().predict_rows(x, options)

    def draws_of(self, x: Tensor, options: PredictOptions, pause: Pause = go_on) -> np.ndarray:
        self.has_begun.set()
        self.wait(pause)
        return x.sum(1).numpy() + np.arange(options.samples or 0)[:, None]


class Small(Model):
    """Notes whether its tensors would be good for gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.is_inference = False

    def predict_rows(self, x: Tensor, options: PredictOptions) -> RowPrediction:
        self.is_inference |= torch.is_inference_mode_enabled()
        return super().predict_rows(x, options)


class Device(Model):
    """It holds so many rows."""

    def __init__(self, most: int, error: type[Exception] = torch.OutOfMemoryError) -> None:
        super().__init__()
        self.most, self.error = most, error

    def predict_rows(self, x: Tensor, options: PredictOptions) -> RowPrediction:
        answer = super().predict_rows(x, options)
        if len(x) > self.most:
            raise self.error("CUDA out of memory. Tried to allocate 2.00 GiB")
        return answer

    @property
    def sizes(self) -> list[int]:
        return [rows for rows, _ in self.asked]


def rows_of(rows: int) -> Tensor:
    return torch.arange(2.0 * rows).reshape(rows, 2)


def asked(model: Any, rows: int, caller: str = "anna", **options: Any) -> Entry:
    """A request whose rows a `Series` computes together if there are many."""
    unit = None if rows == LARGE else 1
    resolved = ResolvedOptions(**OPTIONS | options)
    return Entry("a", model, rows_of(rows), resolved, unit=unit, caller=caller)


@pytest.fixture
def engine() -> Iterator[Engine]:
    """10 samples of a row take 10 ms, as it believes: 32 rows are large, and one is small."""
    engine = Engine(1, at(0.001))
    yield engine
    assert engine.close(PATIENCE)


def ask(engine: Engine, *entries: Callable[[], Entry]) -> list[Any]:
    """The results, or the errors, of requests that come in this order."""

    async def all_of() -> list[Any]:
        asking = (engine.compute(make()) for make in entries)
        return await asyncio.gather(*asking, return_exceptions=True)

    return asyncio.run(all_of())


def test_rows_are_sliced_and_draws_are_of_all_rows(engine: Engine) -> None:
    """Small requests of others are answered within the draws."""
    small = Small()
    large = Drawing(lambda: len(small.asked) > 0)

    async def both() -> Any:
        drawing = asyncio.create_task(engine.compute(asked(large, 33, return_draws=True)))
        assert await asyncio.to_thread(large.has_begun.wait, PATIENCE)
        await engine.compute(asked(small, 1, "ben"))
        return await drawing

    found, x, options = asyncio.run(both()).prediction, rows_of(33), ResolvedOptions(**OPTIONS)
    np.testing.assert_array_equal(found.mean, truth(x, options).mean)
    np.testing.assert_array_equal(found.draws, large.draws_of(x, options))
    sizes = [rows for rows, _ in large.asked]
    assert sum(sizes) == 33
    assert len(sizes) > 1


@pytest.mark.parametrize("caller", ["anna", "ben"])
def test_small_requests_are_answered_within_a_large_one(engine: Engine, caller: str) -> None:
    small = Small()
    large = Series(lambda: len(small.asked) > 0)
    one, other = ask(engine, lambda: asked(large, LARGE, "anna"), lambda: asked(small, 1, caller))
    options = ResolvedOptions(**OPTIONS)
    assert_equal(one.prediction, truth(rows_of(LARGE), options))
    assert_equal(other.prediction, truth(rows_of(1), options))
    assert not small.is_inference
    assert min(one.queue_seconds, one.compute_seconds) >= 0, "no second counts twice"


def test_a_large_one_waits_for_the_end(engine: Engine) -> None:
    first_ends, small = threading.Event(), Small()
    first = Series(lambda: len(small.asked) > 0)
    second = Series(first_ends.is_set)
    order = list[str]()

    async def run(name: str, entry: Entry) -> None:
        await engine.compute(entry)
        order.append(name)
        first_ends.set()

    async def both() -> None:
        entries = {
            "first": asked(first, LARGE, "anna"),
            "second": asked(second, LARGE, "ben"),
            "small": asked(small, 1, "carl"),
        }
        await asyncio.gather(*(run(*named) for named in entries.items()))

    asyncio.run(both())
    assert order.index("small") < order.index("second")
    assert order.index("first") < order.index("second")


@pytest.mark.parametrize("error", [torch.OutOfMemoryError, MemoryError])
def test_half_of_the_rows_are_tried_for_a_whole(engine: Engine, error: type[Exception]) -> None:
    model = Device(5, error)
    (answer,) = ask(engine, lambda: asked(model, 8))
    assert isinstance(answer, Computed)
    assert answer.prediction.num_rows == 8
    assert model.sizes == [8, 4, 4]


def test_what_half_of_the_memory_cannot_hold_is_a_503_that_says_so(engine: Engine) -> None:
    model = Device(1)
    (answer,) = ask(engine, lambda: asked(model, 8))
    assert isinstance(answer, Unavailable)
    assert status_of(answer) == 503
    assert "out of memory at 4 rows × 10 samples: send fewer rows" in str(answer)
    assert model.sizes == [8, 4], "once, not down to a row"
    assert answer.__context__ is None, "it would hold the frames, and they the tensors"
    assert isinstance(ask(engine, lambda: asked(model, 1))[0], Computed), "the engine goes on"


def test_a_batch_falls_apart_first(engine: Engine) -> None:
    """Small requests beside each other are too much together, and not alone."""
    model = Device(5)
    answers = ask(engine, *[lambda: asked(model, 3)] * 3)
    assert max(model.sizes) > 5
    assert all(isinstance(answer, Computed) for answer in answers)
