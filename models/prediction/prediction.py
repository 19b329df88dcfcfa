"""Predictions as plain data, in the caller's units."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.evaluation.adaptive import Adapted, allowed_scores
from models.evaluation.calibration import (
    Bounds,
    Calibration,
    ClassCalibration,
    ShapeCalibration,
    in_pairs,
)
from models.evaluation.out_of_distribution import Detector, ood_score
from models.features.columns import level_text
from models.prediction.answers import questions
from models.prediction.answers.answer import Answer
from models.prediction.device import to_host
from models.prediction.influence import ERROR, all_errors, error_of_mean
from models.prediction.number_mixture import NumberMixture
from models.prediction.options import (
    KINDS,
    BatchOptions,
    IntervalKind,
    PredictOptions,
    ResolvedOptions,
    Sampler,
)
from models.prediction.outputs import ROW_OUTPUTS, Output
from models.prediction.predictive import CategoricalMixture, Mixture
from models.prediction.standard_error import even_error, standard_error

Arrays = dict[str, np.ndarray]
CALIBRATED: tuple[IntervalKind, ...] = ("conformal", "adaptive")
ClassName = str | float | bool
P = TypeVar("P", bound="Prediction")
S = TypeVar("S")
V = TypeVar("V", Tensor, np.ndarray)


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A central interval per row.

    A credible one has the probability `level` under the predictive mixture. A conformal one
    contains the target with that probability for rows like the calibration rows; it is infinite if
    those are too few (`models.evaluation.calibration`). An adaptive one is the conformal one at
    `adapted_level`, which follows labels (`models.evaluation.adaptive`).
    """

    level: float
    kind: IntervalKind = "credible"
    lower: np.ndarray
    upper: np.ndarray
    adapted_level: float | None = None

    def select(self, rows: slice) -> "Interval":
        """The intervals of some rows."""
        return replace(self, lower=self.lower[rows], upper=self.upper[rows])


@dataclass(frozen=True, kw_only=True)
class Prediction(ABC):
    """The predictions of a model, and how they were sampled.

    Args:
        samples: number of weight draws; 0 if nothing was drawn.
        epistemic_share: per row, the share of the uncertainty that more data would remove.
        out_of_distribution: per row, whether it is unlike the training rows.
    """

    outputs: ClassVar[tuple[Output, ...]]
    samples: int
    seed: int
    sampler: Sampler
    prune: float
    epistemic_share: np.ndarray
    out_of_distribution: np.ndarray
    classes: tuple[ClassName, ...] | None = None

    @property
    def num_rows(self) -> int:
        return len(self.out_of_distribution)

    @property
    @abstractmethod
    def num_values(self) -> int:
        """About how many numbers the prediction has."""

    @property
    @abstractmethod
    def is_finite(self) -> bool:
        """Whether all predicted numbers are finite."""

    @classmethod
    def joined(cls, parts: "Sequence[P]") -> "P":
        """Join predictions of consecutive rows with the same options.

        Predictions with draws and forecasts cannot be joined.
        """
        first = parts[0]
        joined = {f.name: _join([getattr(part, f.name) for part in parts]) for f in fields(first)}
        return replace(first, **joined)

    @abstractmethod
    def columns(self) -> dict[str, Any]:
        """Table columns by name, with a value per predicted row.

        Raises:
            InvalidInput: if the prediction cannot be a table.
        """


