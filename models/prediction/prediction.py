"""Predictions as plain data, in the caller's units."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.device import to_host
from models.evaluation.adaptive import Adapted, allowed_scores
from models.evaluation.calibration import (
    Bounds,
    Calibration,
    NumberCalibration,
    ShapeCalibration,
    about,
)
from models.evaluation.detector import Detector, ood_score
from models.evaluation.metrics import epistemic_share
from models.likelihoods.mixture import CategoricalMixture, Mixture
from models.likelihoods.number_mixture import Ends, chosen, interval_tails
from models.prediction.answers import questions
from models.prediction.declared_outputs import (
    ENTROPIES,
    LEVEL,
    TEXT_OUTPUTS,
    UNCERTAINTIES,
    Declared,
    bound_names,
    by_error_name,
    closed_name,
    of_task,
)
from models.prediction.monte_carlo_error import (
    all_errors,
    error_of_mean,
    even_error,
    of_classes,
    of_means,
    of_variances,
    standard_error,
)
from models.prediction.options import (
    KINDS,
    BatchOptions,
    IntervalKind,
    PredictOptions,
    ResolvedOptions,
    Sampler,
)
from models.prediction.summary import Summary

CALIBRATED: tuple[IntervalKind, ...] = ("conformal", "adaptive")
ClassName = str | float | bool
S = TypeVar("S")
T = TypeVar("T")


class Interval(NamedTuple):
    """A central interval per row.

    A credible one has the probability `level` under the predictive mixture. A conformal one
    contains the target with that probability for rows like the calibration rows; it is infinite if
    those are too few (`models.evaluation.calibration`). An adaptive one is the conformal one at
    `adapted_level`, which follows labels (`models.evaluation.adaptive`).
    """

    level: float
    kind: IntervalKind
    lower: np.ndarray
    upper: np.ndarray
    adapted_level: float | None = None


@dataclass(frozen=True, kw_only=True)
class Prediction(Summary):
    """The predictions of a model in float64, in units of the target, and how they were sampled.

    Args:
        samples: number of weight draws; 0 if nothing was drawn.
    """

    task: str
    samples: int
    seed: int
    sampler: Sampler
    prune: float

    @property
    def outputs(self) -> Declared:
        """What it may have, in the order of every format."""
        return TEXT_OUTPUTS

    @property
    def num_rows(self) -> int:
        return len(self.out_of_distribution)

    @property
    def out_of_distribution(self) -> np.ndarray:
        """Per row, whether it is unlike the training rows."""
        flags: np.ndarray = self["out_of_distribution"]
        return flags

    @property
    def classes(self) -> tuple[ClassName, ...] | None:
        classes: tuple[ClassName, ...] | None = self.constants.get("classes")
        return classes

    @property
    def num_values(self) -> int:
        """About how many numbers the prediction has."""
        return _size(self)

    @property
    def is_finite(self) -> bool:
        """Whether all means and variances, or log likelihoods, are finite numbers."""
        names = ("mean", *(f"{part}_variance" for part in UNCERTAINTIES), "log_likelihood")
        return all(np.isfinite(self[name]).all() for name in names if name in self.values)


def _size(summary: Summary) -> int:
    size = sum(_length(values) for values in (*summary.values.values(), *summary.errors.values()))
    return size + sum(map(_size, summary.parts.values()))


def _length(values: Any) -> int:
    if isinstance(values, np.ndarray):
        return values.size
    return sum(len(value) if isinstance(value, list | tuple) else 1 for value in values)


@dataclass(frozen=True, kw_only=True)
class RowPrediction(Prediction):
    """The prediction of rows, or of the steps of forecasts.

    Values of classes are rows × classes, `draws` rows × samples (× classes): predicted means, each
    from one weight draw for all rows; of a forecast whole paths with noise, those of a weight draw
    one after the other. `errors` are there if they were requested.
    """

    @property
    def outputs(self) -> Declared:
        return questions.outputs()

    @property
    def mean(self) -> np.ndarray:
        """Of numbers, or of class probabilities."""
        mean: np.ndarray = self["mean"]
        return mean

    @property
    def median(self) -> np.ndarray | None:
        """Of numbers."""
        return self.get("median")

    @property
    def variance(self) -> dict[str, np.ndarray]:
        """`total`, `aleatoric` and `epistemic`."""
        return {part: self[f"{part}_variance"] for part in UNCERTAINTIES}

    @property
    def entropy(self) -> dict[str, np.ndarray] | None:
        """The same of classes, in nats."""
        if self.classes is None:
            return None
        return {part: self[name] for part, name in zip(UNCERTAINTIES, ENTROPIES, strict=True)}

    @property
    def labels(self) -> list[ClassName] | None:
        return self.get("label")

    @property
    def draws(self) -> np.ndarray | None:
        """Samples × rows (× classes)."""
        draws = self.get("draws")
        return None if draws is None else np.moveaxis(draws, 1, 0)

    def with_draws(self, draws: np.ndarray | None) -> Self:
        """A copy with draws, samples × rows (× classes), or without any."""
        if draws is None:
            return self.without("draws")
        return self.with_values(draws=np.moveaxis(draws, 0, 1))

    @property
    def intervals(self) -> tuple[Interval, ...]:
        """In the order of a response: credible ones first."""
        intervals, adapted = [], self.constants.get("adapted_level", ())
        for kind in KINDS:
            ends = [self.get(name) for name in bound_names(kind)]
            for i, level in enumerate(
                self.coordinates.get(LEVEL, ()) if ends[0] is not None else ()
            ):
                moved = adapted[i] if kind == "adaptive" else None
                intervals.append(Interval(level, kind, ends[0][:, i], ends[1][:, i], moved))
        return tuple(intervals)

    @property
    def mc_errors(self) -> dict[str, np.ndarray] | None:
        """Of every output by name; None if they were not requested, or cannot be estimated."""
        if not self.errors:
            return None
        by_name: dict[str, np.ndarray] = {}
        for part in questions.PARTS:
            if part.name in self.parts:
                errors, at = self.parts[part.name].errors, self.parts[part.name].coordinates
                for name, values in errors.items():
                    named = by_error_name({name: values}, part.outputs, self.task, at)
                    by_name |= {f"{part.prefix}{k}": v for k, v in named.items()}
        return by_name | by_error_name(self.errors, self.outputs, self.task, self.coordinates)

    @property
    def uncertainty(self) -> np.ndarray:
        """Per row: total standard deviation in target units, or total entropy in nats."""
        return np.sqrt(self["total_variance"]) if self.classes is None else self[ENTROPIES[0]]

    @property
    def expected_loss(self) -> np.ndarray:
        """Per row: total standard deviation, or 1 − the largest probability.

        As `models.expected_scores.simulation.expected_loss`, by whose mean over held-out rows the
        mean over served ones is judged.
        """
        return np.sqrt(self["total_variance"]) if self.classes is None else 1 - self.mean.max(1)

    @property
    def moments(self) -> np.ndarray:
        """Rows × quantities, as `moments` of a mixture."""
        if self.classes is None:
            parts = [self.mean, self["aleatoric_variance"], self["epistemic_variance"]]
        else:
            parts = [*self.mean.T, *(self[name] for name in ENTROPIES[1:])]
        return np.stack(parts, axis=-1)

    def abstaining(self, above: float | None) -> Self:
        """A copy that marks the rows with an uncertainty above the bound; None removes the marks.

        NaN and infinity, which a diverging forecast has, are above any bound.
        """
        if above is not None:
            return self.with_values(abstained=~(self.uncertainty <= above))
        return self.without("abstained") if "abstained" in self.values else self

    def select(self, start: int, stop: int, options: BatchOptions) -> Self:
        """The prediction of rows start … stop − 1, with the intervals that the options request."""
        part = self.of_rows(slice(start, stop))
        known = list(self.coordinates.get(LEVEL, ()))
        kinds = {
            output.name: output.kind
            for output in of_task(self.outputs, self.task)
            if output.along is LEVEL and output.name in self.values
        }
        unwanted = [k for k, v in kinds.items() if v and v not in options.interval_kinds]
        part = part.without(*unwanted)
        if known == list(options.intervals):
            return part
        places = [known.index(level) for level in options.intervals]

        def of_levels(values: Mapping[str, Any]) -> dict[str, Any]:
            return {k: v[:, places] if k in kinds else v for k, v in values.items()}

        constants = dict(part.constants)
        for name in constants.keys() & {"adapted_level", *map(closed_name, KINDS)}:
            constants[name] = [constants[name][i] for i in places]
        return replace(
            part,
            values=of_levels(part.values),
            errors=of_levels(part.errors),
            coordinates={**self.coordinates, LEVEL: options.intervals},
            constants=constants,
        )


def summarise(
    mixture: Mixture,
    options: BatchOptions,
    score: str | None,
    calibration: Calibration | None = None,
    groups: Int[Tensor, "rows"] | None = None,
) -> Summary:
    """What the options ask of a mixture.

    Args:
        score: name of the out-of-distribution score (`models.evaluation.detector`); None
            if no mixture gives it.
        groups: the number of each row's group, if the calibration has groups.
    """
    raw = mixture
    if calibration is not None:
        mixture = calibration.apply(mixture)
    values = {
        "mean": mixture.mean(),
        "aleatoric_variance": mixture.aleatoric(),
        "epistemic_variance": mixture.epistemic(),
    }
    intervals: dict[str, Tensor] = {}
    tails: dict[str, Tensor] = {}
    if isinstance(mixture, CategoricalMixture):
        values["expected_entropy"] = mixture.expected_entropy()
        values["mutual_information"] = mixture.mutual_information()
    else:
        means, drops_ends = values["mean"], mixture.target.drops_ends
        variances = values["aleatoric_variance"] + values["epistemic_variance"]
        intervals, tails = median_and_intervals(
            mixture.quantiles_at,
            means,
            variances,
            options,
            calibration,
            groups=groups,
            drops_ends=drops_ends,
        )
        intervals |= intervals_about(means, variances, options, calibration, groups)
    if score is not None:
        values["ood_score"] = ood_score(mixture, score)
    values |= intervals | questions.of_mixture(mixture, options, calibration)
    errors: dict[str, Tensor] = {}
    if mixture.num_samples > 1:
        of_mean = even_error if options.sampler == "sobol" else standard_error
        error = partial(of_mean, member=mixture.member)
        errors["mean"] = error_of_mean(mixture, raw, error)
        if wants_errors(options):
            errors |= all_errors(mixture, raw, intervals, tails, error)
            errors |= questions.errors_of(mixture, raw, values, options, error)
    closed = not isinstance(mixture, CategoricalMixture) and mixture.target.integer
    constants = {"closed": True} if closed else {}
    return Summary(values=to_host(values), errors=to_host(errors), constants=constants)


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


def moments_with_influence(
    mixture: Mixture, calibration: Calibration | None, count: int
) -> Float[Tensor, "rows values"]:
    """`moments`, then what each sample adds to them: the quantities of one sample after another.

    Args:
        count: of samples. The mixture of filled rows may have each several times, one after the
            other (`models.prediction.picks`).
    """
    raw, found = mixture, moments(mixture, calibration)
    if calibration is not None:
        mixture = calibration.apply(mixture)
    if isinstance(mixture, CategoricalMixture):
        parts = of_classes(mixture)
        each = [*mixture.probs.unbind(-1), *(parts[name] for name in ENTROPIES[1:])]
    else:
        parts, means = of_variances(mixture), of_means(raw if mixture.is_gaussian else mixture)
        noise, between = (parts[f"{part}_variance"] for part in UNCERTAINTIES[1:])
        each = [torch.zeros_like(noise) if means is None else means, noise, between]
    samples = torch.stack(each, -1).unflatten(0, (count, -1)).mean(1)
    by_row = samples.transpose(0, 1)  # rows × samples × quantities
    return torch.cat([found, by_row.flatten(1).to(found)], 1)


def wants_errors(options: BatchOptions) -> bool:
    """Whether the options need the errors of all outputs."""
    target = options.target_mc_error if isinstance(options, PredictOptions) else None
    return options.return_mc_errors or target is not None


def median_and_intervals(
    quantiles: Callable[[Ends], Ends],
    means: Float[Tensor, "rows"],
    variances: Float[Tensor, "rows"],
    options: BatchOptions,
    calibration: Calibration | None,
    *,
    groups: Int[Tensor, "rows"] | None,
    drops_ends: bool,
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The outputs that are quantiles, and the probabilities below them.

    Args:
        quantiles: of the calibrated distributions, at levels × rows.
        means: of the calibrated distributions.
        variances: their total variances.
    """
    levels = options.intervals if "credible" in options.interval_kinds else ()
    credible = interval_tails(means.new_tensor(levels).unsqueeze(1), drops_ends=drops_ends)
    tails: dict[IntervalKind, Ends] = {"credible": credible.expand(-1, len(means))}
    if isinstance(calibration, ShapeCalibration):
        conformal = partial(calibration.bounds, means, variances, groups=groups)
        for kind, scores in allowed(options, conformal, calibration.score).items():
            tails[kind] = calibration.tails(scores, means, drops_ends=drops_ends)
    middle = torch.full_like(means, 0.5)
    ends = quantiles(torch.cat([middle.unsqueeze(0), *tails.values()]))
    values, below = {"median": ends[0]}, {"median": middle}
    each = ends[1:].split([len(own) for own in tails.values()])
    for (kind, own), found in zip(tails.items(), each, strict=True):
        if len(own):
            pair, probabilities = chosen(found, own, drops_ends=drops_ends)
            values |= zip(bound_names(kind), pair.mT, strict=True)
            below |= zip(bound_names(kind), probabilities.mT, strict=True)
    return values, below


