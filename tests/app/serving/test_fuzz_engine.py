"""Requests come, go away, fail and time out in any order: each gets its own answer or failure."""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any

import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from torch import Tensor

from app.serving.batching import Computed, Entry
from app.serving.engine import Engine
from app.serving.throughput import Throughput
from models.prediction.options import PredictOptions
from models.prediction.prediction import RowPrediction
from tests.app.serving.test_batching import assert_equal, truth

POISON = -1.0  # a row that no model can compute


class _PoisonedError(Exception):
    """What a model says of such a row."""


class _Model:
    """Answers by `truth`; fails if any row of a batch is poisoned."""

    def predict_rows(self, x: Tensor, options: PredictOptions) -> RowPrediction:
        if (x == POISON).any():
            raise _PoisonedError
        return truth(x, options)


class Engines(RuleBasedStateMachine):
    """A real engine with its thread, a real loop, and what was promised to each request."""

    @initialize()
    def start(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.engine = Engine(1, Throughput())
        self.model = _Model()
        self.waiting: dict[asyncio.Task[Computed], tuple[Entry, Tensor, bool]] = {}
        self.answered = 0

    @rule(
        rows=st.integers(1, 4),
        start=st.integers(0, 1000),
        samples=st.sampled_from([10, 100]),
        seed=st.integers(0, 2),
        prune=st.sampled_from([0.0, 0.5]),
        intervals=st.sampled_from([(0.9,), (0.5, 0.9), ()]),
        poisoned=st.sampled_from([False, False, False, True]),
        is_late=st.sampled_from([False, False, False, True]),
    )
    def ask(self, *, rows: int, start: int, poisoned: bool, is_late: bool, **options: Any) -> None:
        x = start + torch.arange(2.0 * rows).reshape(rows, 2)
        if poisoned:
            x[-1, -1] = POISON
        chosen = PredictOptions(sampler="monte_carlo", **options)
        task = self.loop.create_task(self._ask(x, chosen, is_late))
        self._run(asyncio.sleep(0))
        self.waiting[task] = (self._last, x, poisoned)

    @rule(which=st.integers(0, 63))
    def go_away(self, which: int) -> None:
        if self.waiting:
            list(self.waiting)[which % len(self.waiting)].cancel()

    @rule()
    def answer(self) -> None:
        """Everybody who waits hears, once, and of the own question."""
        if self.waiting:
            self._run(asyncio.wait(self.waiting, timeout=600))
        for task, (entry, x, poisoned) in self.waiting.items():
            assert task.done()
            with contextlib.suppress(asyncio.CancelledError):
                self._check(task, entry, x, poisoned)
        self.waiting.clear()
        assert self.engine.stalled_seconds() < 600

    def teardown(self) -> None:
        self.answer()
        assert self.engine.close(600)
        self.loop.close()

    def _check(self, task: asyncio.Task[Computed], entry: Entry, x: Tensor, poisoned: bool) -> None:
        """An entry is left with what is not yet computed: the rows that it asked for are `x`."""
        error = task.exception()
        if error is None:
            assert not poisoned
            prediction = task.result().prediction
            assert isinstance(prediction, RowPrediction)
            assert_equal(prediction, truth(x, entry.options))
        elif isinstance(error, TimeoutError):
            assert entry.deadline < float("inf")
        else:
            assert poisoned
            assert isinstance(error, _PoisonedError)

    async def _ask(self, x: Tensor, options: PredictOptions, is_late: bool) -> Computed:
        deadline = 0.0 if is_late else float("inf")
        self._last = Entry("a", self.model, x, options, deadline)
        return await self.engine.compute(self._last)

    def _run(self, work: Coroutine[Any, Any, Any]) -> None:
        self.loop.run_until_complete(work)


Engines.TestCase.settings = settings(max_examples=25, stateful_step_count=30)
TestEngines = Engines.TestCase
