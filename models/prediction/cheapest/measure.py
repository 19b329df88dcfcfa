"""Measure which sampler is as exact as 100 independent samples at the least cost."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict

import numpy as np

from models.prediction.cheapest.errors import (
    INDEPENDENT,
    SAMPLES_OF_RUN,
    Spread,
    Truth,
    power_of,
    total_deviation,
    truth_of,
)
from models.prediction.cheapest.record import Candidate, MeasuredSampler, MeasuredSamplers
from models.prediction.prediction import Arrays

MOST_ROWS, _LEAST_ROWS, _PRUNED_ROWS = 200, 20, 10
_OPERATIONS = 2.5e9  # of the truth, if so few rows are enough: a tenth of a second
_RUNS = 10  # of 1,000 samples: the truth
_SCREENING = 2  # runs of a first truth, which shows what is far from exact
_TRUTH_SEED = 10_000  # of the first run: not that of a candidate
_SEEDS = 8  # of 100 samples, and of a candidate's
_FAR = 1.3  # times the promised error

Summarise = Callable[[Candidate, int], Arrays]  # of a seed: every output with its error


def num_rows(operations_of_sample: float, prune: float) -> int:
    """How many rows are measured, if a sample of a row costs so many operations.

    At least 20 of the full variant. There are four pruned ones by default: each has 10 or more.
    """
    affordable = round(_OPERATIONS / (_RUNS * SAMPLES_OF_RUN * operations_of_sample))
    return min(MOST_ROWS, max(_PRUNED_ROWS if prune else _LEAST_ROWS, affordable))


def measure_samplers(
    summarise: Summarise, candidates: Sequence[Candidate], default_operations: float, rows: int
) -> MeasuredSamplers:
    """Measure the candidates, up to the cheapest exact one that draws samples.

    Args:
        candidates: the cheapest first.
    """

    def independent(samples: int, seed: int) -> Arrays:
        return summarise(Candidate("monte_carlo", samples, 0, 0.0), seed)

    def add_runs(count: int) -> Truth:
        seeds = range(_TRUTH_SEED + len(runs), _TRUTH_SEED + count)
        runs.extend(independent(SAMPLES_OF_RUN, seed) for seed in seeds)
        return truth_of(runs, shown)

    if not candidates:
        return MeasuredSamplers(rows, default_operations, ())
    runs: list[Arrays] = []
    shown = [independent(INDEPENDENT, seed) for seed in range(_SEEDS)]
    drawn, rough = list[tuple[Candidate, list[Arrays]]](), add_runs(_SCREENING)
    for candidate in candidates:
        seeds = range(_SEEDS if candidate.samples else 1)
        drawn.append((candidate, [summarise(candidate, seed) for seed in seeds]))
        if candidate.samples and _is_exact(rough, drawn[-1][1]):
            break
    near = any(_is_exact(rough, summaries, _FAR) for _, summaries in drawn)
    truth = add_runs(_RUNS) if near else rough
    found = (_measured(candidate, truth, summaries) for candidate, summaries in drawn)
    return MeasuredSamplers(rows, default_operations, tuple(found))


def _is_exact(truth: Truth, summaries: Sequence[Arrays], factor: float = 1.0) -> bool:
    """Whether all errors of all outputs are at most this factor times the promised ones."""
    errors = truth.errors(summaries)
    return all(Spread.of(e).within(truth.promised[n], factor) for n, e in errors.items())


def _measured(candidate: Candidate, truth: Truth, summaries: Sequence[Arrays]) -> MeasuredSampler:
    """The errors of a candidate over rows and seeds, beside those of 100 independent samples."""
    errors = truth.errors(summaries)
    found = {name: Spread.of(values) for name, values in errors.items()}
    return MeasuredSampler(
        **asdict(candidate),
        errors={name: found[name].ratio(truth.promised[name]) for name in found},
        exact=_is_exact(truth, summaries),
        bias=_biases(errors, summaries[0]),
    )


def _biases(errors: Arrays, summary: Arrays) -> dict[str, float]:
    """Each output's bias in predictive standard deviations, or in its power of them."""
    deviation, is_number = total_deviation(summary), "median" in summary
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