def intervals_about(
    means: Float[Tensor, "rows"],
    variances: Float[Tensor, "rows"],
    options: BatchOptions,
    calibration: Calibration | None,
    groups: Int[Tensor, "rows"] | None,
) -> dict[str, Tensor]:
    """The calibrated intervals that are requested, of targets without a shape.

    Args:
        variances: calibrated total ones.
    """
    if not isinstance(calibration, NumberCalibration):
        return {}
    conformal = partial(calibration.bounds, means, variances, groups=groups)
    values: dict[str, Tensor] = {}
    for kind, scores in allowed(options, conformal, calibration.score).items():
        values |= bounds(kind, about(means, variances.sqrt(), scores))
    return values


def allowed(
    options: BatchOptions,
    conformal: Callable[[Sequence[float]], S],
    score: Callable[[float], T],
) -> dict[IntervalKind, S | list[T | float]]:
    """The scores that intervals contain, for the requested kinds that come from calibration rows.

    Args:
        conformal: those that the conformal intervals of these levels contain, which are also the
            adaptive ones without labels.
        score: that the conformal interval of a level contains, of rows without cells.
    """
    kinds: list[IntervalKind] = [k for k in CALIBRATED if k in options.interval_kinds]
    if not (options.intervals and kinds):
        return {}
    found: dict[IntervalKind, S | list[T | float]] = dict.fromkeys(
        kinds, conformal(options.intervals)
    )
    if "adaptive" in kinds and (adapted := adapted_to(options)):
        found["adaptive"] = allowed_scores(options.intervals, adapted, score)
    return found


