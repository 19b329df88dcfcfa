"""Charts of the distributions of columns, from rows spread evenly over the data set."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from app.ui.charts import Chart, bar_chart, level_chart, plain
from core.context import Context
from core.datasets.dataset import Dataset
from models.features.columns import ColumnProfile, level_text

MOST_ROWS = 10_000  # enough for the shape of a histogram
MOST_CHARTS = 24
_BINS = 24
_LEVELS = 12  # that have their own bar
_DAY = np.timedelta64(1, "D")


def sample_step(dataset: Dataset) -> int:
    """The distance between two rows that are read."""
    return max(1, -(-dataset.rows // MOST_ROWS))


def column_charts(context: Context, dataset: Dataset) -> list[Chart]:
    """A chart for each of the first columns that are not tensors."""
    drawn = [column for column in dataset.columns if column.type != "tensor"][:MOST_CHARTS]
    rows = slice(None, None, sample_step(dataset))
    columns = context.datasets.columns(dataset.id, [column.name for column in drawn], rows)
    charts = (_chart(f"column-{i}", c, columns[c.name]) for i, c in enumerate(drawn))
    return [chart for chart in charts if chart is not None]


def _chart(name: str, column: ColumnProfile, values: np.ndarray) -> Chart | None:
    """The chart of a column; None if all of its values are missing."""
    match column.type:
        case "category" | "boolean":
            return _levels(name, column, values)
        case "text":
            lengths = np.array([len(text) for text in values.tolist()], np.float64)
            return _histogram(name, column.name, "characters", lengths)
        case "datetime":
            known = values[~np.isnat(values)]
            days = (known - np.datetime64("1970-01-01")) / _DAY
            return _time_histogram(name, column.name, days)
    return _histogram(name, column.name, plain(column.name), values[~np.isnan(values)])


def _histogram(name: str, title: str, x_title: str, known: np.ndarray) -> Chart | None:
    if known.size == 0:
        return None
    counts, edges = np.histogram(known, _bins(known))
    starts, width = edges[:-1].tolist(), float(edges[1] - edges[0])
    return bar_chart(name, title, "", x_title, "rows", starts, width, counts.tolist())


def _bins(known: np.ndarray) -> np.ndarray:
    """The edges of the bins. Integers in a small range get one bin per value."""
    low, high = float(known.min()), float(known.max())
    if high - low < 2 * _BINS and np.array_equal(known, np.round(known)):
        return np.arange(low - 0.5, high + 1)
    return np.histogram_bin_edges(known, _BINS)


def _time_histogram(name: str, title: str, days: np.ndarray) -> Chart | None:
    """A histogram over days since 1970, labelled with dates."""
    chart = _histogram(name, title, "time (UTC)", days)
    if chart is None:
        return None
    bars, middles = chart.figure["data"][0], chart.figure["data"][0]["x"]
    bars["x"] = [_time(day) for day in middles]
    bars["width"] = bars["width"] * 86_400_000  # milliseconds, plotly's unit for dates
    for row, middle in zip(chart.table.rows, bars["x"], strict=True):
        row[0] = f"around {middle}"  # type: ignore[index]
    return chart


def _time(days: float) -> str:
    time = np.datetime64("1970-01-01", "s") + np.timedelta64(round(days * 86_400), "s")
    return str(time).replace("T", " ")


def _levels(name: str, column: ColumnProfile, values: np.ndarray) -> Chart | None:
    counts = Counter(map(level_text, _known_levels(column, values)))
    if not counts:
        return None
    first = counts.most_common(_LEVELS)
    if rest := counts.total() - sum(count for _, count in first):
        first.append((f"{len(counts) - _LEVELS} others", rest))
    return level_chart(name, column.name, "rows", first)


def _known_levels(column: ColumnProfile, values: np.ndarray) -> Sequence[str | bool]:
    if column.type == "boolean":
        known: list[str | bool] = (values[~np.isnan(values)] == 1).tolist()
        return known
    return [value for value in values.tolist() if value is not None]
