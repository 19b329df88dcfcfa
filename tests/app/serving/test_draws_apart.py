"""Requests with draws: their rows are sliced as others' are, and the draws come last."""

import asyncio
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from app.serving.batching import Computed, Entry
from app.serving.engine import Engine
from models.prediction.options import PredictOptions, ResolvedOptions
from models.prediction.pauses import Pause, go_on
from models.prediction.prediction import RowPrediction
from tests.app.serving.test_batching import Model, at, truth

OPTIONS: dict[str, Any] = {
    "seed": 1,
    "sampler": "monte_carlo",
    "top": 10,
    "horizon": 1,
    "samples": 10,
}
ROWS = 32


class Drawing(Model):
    """Answers by `truth`; a draw has the sum of a row, plus its number."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[int] = []

    def predict_rows(self, x: Tensor, options: PredictOptions) -> RowPrediction:
        assert not options.return_draws
        return super().predict_rows(x, options)

    def draws_of(self, x: Tensor, options: PredictOptions, pause: Pause = go_on) -> np.ndarray:
        pause()
        self.drawn.append(len(x))
        return x.sum(1).numpy() + np.arange(options.samples or 0)[:, None]


def rows_of(rows: int) -> Tensor:
    return torch.arange(2.0 * rows).reshape(rows, 2)


def asked(model: Any, rows: int = ROWS, caller: str = "anna", **options: Any) -> Entry:
    resolved = ResolvedOptions(**OPTIONS | options)
    return Entry("a", model, rows_of(rows), resolved, caller=caller)


@pytest.fixture
def engine() -> Iterator[Engine]:
    """10 samples of a row take 10 ms, as it believes: a slice has some ten rows."""
    engine = Engine(1, at(0.001))
    yield engine
    assert engine.close(120.0)


def test_rows_are_sliced_and_draws_are_of_all_rows(engine: Engine) -> None:
    model = Drawing()

    async def ask() -> Computed:
        return await engine.compute(asked(model, return_draws=True))

    found = asyncio.run(ask()).prediction
    x, options = rows_of(ROWS), ResolvedOptions(**OPTIONS)
    np.testing.assert_array_equal(found.mean, truth(x, options).mean)
    np.testing.assert_array_equal(found.draws, model.draws_of(x, options))
    sizes = [rows for rows, _ in model.asked]
    assert sum(sizes) == ROWS
    assert len(sizes) > 1
    assert model.drawn == [ROWS, ROWS]  # once by the engine, once here