@dataclass(frozen=True, kw_only=True)
class RowPrediction(Prediction):
    """Arrays over rows (rows × classes for class probabilities), float64, in the target's units.

    The rows of a forecast are the steps ahead.

    Args:
        variance: aleatoric, epistemic and total.
        ood_score: compared with the variant's threshold for `out_of_distribution`.
        median: of numbers; None for classes.
        mc_error: of the mean; None if it cannot be estimated, as from one sample.
        mc_errors: of every output by name, if requested; None if they cannot be estimated.
        entropy: of classes, in nats: aleatoric, epistemic and total.
        draws: samples × rows (× classes): predicted means, each from one weight draw for all rows.
            For a forecast: whole paths with noise, those of a weight draw one after the other.
        series, steps: of a forecast, if a column tells series apart: the key of each row, and the
            number of the step ahead, from 1.
        times: of a forecast's steps.
        paths: of a forecast, per weight draw.
        abstained: whether each row is too uncertain; None without a bound.
        answers: what else the options ask for, by the name of the option.
    """

    outputs: ClassVar[tuple[Output, ...]] = ROW_OUTPUTS
    mean: np.ndarray
    median: np.ndarray | None = None
    variance: Arrays
    ood_score: np.ndarray
    intervals: tuple[Interval, ...] = ()
    mc_error: np.ndarray | None = None
    mc_errors: Arrays | None = None
    labels: list[ClassName] | None = None
    entropy: Arrays | None = None
    draws: np.ndarray | None = None
    series: list[str] | None = None
    steps: np.ndarray | None = None
    times: np.ndarray | None = None
    paths: int | None = None
    abstained: np.ndarray | None = None
    answers: Mapping[str, Answer] = field(default_factory=dict)

    @property
    def adapted_levels(self) -> dict[str, float]:
        """The level at which each adaptive interval is given, by the level that was asked for."""
        return {
            f"{one.level}": one.adapted_level
            for one in self.intervals
            if one.adapted_level is not None
        }

    @property
    def probabilities(self) -> np.ndarray | None:
        """The mean, of classes."""
        return None if self.classes is None else self.mean

    @property
    def uncertainty(self) -> np.ndarray:
        """Per row: total standard deviation in target units, or total entropy in nats."""
        return np.sqrt(self.variance["total"]) if self.entropy is None else self.entropy["total"]

    @property
    def expected_loss(self) -> np.ndarray:
        """Per row: total standard deviation, or 1 − the largest probability.

        As `models.expected_scores.simulation.expected_loss`, by whose mean over held-out rows the
        mean over served ones is judged.
        """
        if self.entropy is None:
            return np.sqrt(self.variance["total"])
        return 1 - self.mean.max(1)

    @property
    def moments(self) -> np.ndarray:
        """Rows × quantities, as `moments` of a mixture."""
        if self.entropy is None:
            parts = [self.mean, self.variance["aleatoric"], self.variance["epistemic"]]
        else:
            parts = [*self.mean.T, self.entropy["aleatoric"], self.entropy["epistemic"]]
        return np.stack(parts, axis=-1)

    def abstaining(self, above: float | None) -> "RowPrediction":
        """A copy that marks the rows with an uncertainty above the bound; None removes the marks.

        NaN and infinity, which a diverging forecast has, are above any bound.
        """
        if above is None and self.abstained is None:
            return self
        return replace(self, abstained=None if above is None else ~(self.uncertainty <= above))

    @property
    def is_finite(self) -> bool:
        """Whether all means and variances are finite numbers."""
        return all(np.isfinite(values).all() for values in (self.mean, *self.variance.values()))

    @property
    def num_values(self) -> int:
        arrays = (v for answer in self.answers.values() for v in answer.per_row().values())
        asked = sum(v.size for v in arrays if isinstance(v, np.ndarray))
        return 8 * self.mean.size + asked + (0 if self.draws is None else self.draws.size)

    def columns(self) -> dict[str, Any]:
        """The columns, whose names depend only on the model and the options."""
        task = "regression" if self.classes is None else "classification"
        task = task if self.times is None else "forecasting"
        columns: dict[str, Any] = {}
        for output in self.outputs:
            values = output.values(self)
            if task not in output.tasks:
                continue
            if output.name == "mc_error":
                values = np.full_like(self.mean, np.nan) if values is None else values
            if output.per_class:
                columns |= self._per_class(output, values)
            elif values is not None:
                columns[output.name] = values
            if output.name == "mc_error":
                columns |= _bounds(self.intervals)
        columns |= self._errors()
        for answer in self.answers.values():
            columns |= answer.columns()
        return columns

    def rows_below(self) -> dict[str, Any]:
        """Columns of the rows that come after those of the prediction, such as groups of series."""
        below = {k: v for one in self.answers.values() for k, v in one.rows_below().items()}
        if below and self.times is not None:  # those of all series
            ahead = int(below["step"].max())
            below["time"] = np.tile(self.times[:ahead], len(below["step"]) // ahead)
        return below

    def _errors(self) -> Arrays:
        """A column for the error of each column of numbers, named after it; none per class."""
        found = self.mc_errors or {}
        return {
            f"{name}_mc_error": values
            for name, values in found.items()
            if values.ndim == 1 or self.classes is None
        }

    def _per_class(self, output: Output, values: np.ndarray) -> Arrays:
        names = [f"{output.name}_{level_text(name)}" for name in self.classes or ()]
        return {name: values[:, i] for i, name in enumerate(names)}

    def select(self, start: int, stop: int, options: BatchOptions) -> "RowPrediction":
        """The prediction of rows start … stop − 1, with the intervals that the options request."""
        rows = slice(start, stop)
        known = {(interval.kind, interval.level): interval for interval in self.intervals}
        given = {name: value for name, value in vars(self).items() if value is not None}
        selected = {name: _select(value, rows) for name, value in given.items()}
        selected["intervals"] = tuple(
            known[k].select(rows) for k in requested_intervals(options) if k in known
        )
        selected["draws"] = None if self.draws is None else self.draws[:, rows]
        if self.mc_errors is not None:
            others = set(_bounds(self.intervals)) - set(_bounds(selected["intervals"]))
            kept = selected["mc_errors"].items()
            selected["mc_errors"] = {k: v for k, v in kept if k not in others}
        return replace(self, **selected)


def _bounds(intervals: Sequence[Interval]) -> Arrays:
    """The bounds of each interval; names of conformal ones begin with their kind."""
    columns = {}
    for one in intervals:
        columns[bound_name(one.kind, "lower", one.level)] = one.lower
        columns[bound_name(one.kind, "upper", one.level)] = one.upper
    return columns


def _select(value: Any, rows: slice) -> Any:
    """Some rows of a field. A field that is not per row stays the same."""
    if isinstance(value, (np.ndarray, list)):  # first: the others take longer to recognise
        return value[rows]
    if isinstance(value, dict):
        return {name: _select(values, rows) for name, values in value.items()}
    return value.select(rows) if isinstance(value, Answer) else value


def _join(parts: Sequence[Any]) -> Any:
    """A field of consecutive rows. A field that is not per row is taken from the first part."""
    match parts[0]:
        case np.ndarray():
            return np.concatenate(parts)
        case list():
            return list(chain.from_iterable(parts))
        case dict():
            return {name: _join([part[name] for part in parts]) for name in parts[0]}
        case Answer() | Prediction():
            return type(parts[0]).joined(parts)
        case (Interval(), *_):
            return tuple(
                replace(
                    same[0],
                    lower=np.concatenate([interval.lower for interval in same]),
                    upper=np.concatenate([interval.upper for interval in same]),
                )
                for same in zip(*parts, strict=True)
            )
    return parts[0]


def requested_intervals(options: BatchOptions) -> list[tuple[IntervalKind, float]]:
    """Kind and level of each interval in the order of a response: credible ones first."""
    kinds = [kind for kind in KINDS if kind in options.interval_kinds]
    return [(kind, level) for kind in kinds for level in options.intervals]


def bound_name(kind: IntervalKind, end: str, level: float) -> str:
    """The name of a bound in tables: "lower_0.9", of conformal ones "conformal_lower_0.9"."""
    return f"{end}_{level}" if kind == "credible" else f"{kind}_{end}_{level}"


def summarise(
    mixture: Mixture,
    options: BatchOptions,
    score: str | None,
    calibration: Calibration | None = None,
    groups: Int[Tensor, "rows"] | None = None,
) -> Arrays:
    """The per-row arrays of a prediction by name; `bounds` names those of its intervals.

    The names of errors other than `mc_error` begin with `ERROR`.

    Args:
        score: name of the out-of-distribution score (`models.evaluation.out_of_distribution`); None
            if no mixture gives it.
        groups: the number of each row's group, if the calibration has groups.
    """
    raw = mixture
    if calibration is not None:
        mixture = calibration.apply(mixture)
    if isinstance(mixture, CategoricalMixture):
        summary = _summarise_classes(mixture)
    else:
        summary = _summarise_numbers(mixture, options, calibration, groups)
    if score is not None:
        summary["ood_score"] = ood_score(mixture, score)
    summary |= questions.of_mixture(mixture, options, calibration)
    if mixture.num_samples > 1:
        even = options.sampler == "sobol"
        summary["mc_error"] = error_of_mean(mixture, raw, even=even)
        if wants_errors(options):
            summary |= all_errors(mixture, raw, _quantities(summary, options), even=even)
            summary |= _errors_of_answers(mixture, raw, summary, options)
    return to_host(summary)


def moments(mixture: Mixture, calibration: Calibration | None) -> Float[Tensor, "rows quantities"]:
    """The calibrated mean, aleatoric and epistemic variance.

    Of classes: all probabilities, expected entropy and mutual information.
    """
    if calibration is not None:
        mixture = calibration.apply(mixture)
    if isinstance(mixture, CategoricalMixture):
        parts = (*mixture.mean().T, mixture.expected_entropy(), mixture.mutual_information())
    else:
        parts = (mixture.mean(), mixture.aleatoric(), mixture.epistemic())
    return torch.stack(parts, dim=-1)


def _errors_of_answers(
    mixture: Mixture, raw: Mixture, summary: Mapping[str, Tensor], options: BatchOptions
) -> dict[str, Tensor]:
    of_mean = even_error if options.sampler == "sobol" else standard_error

    def error(parts: Tensor) -> Tensor:
        return of_mean(parts, mixture.member)

    found = questions.errors_of(mixture, raw, summary, options, error)
    return {f"{ERROR}{name}": values for name, values in found.items()}


def wants_errors(options: BatchOptions) -> bool:
    """Whether the options need the errors of all outputs."""
    target = options.target_mc_error if isinstance(options, PredictOptions) else None
    return options.return_mc_errors or target is not None


def _quantities(summary: Mapping[str, Tensor], options: BatchOptions) -> dict[str, Tensor]:
    """The median and the bounds of intervals that a summary has, by their names in tables."""
    found = {"median": summary["median"]} if "median" in summary else {}
    for kind, level in requested_intervals(options):
        for end in ("lower", "upper"):
            if f"{kind} {end} {level}" in summary:
                found[bound_name(kind, end, level)] = summary[f"{kind} {end} {level}"]
    return found


def _summarise_numbers(
    mixture: NumberMixture,
    options: BatchOptions,
    calibration: Calibration | None,
    groups: Int[Tensor, "rows"] | None,
) -> dict[str, Tensor]:
    levels = options.intervals if "credible" in options.interval_kinds else ()
    tails = [0.5 * (1 - level) for level in levels]
    kinds = [kind for kind in CALIBRATED if kind in options.interval_kinds]
    wanted = [0.5, *tails, *(1 - tail for tail in tails)]
    found_levels = options.intervals if kinds else ()
    quantiles, conformal = _quantiles(mixture, wanted, found_levels, calibration, groups)
    summary = {
        "mean": mixture.mean(),
        "median": quantiles[0],
        "aleatoric": mixture.aleatoric(),
        "epistemic": mixture.epistemic(),
    }
    for level, (lower, upper) in zip(levels, in_pairs(quantiles[1:]), strict=True):
        summary |= bounds("credible", level, lower, upper)
    if calibration is None or not conformal:
        return summary
    assert not isinstance(calibration, ClassCalibration)
    found = {"conformal": conformal, "adaptive": conformal}
    if adapted := adapted_to(options):
        scores = allowed_scores(options.intervals, adapted, calibration.score)
        found["adaptive"] = calibration.within(mixture, scores)
    for kind in kinds:
        for level, (lower, upper) in zip(options.intervals, found[kind], strict=True):
            summary |= bounds(kind, level, lower, upper)
    return summary


def _quantiles(
    mixture: NumberMixture,
    wanted: Sequence[float],
    levels: Sequence[float],
    calibration: Calibration | None,
    groups: Int[Tensor, "rows"] | None,
) -> tuple[Float[Tensor, "wanted rows"], list[Bounds]]:
    """The wanted quantiles, and the conformal intervals: found together if these are quantiles."""
    if calibration is None or not levels:
        return mixture.quantiles(wanted), []
    assert not isinstance(calibration, ClassCalibration)
    if not isinstance(calibration, ShapeCalibration):
        return mixture.quantiles(wanted), calibration.intervals(mixture, levels, groups)
    tails = calibration.tails(mixture, levels, groups)
    common = tails.new_tensor(wanted).unsqueeze(1).expand(-1, tails.shape[1])
    found = mixture.quantiles_at(torch.cat([common, tails]))
    return found[: len(wanted)], in_pairs(found[len(wanted) :])


def conformal_scores(
    options: BatchOptions, score: Callable[[float], S]
) -> dict[IntervalKind, list[S | float]]:
    """The score that each level allows, for the kinds that come from calibration rows.

    Args:
        score: of a conformal interval; for forecasts one per step.
    """
    levels = options.intervals
    scores: dict[IntervalKind, list[S | float]] = {
        "conformal": [score(level) for level in levels],
        "adaptive": allowed_scores(levels, adapted_to(options), score),
    }
    return {kind: values for kind, values in scores.items() if kind in options.interval_kinds}


def adapted_to(options: BatchOptions) -> tuple[Adapted, ...]:
    """The levels of adaptive intervals; () without labels."""
    return options.adapted if isinstance(options, ResolvedOptions) else ()


def bounds(kind: IntervalKind, level: float, lower: V, upper: V) -> dict[str, V]:
    """The two arrays of an interval in a summary."""
    return {f"{kind} lower {level}": lower, f"{kind} upper {level}": upper}


def _summarise_classes(mixture: CategoricalMixture) -> dict[str, Tensor]:
    return {
        "mean": mixture.mean(),
        "aleatoric": mixture.aleatoric(),
        "epistemic": mixture.epistemic(),
        "expected_entropy": mixture.expected_entropy(),
        "mutual_information": mixture.mutual_information(),
    }


def concatenate(parts: list[Arrays]) -> Arrays:
    """Join the summaries of consecutive chunks of rows."""
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def epistemic_share(summary: Arrays) -> np.ndarray:
    """Epistemic ÷ total variance per row, in [0, 1]; the variances of classes are added."""
    epistemic, aleatoric = summary["epistemic"], summary["aleatoric"]
    if epistemic.ndim > 1:
        epistemic, aleatoric = epistemic.sum(1), aleatoric.sum(1)
    total = epistemic + aleatoric
    with np.errstate(invalid="ignore"):  # ∞ ÷ ∞ in a diverging forecast is NaN
        return np.divide(epistemic, total, out=np.zeros_like(total), where=total > 0)


def intervals(summary: Arrays, options: BatchOptions) -> tuple[Interval, ...]:
    """The requested intervals that the summary has; it may lack conformal ones."""
    levels = {one.level: one.adapted for one in adapted_to(options)}
    return tuple(
        Interval(
            kind=kind,
            level=level,
            lower=summary[f"{kind} lower {level}"],
            upper=summary[f"{kind} upper {level}"],
            adapted_level=levels.get(level, level) if kind == "adaptive" else None,
        )
        for kind, level in requested_intervals(options)
        if f"{kind} lower {level}" in summary
    )


def errors_of(summary: Arrays) -> Arrays | None:
    """The errors of all outputs in a summary, by name."""
    found = {k.removeprefix(ERROR): v for k, v in summary.items() if k.startswith(ERROR)}
    return found or None


def to_prediction(
    summary: Arrays,
    options: ResolvedOptions,
    detector: Detector,
    classes: tuple[ClassName, ...] | None,
) -> RowPrediction:
    """Build the prediction from a summary; `options` say how it was sampled."""
    aleatoric, epistemic = summary["aleatoric"], summary["epistemic"]
    answer = RowPrediction(
        samples=0 if options.sampler == "moments" else options.samples,
        seed=options.seed,
        sampler=options.sampler,
        prune=options.prune,
        mean=summary["mean"],
        median=summary.get("median"),
        variance={
            "aleatoric": aleatoric,
            "epistemic": epistemic,
            "total": aleatoric + epistemic,
        },
        epistemic_share=epistemic_share(summary),
        out_of_distribution=detector.flags(summary["ood_score"]),
        ood_score=summary["ood_score"],
        mc_error=summary.get("mc_error"),
        mc_errors=errors_of(summary) if options.return_mc_errors else None,
        answers=questions.answers(summary, options, classes),
        intervals=intervals(summary, options) if classes is None else (),
        **({} if classes is None else _of_classes(summary, classes)),
    )
    return answer.abstaining(options.abstain_above)


def _of_classes(summary: Arrays, classes: tuple[ClassName, ...]) -> dict[str, Any]:
    """The fields that only predictions of classes have."""
    expected, mutual = summary["expected_entropy"], summary["mutual_information"]
    return {
        "classes": classes,
        "labels": [classes[index] for index in summary["mean"].argmax(1).tolist()],
        "entropy": {
            "total": expected + mutual,
            "aleatoric": expected,
            "epistemic": mutual,
        },
    }
