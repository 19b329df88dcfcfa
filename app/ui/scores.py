"""Scores of versions side by side, the best of each marked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.ui.charts import Chart, Line, line_chart, variant_name
from app.ui.sections import DIAGONAL, SCORES, coverage_line, reliability_line
from core.database.schema import Json

HIGHER_IS_BETTER = ("log_likelihood", "accuracy")
COMPARED = (
    *("log_likelihood", "perplexity", "rmse", "mae", "crps", "mase"),
    *("accuracy", "brier", "ece", "aurc"),
)
TRUSTED = "0.9"  # the level of the intervals that are shown everywhere
HEADLINES = ("accuracy", "perplexity", "mase", "rmse")


@dataclass(frozen=True)
class Scored:
    """A variant of a version, as it stands in a table beside others."""

    model: str
    version: int
    variant: Json
    dataset: str

    @property
    def key(self) -> str:
        """How an address names it."""
        return f"{self.model}/{self.version}/{self.variant['prune']:g}"

    @property
    def name(self) -> str:
        """How people do."""
        return f"{self.model} {self.version}, {variant_name(self.variant['prune'])}"


@dataclass(frozen=True)
class Score:
    """A cell: what was measured, if it was, and whether nobody has better."""

    value: float | None
    is_best: bool


def headline(metrics: Json) -> list[tuple[str, float]]:
    """What is told of a model in one line: its error, and the log likelihood."""
    names = [*(name for name in HEADLINES if metrics.get(name) is not None)][:1]
    names += ["log_likelihood"] if metrics.get("log_likelihood") is not None else []
    return [(SCORES[name].partition(",")[0], metrics[name]) for name in names]


def trust(metrics: Json) -> tuple[str, str] | None:
    """How far its own doubt can be believed: of numbers how many were inside its intervals."""
    held = (metrics.get("coverage") or {}).get(TRUSTED)
    if held is not None:
        rows = f"{metrics['rows']:,} {'held-out row' if metrics['rows'] == 1 else 'held-out rows'}"
        return f"its {100 * float(TRUSTED):g} % intervals held", f"{100 * held:.0f} % of {rows}"
    if metrics.get("ece") is not None:
        return "its probabilities are off by (ECE), held out", f"{100 * metrics['ece']:.1f} %"
    return None


def score_table(metrics: Sequence[Json]) -> tuple[list[str], list[list[Score]]]:
    """Names of the scores that any has, and a row of them for each."""
    names = [name for name in COMPARED if any(m.get(name) is not None for m in metrics)]
    best = {name: _best(name, [m.get(name) for m in metrics]) for name in names}
    rows = [
        [Score(m.get(n), m.get(n) is not None and m[n] == best[n]) for n in names] for m in metrics
    ]
    return [SCORES[name] for name in names], rows


def _best(name: str, values: Sequence[float | None]) -> float | None:
    """None where there is nothing to choose from."""
    known = [value for value in values if value is not None]
    if len(known) < 2 or len(set(known)) == 1:
        return None
    return max(known) if name in HIGHER_IS_BETTER else min(known)


def comparison_charts(group: str, chosen: Sequence[Scored]) -> list[Chart]:
    """Quality by size, and how honest each is; `group` tells charts of a page apart."""
    return [_by_size(group, chosen), *_calibration(group, chosen)]


def _by_size(group: str, chosen: Sequence[Scored]) -> Chart:
    return line_chart(
        f"{group}-size",
        "Log likelihood and size",
        "Up is better, left is smaller.",
        "stored, kB",
        SCORES["log_likelihood"],
        [
            (s.name, [s.variant["bytes"] / 1000], [s.variant["metrics"].get("log_likelihood")])
            for s in chosen
        ],
    )


def _calibration(group: str, chosen: Sequence[Scored]) -> list[Chart]:
    """Coverage by level of numbers, accuracy by confidence of classes; of texts neither."""
    covered = _lines(chosen, coverage_line)
    reliable = _lines(chosen, reliability_line)
    if covered:
        words = ("Level and coverage", "level of the interval", "coverage (share of rows inside)")
        reading = "Below the diagonal intervals are too narrow, above it too wide."
    elif reliable:
        words = ("Confidence and accuracy", "confidence", "accuracy (share of right labels)")
        reading = "Below the diagonal a model is too sure of itself, above it too modest."
    else:
        return []
    title, x, y = words
    return [
        line_chart(
            f"{group}-calibration",
            title,
            reading,
            x,
            y,
            covered or reliable,
            reference=DIAGONAL,
            percent=True,
        )
    ]


def _lines(chosen: Sequence[Scored], read: Callable[[Json], Line | None]) -> list[Line]:
    found = ((scored.name, read(scored.variant["metrics"])) for scored in chosen)
    return [(name, line[1], line[2]) for name, line in found if line]
