"""What the end of a training measures of a model of rows: calibration, scores, errors, detector.

A prediction needs the results, which the variants keep, and none of these functions. The card also
has a small summary of the predictions of held-out rows (`describe`): the metrics are sums over all
of these rows, a chart needs the rows themselves, or recall and precision at many thresholds.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from models.config import Json
from models.evaluation.calibration import AnyNumberCalibration, ClassCalibration, ScalesVariance
from models.evaluation.calibration import LabelledMixture as Labelled
from models.evaluation.cells import Cells
from models.evaluation.class_scores import threshold_curve
from models.evaluation.detector import DEFAULT_SCORES, SURPRISE, Detector
from models.evaluation.group_coverage import uncovered
from models.evaluation.weighting import Weights, filled
from models.exceptions import InvalidInput
from models.features.rows import Rows, evenly_spread
from models.likelihoods.class_mixture import CategoricalMixture
from models.likelihoods.number_mixture import NumberMixture
from models.model import TrainedModel
from models.out_of_distribution.surprise import MOST
from models.prediction import products
from models.prediction.error_factors import LEVEL, ROWS, Factors, OutputFactors, measure_factors
from models.prediction.options import DEFAULT_SAMPLES, PredictOptions
from models.prediction.sampler_measurement.errors import LEVELS
from models.prediction.sampler_measurement.measure import (
    PRUNED_RUNS,
    RUNS,
    candidates,
    default_operations,
    num_rows,
)
from models.prediction.sampler_measurement.measure import measure_samplers as measure_ways
from models.prediction.sampler_measurement.record import Candidate, MeasuredSamplers
from models.prediction.summary import Summary
from models.prediction.threads import threads_for
from models.prediction.whole_draws import FittedDraws
from models.tabular.model import TabularModel, summarise

MOST_NUMBERS = 300  # rows of a scatter plot: more hide each other
MOST_LABELLED = 10_000  # rows that thresholds are counted on, evenly spread
MOST_CLASSES = 20  # with curves, as the confusion table shows
MOST_POINTS = 100  # thresholds of a class
CHART_LEVEL = 0.9  # of the intervals
_DIGITS = 6
LEAST_ROWS = 9  # of a group, so that it has a 90 % interval of its own


def calibrated(model: TabularModel, rows: Rows, samples: int) -> TabularModel:
    """A copy whose variants are calibrated on these rows.

    The rows must not have been used to fit weights or to choose the epoch.
    """
    engine, seed, groups = model.engine, model.default_seed, model.num_groups
    variants = {}
    for prune, variant in model.variants_by_prune.items():
        calibration = engine.calibrate(model.fitted(prune), rows, seed, samples, groups)
        variants[prune] = replace(variant, calibration=calibration)
    return model.with_variants(variants)


def score(
    model: TabularModel, prune: float, held_out: Rows, samples: int
) -> tuple[Json, Float[Tensor, "rows"]]:
    """Metrics of rows that no weight was fitted to, and the log likelihood of each row."""
    sampling = model.engine.best_sampling(model.default_seed, samples)
    calibration = model.calibration_of(prune)
    scores = model.engine.row_scores(
        model.fitted(prune), held_out, sampling, calibration, by_class=True
    )
    return summarise(scores, model.classes, model.groups), scores["log_likelihood"]


def notes_on(model: TabularModel, metrics: Json) -> Iterator[str]:
    """Which conformal quantiles the full model has, and which parts of the rows it misses.

    Args:
        metrics: of the full model.
    """
    calibration = model.variant(0.0).calibration
    cells = calibration.cells if isinstance(calibration, ScalesVariance) else None
    yield from () if cells is None else _notes_on_cells(model, cells)
    yield from uncovered(metrics)


def _notes_on_cells(model: TabularModel, cells: Cells) -> Iterator[str]:
    if model.groups is None:
        low, high = cells.edges
        values = "means" if cells.by == "size" else "standard deviations"
        yield (
            f"conformal intervals of predicted {values} below "
            f"{low:.4g}, from there to {high:.4g}, and above have quantiles of their own: one "
            "quantile does not cover them alike"
        )
        return
    pairs = zip(model.groups.names, cells.rows, strict=True)
    few = [f"{name} ({rows})" for name, rows in pairs if rows < LEAST_ROWS]
    if few:
        yield (
            f"groups of {model.groups.column!r} with fewer than {LEAST_ROWS} calibration rows "
            "(rows): their conformal 90 % intervals are at least those of all rows, and "
            f"contain all of their calibration rows: {', '.join(few)}"
        )


# Rows unlike those of training


def with_surprise(model: TabularModel, rows: Rows) -> TabularModel:
    """A copy that knows what these training rows have in common."""
    assert model.surprise is not None
    return replace(model, surprise=model.surprise.fit(rows, model.config.training.seed))


def fit_detector(model: TabularModel, rows: Rows) -> Detector:
    """Of all variants: fit the configured false-alarm rate to rows that no weight was fitted to.

    A row that is as surprising as can be counts as above any threshold. Where held-out rows are
    few, their largest surprise may be an ordinary one. So no row is flagged that is no more
    surprising than a share of the wanted rate of the training rows.
    """
    rate = model.config.false_alarm_rate
    surprises = model.surprises(rows.inputs)
    usual = np.where(surprises >= MOST, np.inf, surprises)
    weights = None if rows.weights is None else rows.weights.cpu().numpy()
    detector = Detector.fit(SURPRISE, usual, rate, weights)
    return replace(detector, threshold=max(detector.threshold, -math.log10(rate)))


def predictive_ood_score(
    model: TrainedModel, x: Float[Tensor, "rows inputs"], samples: int = DEFAULT_SAMPLES
) -> Float[np.ndarray, "rows"]:
    """The out-of-distribution score of each row's predictive distribution, of the full model.

    Unlike the surprise of the features it depends on the method.

    Raises:
        InvalidInput: for a model that is not of rows.
    """
    if not isinstance(model, TabularModel):
        raise InvalidInput(f"a {model.task} has no out-of-distribution score", "/model")
    options = model.resolve(PredictOptions(samples=samples, intervals=()))
    name = model.detector(0.0).score
    name = DEFAULT_SCORES[model.task] if name == SURPRISE else name
    return model.summary(model.fitted(0.0), x, options, name)["ood_score"]


# Errors of samplers and of rounded products


def measure_sobol_factors(
    model: TabularModel, prune: float, x: Float[Tensor, "rows inputs"]
) -> tuple[Factors, OutputFactors]:
    """Actual ÷ stated error of evenly spread samples, by number of samples, and by output."""
    fitted, rows = model.fitted(prune), x[:ROWS]
    if isinstance(fitted, FittedDraws) or "sobol" not in model.samplers:
        return {}, {}
    if not model.has_errors("sobol"):
        return {}, {}
    asked = PredictOptions(prune=prune, sampler="sobol", intervals=(LEVEL,), return_mc_errors=True)
    plain = model.resolve(asked)

    def summarise_seeds(seeds: Sequence[int], samples: int) -> list[Summary]:
        return model.summaries(fitted, rows, replace(plain, samples=samples), seeds)

    return measure_factors(summarise_seeds, model.network.layout.members)


def measure_samplers(
    model: TabularModel, prune: float, x: Float[Tensor, "rows inputs"]
) -> MeasuredSamplers | None:
    """Which samplers are as exact as 100 independent samples, and what they cost.

    None for whole draws.
    """
    fitted, engine = model.fitted(prune), model.engine
    if engine.whole_draws or isinstance(fitted, FittedDraws):
        return None
    most = num_rows(default_operations(engine, fitted, 1), prune)
    rows = x[evenly_spread(len(x), most)]
    asked = PredictOptions(
        prune=prune, samples=DEFAULT_SAMPLES, intervals=LEVELS, interval_kinds=("credible",)
    )
    plain = model.resolve(asked)

    def summarise_way(
        candidate: Candidate, seeds: Sequence[int], *, errors: bool = False
    ) -> list[Summary]:
        sampler, samples = candidate.sampler, candidate.samples or DEFAULT_SAMPLES
        options = replace(plain, sampler=sampler, samples=samples, return_mc_errors=errors)
        ready = replace(fitted, nodes=candidate.nodes or None)
        return model.summaries(ready, rows, options, seeds)

    ways, operations = candidates(engine, fitted), default_operations(engine, fitted)
    runs = PRUNED_RUNS if prune else RUNS
    return measure_ways(summarise_way, ways, operations, len(rows), runs)


def measure_rounding(
    model: TabularModel, prune: float, x: Float[Tensor, "rows inputs"]
) -> products.Rounding | None:
    """How far products in bfloat16 move the answers; None if no product is large enough."""
    fitted, rows = model.fitted(prune), x[: products.ROWS]
    if isinstance(fitted, FittedDraws) or not fitted.can_round:
        return None
    plain = PredictOptions(prune=prune, sampler="monte_carlo", intervals=())
    options = model.resolve(replace(plain, return_mc_errors=True))
    exact = model.summary(fitted, rows, options)
    rounded = model.summary(fitted.rounded(), rows, options)
    return products.measure_rounding(exact, rounded, products.ROUNDED)


# What charts show of held-out rows


def describe(model: TabularModel, held_out: Rows, samples: int) -> Json:
    """What charts show of rows that no weight was fitted to."""
    most = MOST_NUMBERS if model.classes is None else MOST_LABELLED
    few = evenly_spread(len(held_out), most).to(held_out.inputs.device)
    fitted, rows, calibration = model.fitted(0.0), held_out[few], model.calibration_of(0.0)
    with torch.inference_mode(), threads_for(fitted.operations * len(rows) * samples):
        sampling = model.engine.best_sampling(model.default_seed, samples)
        parts = model.engine.labelled(fitted, rows, sampling)
        if model.classes is None:
            assert not isinstance(calibration, ClassCalibration)
            return describe_numbers(parts, calibration)
        assert calibration is None or isinstance(calibration, ClassCalibration)
        return describe_classes(parts, calibration, model.classes)


def describe_numbers(parts: Iterable[Labelled], calibration: AnyNumberCalibration | None) -> Json:
    """Actual values, predicted means and ends of the central 90 % intervals, in the row order."""
    columns = []
    for part in parts:
        assert isinstance(part.mixture, NumberMixture)
        mixture = part.mixture if calibration is None else calibration.apply(part.mixture)
        ends = mixture.intervals([CHART_LEVEL])[:, 0]
        columns.append([v.double().cpu().numpy() for v in (part.targets, mixture.mean(), *ends)])
    actual, mean, lower, upper = (np.concatenate(column) for column in zip(*columns, strict=True))
    finite = np.isfinite(np.stack([actual, mean, lower, upper])).all(0)
    named = {"actual": actual, "mean": mean, "lower": lower, "upper": upper}
    return {"level": CHART_LEVEL} | {
        name: _rounded(values[finite]) for name, values in named.items()
    }


def describe_classes(
    parts: Iterable[Labelled], calibration: ClassCalibration | None, classes: Sequence[object]
) -> Json:
    """By class: recall, precision and false positive rate of the rows whose probability of the
    class is at least the threshold; the most frequent classes first. Classes without rows, and one
    that all rows have, are left out."""
    predicted, each, of_rows = [], [], []
    for part in parts:
        assert isinstance(part.mixture, CategoricalMixture)
        mixture = part.mixture if calibration is None else calibration.apply(part.mixture)
        predicted.append(mixture.mean().cpu())
        each.append(part.targets.cpu())
        of_rows.append(filled(part.weights, part.targets).cpu())
    probabilities, targets, weights = torch.cat(predicted), torch.cat(each), torch.cat(of_rows)
    counts = torch.bincount(targets, minlength=len(classes)).tolist()
    usable = [k for k in range(len(classes)) if 0 < counts[k] < len(targets)]
    order = sorted(usable, key=lambda k: (-counts[k], k))
    curves = [
        {"label": classes[k], **_curve_of(probabilities[:, k], targets == k, weights)}
        for k in order[:MOST_CLASSES]
    ]
    return {"rows": len(targets), "curves": curves}


def _curve_of(scores: Tensor, positive: Tensor, weights: Weights) -> Json:
    """The curve at no more than `MOST_POINTS` thresholds, with both ends of it."""
    at, recall, precision, share = threshold_curve(scores, positive, weights)
    prior = float(weights[positive].sum() / weights.sum())
    false_positives = ((share - prior * recall) / (1 - prior)).clamp(0, 1)
    kept = torch.linspace(0, len(at) - 1, min(len(at), MOST_POINTS)).round().long()
    named = {
        "threshold": at,
        "recall": recall,
        "precision": precision,
        "false_positive_rate": false_positives,
    }
    return {"share": prior} | {name: _rounded(v[kept].numpy()) for name, v in named.items()}


def _rounded(values: np.ndarray) -> list[float]:
    return [float(f"{value:.{_DIGITS}g}") for value in values.tolist()]
