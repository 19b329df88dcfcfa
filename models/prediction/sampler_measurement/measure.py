"""Measure which sampler is as exact as 100 independent samples at the least cost.

Costs are counted operations, not times: a training that is repeated makes the same model. The
weights of what is no product come from `benchmarks/cheapest.py`: the time of a ReLU, of a draw and
of a summary beside that of a product. They decide only between candidates that are exact, and
rarely: evenly spread samples cost more the more there are, and moments less than the samples that
they replace.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Protocol, runtime_checkable

import numpy as np

from models.prediction.engine import Engine, Ready
from models.prediction.options import Sampler
from models.prediction.sampler_measurement.errors import (
    INDEPENDENT,
    SAMPLES_OF_RUN,
    Spread,
    Truth,
    power_of,
    total_deviation,
    truth_of,
)
from models.prediction.sampler_measurement.record import (
    Candidate,
    MeasuredSampler,
    MeasuredSamplers,
)
from models.prediction.summary import Summary
from models.prediction.whole_draws import FittedDraws

MOST_ROWS, _LEAST_ROWS, _PRUNED_ROWS = 200, 20, 10
_OPERATIONS = 1.5e9  # of the truth, if so few rows are enough: a tenth of a second
# Runs of 1,000 samples: the truth. One is of independent samples, which state what is promised. The
# others are evenly spread: their deviations over seeds are 0.3 to 0.9 of those of independent ones
# (docs/benchmarks.md). With 0.7, six runs are as exact as ten of independent samples, and three as
# four or five. What the truth lacks counts as an error of the candidates.
RUNS, PRUNED_RUNS = 6, 3
_INDEPENDENT_RUNS = 2  # for one evenly spread, where the network has none
_SCREENING = 2  # runs of a first truth, which shows what is far from exact
_TRUTH_SEED = 10_000  # of the first run: not that of a candidate
_SEEDS = 8  # of 100 samples, and of a candidate's
_FAR = 1.3  # times the promised error


@runtime_checkable
class Summarise(Protocol):
    """Every output by each seed; with `errors` also their stated errors."""

    def __call__(
        self, candidate: Candidate, seeds: Sequence[int], *, errors: bool = False
    ) -> list[Summary]: ...


def num_rows(operations_of_sample: float, prune: float) -> int:
    """How many rows are measured, if a sample of a row costs so many operations.

    At least 20 of the full variant. There are four pruned ones by default: each has 10 or more.
    """
    affordable = round(_OPERATIONS / (RUNS * SAMPLES_OF_RUN * operations_of_sample))
    return min(MOST_ROWS, max(_PRUNED_ROWS if prune else _LEAST_ROWS, affordable))


def measure_samplers(
    summarise: Summarise,
    candidates: Sequence[Candidate],
    default_operations: float,
    rows: int,
    num_runs: int = RUNS,
) -> MeasuredSamplers:
    """Measure the candidates up to the cheapest exact one that draws samples.

    Args:
        candidates: the cheapest first.
        num_runs: of the truth.
    """

    def add_runs(count: int) -> Truth:
        seeds = range(_TRUTH_SEED + len(runs), _TRUTH_SEED + count)
        runs.extend(summarise(_samples(even, SAMPLES_OF_RUN), seeds))
        return truth_of(runs, shown)

    if not candidates:
        return MeasuredSamplers(rows, default_operations, ())
    is_even = any(one.sampler == "sobol" for one in candidates)
    even: Sampler = "sobol" if is_even else "monte_carlo"
    shown = summarise(_samples("monte_carlo", INDEPENDENT), range(_SEEDS))
    runs = summarise(_samples("monte_carlo", SAMPLES_OF_RUN), [_TRUTH_SEED], errors=True)
    rough = add_runs(_SCREENING)
    drawn = _drawn(summarise, candidates, rough)
    near = any(_is_exact(rough, summaries, _FAR) for _, summaries in drawn)
    truth = add_runs(num_runs if is_even else _INDEPENDENT_RUNS * num_runs) if near else rough
    measured = (_measured(candidate, truth, summaries) for candidate, summaries in drawn)
    return MeasuredSamplers(rows, default_operations, tuple(measured))


def _drawn(
    summarise: Summarise, candidates: Sequence[Candidate], truth: Truth
) -> list[tuple[Candidate, list[Summary]]]:
    """The closed candidates and some of those that draw samples, up to the cheapest exact of these.

    More samples are more exact. So it is found by bisection.
    """
    drawing = [candidate for candidate in candidates if candidate.samples]
    known: dict[Candidate, list[Summary]] = {}
    low, high = 0, len(drawing)
    while low < high:
        middle = (low + high) // 2
        known[drawing[middle]] = summarise(drawing[middle], range(_SEEDS))
        exact = _is_exact(truth, known[drawing[middle]])
        low, high = (low, middle) if exact else (middle + 1, high)
    most = drawing[high].operations if high < len(drawing) else math.inf
    closed = (
        candidate
        for candidate in candidates
        if not candidate.samples and candidate.operations < most
    )
    known |= {candidate: summarise(candidate, range(1)) for candidate in closed}
    return [(candidate, known[candidate]) for candidate in candidates if candidate in known]


def _samples(sampler: Sampler, samples: int) -> Candidate:
    return Candidate(sampler, samples, 0, 0.0)


def _is_exact(truth: Truth, summaries: Sequence[Summary], factor: float = 1.0) -> bool:
    """Whether all errors of all outputs are at most this factor times the promised ones."""
    errors = truth.errors(summaries)
    return all(Spread.of(e).within(truth.promised[n], factor) for n, e in errors.items())


def _measured(candidate: Candidate, truth: Truth, summaries: Sequence[Summary]) -> MeasuredSampler:
    """The errors of a candidate over rows and seeds, beside those of 100 independent samples."""
    errors = truth.errors(summaries)
    spreads = {name: Spread.of(values) for name, values in errors.items()}
    return MeasuredSampler(
        **asdict(candidate),
        errors={name: spreads[name].ratio(truth.promised[name]) for name in spreads},
        exact=_is_exact(truth, summaries),
        bias=_biases(errors, summaries[0]),
    )


def _biases(errors: Mapping[str, np.ndarray], summary: Summary) -> dict[str, float]:
    """Each output's bias in predictive standard deviations, or in its power of them."""
    deviation, is_number = total_deviation(summary), "median" in summary.values
    unit = 1.0 if is_number else math.sqrt(np.square(deviation).mean())
    return {name: _bias(values) / unit ** power_of(name) for name, values in errors.items()}


