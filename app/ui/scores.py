"""Scores of versions side by side, with those marked that are clearly the best."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from app.ui.calibration import calibration_charts
from app.ui.charts import Cell, Chart, line_chart, variant_name
from app.ui.format import with_error
from core.database.schema import Json
from models.evaluation.scores import BY_NAME, COMPARED, SCORES, Score, main_scores

LEVEL = "0.9"  # of the intervals whose coverage is shown


@dataclass(frozen=True)
class Scored:
    """A variant of a version in a table of several."""

    model: str
    version: int
    variant: Json
    dataset: str

    @property
    def key(self) -> str:
        """Its id in the address of the page."""
        return f"{self.model}/{self.version}/{self.variant['prune']:g}"

    @property
    def name(self) -> str:
        """Its name for people."""
        return f"{self.model} {self.version}, {variant_name(self.variant['prune'])}"


@dataclass(frozen=True)
class ScoreCell:
    """A cell of a table: a value with its standard error (None if not measured), and whether it is
    the best by more than chance explains."""

    value: Cell
    is_best: bool


def headline(metrics: Json) -> list[tuple[str, Cell]]:
    """Labels of the main scores of a version, and their values with standard errors."""
    return [
        (score.label, with_error(metrics[score.name], error_of(score, metrics)))
        for score in main_scores(metrics)
    ]


def known_scores(metrics: Json) -> list[tuple[str, float]]:
    """Titles and values of all measured scores, without coverages and counts."""
    scores = [score for score in SCORES if score.best is not None and not score.path]
    return [(s.title, value) for s in scores if (value := s.read(metrics)) is not None]


def trust(metrics: Json) -> tuple[str, str] | None:
    """A label and a value of calibration: the coverage of the intervals, or the ECE."""
    share = (metrics.get("coverage") or {}).get(LEVEL)
    if share is not None:
        what = "forecast step" if "origins" in metrics else "held-out row"
        rows = f"{metrics['rows']:,} {what}{'' if metrics['rows'] == 1 else 's'}"
        return f"inside the {100 * float(LEVEL):g} % interval", f"{100 * share:.0f} % of {rows}"
    if metrics.get("ece_debiased") is not None:
        error = metrics["standard_errors"]["ece_debiased"]
        own = max(0.0, 100 * metrics["ece_debiased"])
        return "probabilities off by", f"{own:.1f} ± {100 * error:.1f} %"
    if metrics.get("ece") is not None:  # of an older release
        return "calibration error (ECE), chance included", f"{100 * metrics['ece']:.1f} %"
    return None


def clear_best(
    score: Score, values: Sequence[float | None], errors: Sequence[float | None]
) -> float | None:
    """The best value, if it is better than each other by more than a standard error.

    The error of a difference is √(a² + b²) of both values' errors, which is too much for scores of
    the same rows. None also if an error is not known.
    """
    best = score.choose(values)
    known = [(v, e) for v, e in zip(values, errors, strict=True) if v is not None]
    if best is None or any(error is None for _, error in known):
        return None
    own = min(error or 0.0 for value, error in known if value == best)
    others = [(value, error or 0.0) for value, error in known if value != best]
    is_clear = all(score.gap(value, best) > math.hypot(error, own) for value, error in others)
    return best if is_clear else None


def score_table(
    metrics: Sequence[Json], *, is_same_data: bool
) -> tuple[list[str], list[list[ScoreCell]]]:
    """Titles of the scores that any of `metrics` has, and a row of cells for each of them.

    Args:
        is_same_data: whether they are of the same held-out rows; else none of them is the best.
    """
    columns = [_column(score, metrics, is_same_data) for score in COMPARED]
    known = [
        (s, c)
        for s, c in zip(COMPARED, columns, strict=True)
        if any(x.value is not None for x in c)
    ]
    rows = [[column[i] for _, column in known] for i in range(len(metrics))]
    return [score.title for score, _ in known], rows


def _column(score: Score, metrics: Sequence[Json], is_same_data: bool) -> list[ScoreCell]:
    values = [score.read(m) for m in metrics]
    errors = [error_of(score, m) for m in metrics]
    best = clear_best(score, values, errors) if is_same_data else None
    return [
        ScoreCell(with_error(value, error), value is not None and value == best)
        for value, error in zip(values, errors, strict=True)
    ]


def error_of(score: Score, metrics: Json) -> float | None:
    """The standard error of a score, if it is known."""
    return score.read(metrics.get("standard_errors", {}))


def comparison_charts(group: str, chosen: Sequence[Scored]) -> list[Chart]:
    """Charts of log likelihood by size, and of calibration.

    Args:
        group: the start of the charts' names, unique on the page.
    """
    measured = [(scored.name, scored.variant["metrics"]) for scored in chosen]
    return [_by_size(group, chosen), *calibration_charts(f"{group}-calibration", measured)]


def _by_size(group: str, chosen: Sequence[Scored]) -> Chart:
    return line_chart(
        f"{group}-size",
        "Log likelihood and size",
        "Higher is better, further left is smaller. Bars are standard errors.",
        "stored, kB",
        BY_NAME["log_likelihood"].title,
        [
            (s.name, [s.variant["bytes"] / 1000], [s.variant["metrics"].get("log_likelihood")])
            for s in chosen
        ],
        errors=[[error_of(BY_NAME["log_likelihood"], s.variant["metrics"])] for s in chosen],
    )
