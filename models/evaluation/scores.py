"""The scores of a model: what each one is called, its unit, and which of two values is better.

Pages, comparisons and the API's documentation read this table: a new score needs one line here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Score:
    """One score.

    Args:
        name: in JSON.
        label: in text and charts.
        best: "highest", "lowest" or the best value; None if no value is better than others.
        is_compared: whether tables of several models have a column for it.
        path: in a version's metrics, if it is not the name.
        is_ratio: whether values are positive and compared by ratio, as times and sizes are.
    """

    name: str
    label: str
    best: Literal["highest", "lowest"] | float | None = None
    unit: str = ""
    is_compared: bool = False
    path: tuple[str, ...] = ()
    is_ratio: bool = False

    @property
    def title(self) -> str:
        """The label with the unit: `log likelihood, nats`."""
        return f"{self.label}, {self.unit}" if self.unit else self.label

    @property
    def direction(self) -> str:
        """Which values are better, as a phrase; empty if none is."""
        if isinstance(self.best, str):
            return {"highest": "higher is better", "lowest": "lower is better"}[self.best]
        return "" if self.best is None else f"best at {self.best:g}"

    def read(self, metrics: Mapping[str, Any]) -> float | None:
        """The value in a version's metrics, None if it was not measured."""
        value: Any = metrics
        for key in self.path or (self.name,):
            value = value.get(key) if isinstance(value, Mapping) else None
        return value if isinstance(value, int | float) else None

    def choose(self, values: Iterable[float | None]) -> float | None:
        """The best of these values; None if no value is better or fewer than two differ."""
        known = {value for value in values if value is not None}
        return None if self.best is None or len(known) < 2 else min(known, key=self._loss)

    def gap(self, value: float, best: float) -> float:
        """How much worse a value is than another, in the unit of the score; at least 0."""
        return self._loss(value) - self._loss(best)

    def _loss(self, value: float) -> float:
        match self.best:
            case "highest":
                return -value
            case float(best):
                return abs(value - best)
        return value


SCORES = (  # of a version's metrics, on held-out or labelled rows
    Score("log_likelihood", "log likelihood", "highest", "nats", is_compared=True),
    Score("expected_log_likelihood", "expected log likelihood", "highest", "nats"),
    Score("perplexity", "perplexity", "lowest", is_compared=True),
    Score("rmse", "RMSE", "lowest", is_compared=True),
    Score("mae", "MAE", "lowest"),
    Score("accuracy", "accuracy", "highest", is_compared=True),
    # of two classes those of the rarer one, of more the means
    Score("balanced_accuracy", "balanced accuracy", "highest"),
    Score("average_precision", "average precision", "highest", is_compared=True),
    Score("auroc", "AUROC", "highest"),
    Score("crps", "CRPS", "lowest", is_compared=True),
    Score("mase", "MASE", "lowest", is_compared=True),
    Score("scaled_crps", "scaled CRPS", "lowest"),
    Score("brier", "Brier score", "lowest", is_compared=True),
    Score("coverage_0.9", "90 % coverage", 0.9, is_compared=True, path=("coverage", "0.9")),
    Score("ece_debiased", "ECE without chance", 0.0, is_compared=True),
    # Of few rows chance decides which one is lowest: no value is better.
    Score("ece", "ECE, equal widths", is_compared=True),
    Score("ece_expected", "ECE of a perfect model"),
    Score("ece_adaptive_debiased", "ECE without chance, equal counts", 0.0),
    Score("ece_adaptive", "ECE, equal counts"),
    Score("ece_adaptive_expected", "ECE of a perfect model, equal counts"),
    Score("calibration_error", "calibration error", "lowest"),
    Score("aurc", "area under risk–coverage", "lowest"),
    Score("epistemic_share", "epistemic share"),
    Score("rows", "rows"),
    Score("tokens", "tokens"),
    Score("origins", "origins"),
)
MEASURES = (  # of a comparison's trainings, beside the scores
    Score("ood_auroc", "out-of-distribution AUROC", "highest"),
    Score("train_seconds", "training", "lowest", "s", is_ratio=True),
    Score("predict_ms", "prediction", "lowest", "ms", is_ratio=True),
    Score("bytes", "stored", "lowest", "bytes", is_ratio=True),
    Score("num_weights", "weights"),
)
COMPARED = tuple(score for score in SCORES if score.is_compared)
BY_NAME: Mapping[str, Score] = {score.name: score for score in (*SCORES, *MEASURES)}
POINT_SCORES = ("accuracy", "perplexity", "mase", "rmse")  # a task's main one is its first here


def main_scores(metrics: Mapping[str, Any]) -> list[Score]:
    """The main scores of a version, if measured: that of its point predictions, log likelihood."""
    of_points = [name for name in POINT_SCORES if metrics.get(name) is not None][:1]
    scores = [BY_NAME[name] for name in (*of_points, "log_likelihood")]
    return [score for score in scores if score.read(metrics) is not None]