def _bias(errors: np.ndarray) -> float:
    """The bound on errors [seeds, rows, …] that are no noise.

    The mean square of the means over seeds is bias² + noise² ÷ seeds.
    """
    bound = Spread.of(errors.mean(0)).bound
    if len(errors) == 1:
        return bound
    noise = errors.var(0, ddof=1).mean() / len(errors)
    return math.sqrt(max(0.0, bound**2 - float(noise)))


# The candidates and their costs.

_WORTH = 0.75  # of the default's operations: less of a gain is not worth the measurement
# Numbers for each member of a network, two or more: fewer do not show their own error.
_SAMPLES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
_NODES = (2, 4, 8, 16, 32, 64, 128)
_FEWEST, _FEWEST_NODES = 8, 16  # in all
_UNIT = 60  # operations of a draw and an activation: memory and square roots, no products
_OUTPUT = 8_000  # of the summaries of a sample's output: its quantiles, entropies and moments
_MOMENTS = 4  # the propagation of moments relative to a sample


def candidates(engine: Engine, fitted: Ready) -> list[Candidate]:
    """Those that cost clearly less than `default_operations`, the cheapest first."""
    if isinstance(fitted, FittedDraws):
        return []
    most = _WORTH * default_operations(engine, fitted)
    ways = [*_moments(engine, fitted), *_sobol(engine, fitted)]
    return sorted((way for way in ways if way.operations < most), key=lambda way: way.operations)


def default_operations(engine: Engine, fitted: Ready, samples: int = 100) -> float:
    """Of so many samples of a row, with their summary."""
    return samples * (pass_operations(fitted) + summary_operations(engine))


def pass_operations(fitted: Ready) -> float:
    """Of one sample of a row through one network."""
    if isinstance(fitted, FittedDraws):
        return fitted.operations
    units = sum(g.members * sum(layer.width for layer in g.layers[:-1]) for g in fitted.groups)
    return fitted.operations + _UNIT * units / fitted.members


def summary_operations(engine: Engine) -> float:
    """Of one sample of a row in the summary."""
    return _OUTPUT * engine.likelihood.num_outputs


def _moments(engine: Engine, fitted: Ready) -> Iterator[Candidate]:
    if "moments" not in engine.samplers:
        return
    members = engine.network.layout.members
    propagation = _MOMENTS * members * pass_operations(fitted)
    for nodes in _numbers(_NODES, members, _FEWEST_NODES, len(engine.nodes)):
        yield Candidate("moments", 0, nodes, propagation + nodes * summary_operations(engine))


def _sobol(engine: Engine, fitted: Ready) -> Iterator[Candidate]:
    if "sobol" not in engine.samplers:
        return
    each = pass_operations(fitted) + summary_operations(engine)
    members = engine.network.layout.members
    for samples in _numbers(_SAMPLES, members, _FEWEST, 100):
        yield Candidate("sobol", samples, 0, samples * each)


def _numbers(each: Sequence[int], members: int, fewest: int, most: int) -> Iterator[int]:
    """Numbers for all members together, from `fewest` to `most`."""
    yield from (n * members for n in each if fewest <= n * members <= most)