def adapted_to(options: BatchOptions) -> tuple[Adapted, ...]:
    """The levels of adaptive intervals; () without labels."""
    return options.adapted if isinstance(options, ResolvedOptions) else ()


def bounds(kind: IntervalKind, ends: Sequence[Bounds]) -> dict[str, Float[Tensor, "rows levels"]]:
    """The values of the outputs of a kind, from the bounds of each level."""
    each = zip(bound_names(kind), zip(*ends, strict=True), strict=False)
    return {name: torch.stack(values).T for name, values in each}


def to_prediction(
    summary: Summary,
    options: ResolvedOptions,
    detector: Detector,
    task: str,
    classes: tuple[ClassName, ...] | None,
) -> RowPrediction:
    """Build the prediction from a summary; `options` say how it was sampled."""
    aleatoric, epistemic = summary["aleatoric_variance"], summary["epistemic_variance"]
    values = {
        **summary.values,
        "total_variance": aleatoric + epistemic,
        "epistemic_share": epistemic_share(epistemic, aleatoric),
        "out_of_distribution": detector.flags(summary["ood_score"]),
    }
    constants: dict[str, Any] = {}
    if classes is not None:
        values["label"] = [classes[index] for index in summary["mean"].argmax(1).tolist()]
        values["predictive_entropy"] = values["expected_entropy"] + values["mutual_information"]
        constants["classes"] = classes
    if "adaptive_lower" in values:
        adapted = {moved.level: moved.adapted for moved in adapted_to(options)}
        constants["adapted_level"] = [adapted.get(level, level) for level in options.intervals]
    if "closed" in summary.constants:
        kinds = [kind for kind in KINDS if bound_names(kind)[0] in values]
        constants |= {closed_name(kind): [True] * len(options.intervals) for kind in kinds}
    answer = RowPrediction(
        values=values,
        errors=summary.errors,
        parts=summary.parts,
        coordinates=questions.coordinates(options, classes),
        constants=constants,
        task=task,
        samples=0 if options.sampler == "moments" else options.samples,
        seed=options.seed,
        sampler=options.sampler,
        prune=options.prune,
    ).with_mc_error(keep=options.return_mc_errors)
    return questions.finished(answer, options).abstaining(options.abstain_above)
