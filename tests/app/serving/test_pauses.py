"""What cannot be cut pauses, and small requests of anybody run in between."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from app.serving.batching import Entry
from app.serving.engine import Engine
from models.prediction.options import PredictOptions, ResolvedOptions
from models.prediction.pauses import go_on
from models.prediction.prediction import RowPrediction
from tests.app.serving.test_batching import Model, assert_equal, at, truth
from tests.app.serving.test_draws_apart import OPTIONS, Drawing, rows_of

LARGE = 32
PATIENCE = 120.0


class Series(Model):
    """A row takes long. It pauses until `may_end` holds."""

    def __init__(self, may_end: Callable[[], bool]) -> None:
        super().__init__()
        self.may_end = may_end

    def predict_pausing(
        self, x: Tensor, options: PredictOptions, pause: Callable[[], None]
    ) -> RowPrediction:
        until = time.monotonic() + PATIENCE
        with torch.inference_mode():
            while not self.may_end():
                assert time.monotonic() < until, "nobody ran in the pauses"
                pause()
        return super().predict_rows(x, options)


class Drawn(Drawing):
    """Its draws take long: they pause until `may_end` holds."""

    def __init__(self, may_end: Callable[[], bool]) -> None:
        super().__init__()
        self.may_end, self.has_begun = may_end, threading.Event()

    def draws_of(
        self, x: Tensor, options: PredictOptions, pause: Callable[[], None] = go_on
    ) -> np.ndarray:
        self.has_begun.set()
        until = time.monotonic() + PATIENCE
        while not self.may_end():
            assert time.monotonic() < until, "nobody ran in the pauses"
            pause()
        return super().draws_of(x, options)


class Small(Model):
    """Notes whether its tensors would be good for gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.is_inference = False

    def predict_rows(self, x: Tensor, options: PredictOptions) -> RowPrediction:
        self.is_inference |= torch.is_inference_mode_enabled()
        return super().predict_rows(x, options)


def asked(model: Any, rows: int, caller: str) -> Entry:
    """A request whose rows are computed together if there are many."""
    unit = None if rows == LARGE else 1
    options = ResolvedOptions(**OPTIONS)
    return Entry("a", model, rows_of(rows), options, unit=unit, caller=caller)


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


def test_small_requests_are_answered_within_draws(engine: Engine) -> None:
    small = Small()
    large = Drawn(lambda: len(small.asked) > 0)
    options = ResolvedOptions(**OPTIONS, return_draws=True)

    async def both() -> Any:
        entry = Entry("a", large, rows_of(LARGE), options, caller="anna")
        drawing = asyncio.create_task(engine.compute(entry))
        assert await asyncio.to_thread(large.has_begun.wait, PATIENCE)
        await engine.compute(asked(small, 1, "ben"))
        return await drawing

    found = asyncio.run(both()).prediction
    np.testing.assert_array_equal(found.draws, large.draws_of(rows_of(LARGE), options))


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
