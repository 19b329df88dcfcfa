"""What is asked of a model and what it answers: plain data, in the callers' units."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from torch import Tensor

from models.evaluation.calibration import Calibration, NumberCalibration
from models.evaluation.out_of_distribution import Detector, ood_score
from models.prediction.predictive import CategoricalMixture, GaussianMixture, Mixture

Sampler = Literal["sobol", "monte_carlo", "moments"]
Arrays = dict[str, np.ndarray]
ClassName = str | float | bool
IntervalKind = Literal["credible", "conformal"]
KINDS: tuple[IntervalKind, ...] = ("credible", "conformal")  # in the order of an answer


@dataclass(frozen=True, kw_only=True)
class PredictOptions:
    """How to predict; a `seed` or `sampler` of None takes the model's own (`model.resolve`).

    With `target_mc_error`, sampling ends as soon as the `mc_error` of every row is below it;
    `samples` is the most that are drawn then. `top`, of language models: next tokens that are told;
    `horizon`, of forecasts: how many steps ahead. Rows whose uncertainty (`Prediction.uncertainty`)
    is above `abstain_above` are marked.
    """

    samples: int = 100
    seed: int | None = None
    prune: float = 0.0
    intervals: tuple[float, ...] = (0.9,)
    interval_kinds: tuple[IntervalKind, ...] = KINDS
    sampler: Sampler | None = None
    return_draws: bool = False
    target_mc_error: float | None = None
    top: int | None = None
    horizon: int | None = None
    abstain_above: float | None = None


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A central interval per row, of a level.

    A credible one holds `level` of the predictive mixture. A conformal one holds the target with
    that probability for rows like those it was calibrated on, and is infinite where those are too
    few (`models.evaluation.calibration`).
    """

    level: float
    kind: IntervalKind = "credible"
    lower: np.ndarray
    upper: np.ndarray

    def select(self, rows: slice) -> "Interval":
        """The same interval for some of the rows."""
        return replace(self, lower=self.lower[rows], upper=self.upper[rows])


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Arrays over rows (rows × classes for class probabilities), float64, in the target's units.

    `variance` holds aleatoric, epistemic and total; `entropy`, for classes, the same three in
    nats. `mc_error` is None where it cannot be estimated (one sample). `draws` is
    samples × rows (× classes): predicted means, each from one weight draw shared by all rows.
    `ood_score` is what `out_of_distribution` compares with the variant's threshold; `abstained`
    marks the rows that are too uncertain, None if nobody asked.

    Of a forecast the rows are the steps ahead, at `times`, and `draws` are whole paths with their
    noise, `paths` of each weight draw one after the other.
    """

    samples: int
    seed: int
    sampler: Sampler
    prune: float
    mean: np.ndarray
    variance: Arrays
    epistemic_share: np.ndarray
    out_of_distribution: np.ndarray
    ood_score: np.ndarray
    intervals: tuple[Interval, ...] = ()
    mc_error: np.ndarray | None = None
    classes: tuple[ClassName, ...] | None = None
    labels: list[ClassName] | None = None
    entropy: Arrays | None = None
    draws: np.ndarray | None = None
    times: np.ndarray | None = None
    paths: int | None = None
    abstained: np.ndarray | None = None

    @property
    def uncertainty(self) -> np.ndarray:
        """Per row: total standard deviation in target units, or total entropy in nats."""
        return np.sqrt(self.variance["total"]) if self.entropy is None else self.entropy["total"]

    def abstaining(self, above: float | None) -> "Prediction":
        """The same answer with the rows marked whose uncertainty is above; of None, without marks.

        What is not finite, of a forecast that runs away, is above any bound.
        """
        return replace(self, abstained=None if above is None else ~(self.uncertainty <= above))

    @property
    def is_finite(self) -> bool:
        """Whether all means and variances are finite numbers."""
        return all(np.isfinite(values).all() for values in (self.mean, *self.variance.values()))

    @property
    def num_rows(self) -> int:
        return len(self.mean)

    @property
    def num_values(self) -> int:
        """Numbers in the answer, about."""
        return 8 * self.mean.size + (0 if self.draws is None else self.draws.size)

    def select(self, start: int, stop: int, options: PredictOptions) -> "Prediction":
        """The answer for rows start … stop alone, with the intervals that the options ask for."""
        rows = slice(start, stop)
        known = {(interval.kind, interval.level): interval for interval in self.intervals}
        return replace(
            self,
            mean=self.mean[rows],
            variance={name: values[rows] for name, values in self.variance.items()},
            epistemic_share=self.epistemic_share[rows],
            out_of_distribution=self.out_of_distribution[rows],
            ood_score=self.ood_score[rows],
            intervals=tuple(known[one].select(rows) for one in asked(options) if one in known),
            mc_error=None if self.mc_error is None else self.mc_error[rows],
            labels=None if self.labels is None else self.labels[rows],
            entropy=self.entropy and {name: values[rows] for name, values in self.entropy.items()},
            draws=None if self.draws is None else self.draws[:, rows],
            abstained=None if self.abstained is None else self.abstained[rows],
        )


def asked(options: PredictOptions) -> list[tuple[IntervalKind, float]]:
    """The intervals of an answer in their order: credible ones first, each kind by level."""
    kinds = [kind for kind in KINDS if kind in options.interval_kinds]
    return [(kind, level) for kind in kinds for level in options.intervals]


def summarise(
    mixture: Mixture, options: PredictOptions, score: str, calibration: Calibration | None = None
) -> Arrays:
    """Every per-row array of an answer by name; `bounds` names its intervals.

    `ood_score` is the score of that name (`models.evaluation.out_of_distribution`). A variance
    scale
    leaves a mean where it was, and so the error of that: which is the raw one.
    """
    raw = mixture
    if calibration is not None:
        mixture = calibration.apply(mixture)
    if isinstance(mixture, CategoricalMixture):
        raw, summary = mixture, _summarise_classes(mixture)
    else:
        summary = _summarise_numbers(mixture, options, calibration)
    summary["ood_score"] = ood_score(mixture, score)
    if mixture.num_samples > 1:
        summary["mc_error"] = raw.mc_error()
    return {name: value.cpu().numpy() for name, value in summary.items()}


def _summarise_numbers(
    mixture: GaussianMixture, options: PredictOptions, calibration: Calibration | None
) -> dict[str, Tensor]:
    epistemic = mixture.epistemic()
    summary = {
        "mean": mixture.mean(),
        "aleatoric": mixture.aleatoric(),
        "epistemic": epistemic,
    }
    levels = options.intervals
    if levels and "credible" in options.interval_kinds:
        tails = [0.5 * (1 - level) for level in levels]
        quantiles = mixture.quantiles([*tails, *(1 - tail for tail in tails)])
        for level, lower, upper in zip(levels, quantiles, quantiles[len(levels) :], strict=False):
            summary |= bounds("credible", level, lower, upper)
    if isinstance(calibration, NumberCalibration) and "conformal" in options.interval_kinds:
        mean, deviation = summary["mean"], (summary["aleatoric"] + epistemic).sqrt()
        for level in levels:
            half = calibration.half_width(level) * deviation
            summary |= bounds("conformal", level, mean - half, mean + half)
    return summary


def bounds(kind: IntervalKind, level: float, lower: Tensor, upper: Tensor) -> dict[str, Tensor]:
    """An interval's part of a summary."""
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
    """Summaries of consecutive chunks of rows, joined."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def epistemic_share(summary: Arrays) -> np.ndarray:
    """Epistemic ÷ total variance per row, in [0, 1]; over all classes for probabilities."""
    epistemic, aleatoric = summary["epistemic"], summary["aleatoric"]
    if epistemic.ndim > 1:
        epistemic, aleatoric = epistemic.sum(1), aleatoric.sum(1)
    total = epistemic + aleatoric
    with np.errstate(invalid="ignore"):  # ∞ ÷ ∞, of a forecast that runs away, is NaN
        return np.divide(epistemic, total, out=np.zeros_like(total), where=total > 0)


def intervals(summary: Arrays, options: PredictOptions) -> tuple[Interval, ...]:
    """Those intervals of a summary that were asked for; a model may have no conformal ones."""
    return tuple(
        Interval(
            kind=kind,
            level=level,
            lower=summary[f"{kind} lower {level}"],
            upper=summary[f"{kind} upper {level}"],
        )
        for kind, level in asked(options)
        if f"{kind} lower {level}" in summary
    )


def to_prediction(
    summary: Arrays,
    options: PredictOptions,
    detector: Detector,
    classes: tuple[ClassName, ...] | None,
) -> Prediction:
    """The answer that a summary makes; `options` are settled and tell how it was sampled."""
    aleatoric, epistemic = summary["aleatoric"], summary["epistemic"]
    answer = Prediction(
        samples=0 if options.sampler == "moments" else options.samples,
        seed=int(options.seed or 0),
        sampler=options.sampler or "monte_carlo",
        prune=options.prune,
        mean=summary["mean"],
        variance={
            "aleatoric": aleatoric,
            "epistemic": epistemic,
            "total": aleatoric + epistemic,
        },
        epistemic_share=epistemic_share(summary),
        out_of_distribution=detector.flags(summary["ood_score"]),
        ood_score=summary["ood_score"],
        mc_error=summary.get("mc_error"),
    )
    if classes is None:
        answer = replace(answer, intervals=intervals(summary, options))
    else:
        answer = _with_classes(answer, summary, classes)
    return answer.abstaining(options.abstain_above)


def _with_classes(
    answer: Prediction, summary: Arrays, classes: tuple[ClassName, ...]
) -> Prediction:
    expected, mutual = summary["expected_entropy"], summary["mutual_information"]
    return replace(
        answer,
        classes=classes,
        labels=[classes[index] for index in summary["mean"].argmax(1).tolist()],
        entropy={
            "total": expected + mutual,
            "aleatoric": expected,
            "epistemic": mutual,
        },
    )
