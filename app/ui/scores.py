"""Scores of versions side by side, with the best ones marked."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.ui.calibration import calibration_charts
from app.ui.charts import Cell, Chart, line_chart, variant_name
from app.ui.format import with_error
from core.database.schema import Json
from models.evaluation.scores import BY_NAME, COMPARED, SCORES, main_scores

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
    """A cell of a table: a value (None if not measured), and whether it is the best."""

    value: float | None
    is_best: bool


def headline(metrics: Json) -> list[tuple[str, Cell]]:
    """Labels of the main scores of a version, and their values with standard errors."""
    errors = metrics.get("standard_errors", {})
    return [
        (score.label, with_error(metrics[score.name], score.read(errors)))
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
        rows = f"{metrics['rows']:,} {'held-out row' if metrics['rows'] == 1 else 'held-out rows'}"
        return f"inside the {100 * float(LEVEL):g} % interval", f"{100 * share:.0f} % of {rows}"
    if metrics.get("ece_debiased") is not None:
        error = metrics["standard_errors"]["ece_debiased"]
        own, raw, perfect = (
            100 * metrics[name] for name in ("ece_debiased", "ece", "ece_expected")
        )
        text = (
            f"{max(0.0, own):.1f} ± {100 * error:.1f} % "
            f"(with chance {raw:.1f} %; a perfect model {perfect:.1f} %)"
        )
        return "calibration error (ECE) without chance", text
    if metrics.get("ece") is not None:  # of an older release
        return "calibration error (ECE), chance included", f"{100 * metrics['ece']:.1f} %"
    return None


def score_table(metrics: Sequence[Json]) -> tuple[list[str], list[list[ScoreCell]]]:
    """Titles of the scores that any of `metrics` has, and a row of cells for each of them."""
    columns = [(score, [score.read(m) for m in metrics]) for score in COMPARED]
    known = [(s, values) for s, values in columns if any(v is not None for v in values)]
    cells = [_cells(values, score.choose(values)) for score, values in known]
    rows = [[column[i] for column in cells] for i in range(len(metrics))]
    return [score.title for score, _ in known], rows


def _cells(values: Sequence[float | None], best: float | None) -> list[ScoreCell]:
    return [ScoreCell(value, value is not None and value == best) for value in values]


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
        "Higher is better, further left is smaller.",
        "stored, kB",
        BY_NAME["log_likelihood"].title,
        [
            (s.name, [s.variant["bytes"] / 1000], [s.variant["metrics"].get("log_likelihood")])
            for s in chosen
        ],
    )
