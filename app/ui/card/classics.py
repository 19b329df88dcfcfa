"""The section about classical methods beside a forecaster, at the same origins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.ui.charts import Cell, Chart, Content, Table, dot_chart
from app.ui.format import with_error
from core.database.schema import Json

LABELS = {
    "seasonal_naive": "seasonal naive",
    "auto_ets": "AutoETS",
    "auto_theta": "AutoTheta",
    "auto_arima": "AutoARIMA",
}
_SAID = {LABELS["seasonal_naive"]: "the seasonal naive forecast"}  # in a sentence
HEADERS = (
    "method",
    "origins",
    "series",
    "CRPS",
    "of this model",
    "scaled CRPS",
    "of this model",
    "90 % coverage",
    "of this model",
    "verdict, by the CRPS",
    "seconds",
)


@dataclass(frozen=True)
class _Pair:
    """A method's metrics, and this model's at the same origins."""

    label: str
    theirs: Json
    own: Mapping[str, object]

    @property
    def ratio(self) -> float | None:
        theirs, own = self.theirs.get("crps"), self.own.get("crps")
        return theirs / own if theirs and isinstance(own, float) and own > 0 else None


def baselines(card: Json) -> Content:
    """A row per method, and how their CRPS compare; empty without such methods."""
    pairs = _pairs(card)
    if not pairs:
        return [], []
    table = Table("Classical methods at the same origins", HEADERS, [_row(one) for one in pairs])
    return [table], [_chart(pairs)]


def beside(card: Json) -> Table | None:
    """The main scores of each method and of this model at the same origins; None without any."""
    pairs = _pairs(card)
    if not pairs:
        return None
    headers = ("method", "CRPS", "of this model", "90 % coverage", "of this model", "forecasts")
    rows: list[list[Cell]] = [
        [one.label, *_crps(one), _coverage(one.theirs), _coverage(one.own), one.theirs["origins"]]
        for one in pairs
    ]
    return Table("Beside classical methods, each at the same origins", headers, rows)


def compared(card: Json) -> list[Json]:
    """The methods with the advantage over each, as baselines of tables have it.

    Without those whose forecasts are too few to tell the error of the difference.
    """
    return [
        {
            "kind": _SAID.get(one.label, one.label),
            "advantage": one.theirs.get("advantage"),
            "advantage_error": one.theirs["advantage_error"],
            "metrics": one.theirs,
        }
        for one in _pairs(card)
        if one.theirs.get("advantage_error") is not None
    ]


def _pairs(card: Json) -> list[_Pair]:
    metrics = card["variants"][0]["metrics"]
    return [_pair(name, one, metrics) for name, one in metrics.get("baselines", {}).items()]


def _pair(name: str, theirs: Json, metrics: Json) -> _Pair:
    """Older releases kept this model's scores at fewer origins in `some_origins`."""
    at_all = theirs.get("origins", metrics.get("origins")) == metrics.get("origins")
    same: Json = metrics if at_all else metrics.get("some_origins", metrics)
    own: Json = theirs.get("this_model", same)
    return _Pair(LABELS.get(name, name.replace("_", " ")), theirs, own)


def _row(pair: _Pair) -> list[Cell]:
    theirs, own = pair.theirs, pair.own
    errors = theirs.get("standard_errors", {})
    cells: list[Cell] = [pair.label, theirs.get("origins"), theirs.get("series")]
    for name in ("crps", "scaled_crps"):
        cells += [with_error(theirs.get(name), errors.get(name)), _number(own.get(name))]
    cells += [_coverage(theirs), _coverage(own), verdict(pair.label, theirs), theirs.get("seconds")]
    return cells


def _crps(pair: _Pair) -> list[Cell]:
    error = pair.theirs.get("standard_errors", {}).get("crps")
    return [with_error(pair.theirs.get("crps"), error), _number(pair.own.get("crps"))]


def verdict(label: str, theirs: Json) -> str | None:
    """Which of the two is better, and by how much; None if it was not compared."""
    found, difference = theirs.get("verdict"), theirs.get("advantage")
    if found is None or difference is None:
        return None
    by = with_error(abs(difference), theirs.get("advantage_error"))
    by = by if isinstance(by, str) else f"{by:.3g}"
    if found == "no difference":
        return f"no difference to be seen: {by}"
    return f"{'this model' if found == 'better' else label} is better by {by}"


def _coverage(metrics: Mapping[str, object]) -> Cell:
    found = metrics.get("coverage")
    return _number(found.get("0.9")) if isinstance(found, Mapping) else None


def _number(value: object) -> Cell:
    return value if isinstance(value, float) else None


def _chart(pairs: Sequence[_Pair]) -> Chart:
    """A dot per method: right of 1 this model is better."""
    return dot_chart(
        "baselines-crps-ratio",
        "CRPS beside that of this model",
        "The CRPS of each method ÷ that of this model at the same origins. Right of the line this "
        "model is better.",
        "CRPS ÷ that of this model",
        [(one.label, one.ratio) for one in pairs],
        level=1.0,
    )
