"""Which requests share a batch, and that each gets its own answer, in any order."""

import asyncio
import contextlib
import math
from collections.abc import Coroutine, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from torch import Tensor

from app.serving.batching import BATCH_SECONDS, Computed, Entry, affordable_samples, speed_key, take
from app.serving.engine import Engine
from app.serving.growth import UNMEASURED_ROWS
from app.serving.throughput import Throughput
from models.prediction.declared_outputs import LEVEL
from models.prediction.options import KINDS, Costs, Density, PredictOptions, ResolvedOptions, Totals
from models.prediction.outputs.questions import QUESTIONS
from models.prediction.prediction import RowPrediction

SPEED = speed_key("a", PredictOptions())


def truth(x: Tensor, options: PredictOptions) -> RowPrediction:
    """A prediction in closed form, which depends on all that a prediction depends on."""
    base = x.sum(1).double().numpy()
    mean = base * options.samples + (options.seed or 0) + 1000 * options.prune
    values = {
        "mean": mean,
        **{f"{part}_variance": base**2 for part in ("aleatoric", "epistemic", "total")},
        "epistemic_share": base,
        "out_of_distribution": base > 0,
        "ood_score": base,
    }
    for kind in options.interval_kinds:
        before, levels = "" if kind == "credible" else f"{kind}_", np.array(options.intervals)
        values[f"{before}lower"] = mean[:, None] - levels
        values[f"{before}upper"] = mean[:, None] + levels
    return RowPrediction(
        values=values,
        coordinates={LEVEL: options.intervals},
        constants={"adapted_level": options.intervals},
        task="regression",
        samples=options.samples,
        seed=options.seed or 0,
        sampler=options.sampler or "monte_carlo",
        prune=options.prune,
    ).abstaining(options.abstain_above)


class Model:
    """Answers by `truth`, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def predict_rows(self, x: Tensor, options: PredictOptions) -> RowPrediction:
        self.asked.append((len(x), options.samples))
        return truth(x, options)


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Futures belong to a loop, even to one that never runs."""
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def entry(
    loop: asyncio.AbstractEventLoop,
    rows: int = 1,
    *,
    artifact: str = "a",
    deadline: float = math.inf,
    model: Any = None,
    **options: Any,
) -> Entry:
    defaults = {"seed": 1, "sampler": "monte_carlo", "top": 10, "horizon": 1}
    chosen = ResolvedOptions(**defaults | options)
    x = torch.arange(2.0 * rows).reshape(rows, 2)
    return Entry(artifact, model or Model(), x, chosen, deadline, 0.0, loop.create_future())


def at(seconds_per_work: float, speed: Any = SPEED) -> Throughput:
    """A machine whose speed is known, whatever the size."""
    throughput = Throughput()
    for rows in (1, 2, 4, 8, 16, 32):
        for samples in (1, 10, 30, 100):
            throughput.observe(speed, rows, samples, seconds_per_work * rows * samples)
    return throughput


def assert_equal(answer: RowPrediction, expected: RowPrediction) -> None:
    np.testing.assert_array_equal(answer.mean, expected.mean)
    np.testing.assert_array_equal(answer.variance["total"], expected.variance["total"])
    for name in ("samples", "seed", "prune"):
        assert getattr(answer, name) == getattr(expected, name)
    if expected.get("abstained") is not None:
        np.testing.assert_array_equal(answer["abstained"], expected.get("abstained"))
    found, wanted = ([(i.kind, i.level) for i in one.intervals] for one in (answer, expected))
    assert found == wanted
    for mine, theirs in zip(answer.intervals, expected.intervals, strict=True):
        np.testing.assert_array_equal(mine.lower, theirs.lower)


def test_only_equal_questions_share_a_batch(loop: asyncio.AbstractEventLoop) -> None:
    model = Model()
    first = entry(loop, samples=10, model=model, intervals=(0.9,))
    alike = entry(loop, 3, samples=10, model=model, intervals=(0.5,), interval_kinds=KINDS[1:])
    others = [
        entry(loop, samples=100),
        entry(loop, samples=10, seed=2),
        entry(loop, samples=10, prune=0.5),
        entry(loop, samples=10, artifact="b"),
        entry(loop, samples=10, sampler="sobol"),
        entry(loop, samples=10, return_draws=True),
        entry(loop, samples=10, target_mc_error=0.1),
    ]
    taken = take([first, *others, alike], 0.0, Throughput())
    assert taken.batch is not None
    assert taken.batch.entries == [first, alike]
    taken.batch.compute()
    assert model.asked == [(4, 10)], "one call for both"


ASKED = {
    "exceeds": (1.0,),
    "quantiles": (0.5,),
    "density": Density(2),
    "costs": Costs(over=1.0, under=2.0),
    "set_level": 0.9,
    "totals": Totals(),
    "anomalies": 3,
}


@pytest.mark.parametrize("option", [question.option for question in QUESTIONS])
def test_other_questions_share_no_batch(loop: asyncio.AbstractEventLoop, option: str) -> None:
    plain = entry(loop, samples=10)
    first, alike = (entry(loop, samples=10, **{option: ASKED[option]}) for _ in range(2))
    taken = take([first, plain, alike], 0.0, Throughput())
    assert taken.batch is not None
    assert taken.batch.entries == [first, alike]


def test_a_batch_is_bounded_and_the_oldest_always_runs(
    loop: asyncio.AbstractEventLoop,
) -> None:
    many = [entry(loop, samples=1) for _ in range(40)]
    for rows_in_time, expected in ((20, 20), (2, UNMEASURED_ROWS)):
        taken = take(many, 0.0, at(1.001 * BATCH_SECONDS / (rows_in_time + 1)))
        assert taken.batch is not None
        assert len(taken.batch.entries) == expected
    large = take([entry(loop, 1000, samples=1), *many], 0.0, at(1e-3))
    assert large.batch is not None
    assert [e.rows for e in large.batch.entries] == [1000]


@pytest.mark.parametrize(
    ("left", "samples"),
    [(math.inf, 500), (1.0, 500), (0.5, 300), (0.2, 100), (0.02, 10), (0.001, 0), (-1.0, 0)],
)
def test_a_deadline_is_met_with_fewer_samples(
    loop: asyncio.AbstractEventLoop, left: float, samples: int
) -> None:
    """A millisecond per sample, and a quarter more for what is not known."""
    throughput = Throughput()
    for count in (10, 100, 500):
        throughput.observe(SPEED, 1, count, count / 1000)
    urgent = entry(loop, samples=500, deadline=100.0 + left)
    assert affordable_samples(urgent, 100.0, throughput) == samples


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
