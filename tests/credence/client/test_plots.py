"""Pictures of a real model: what they draw is what the service says."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.dates as mdates
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest

from credence.client import Client, TrainedModel
from credence.client.plots import predictions, scores
from credence.client.plots.drawing import draw
from credence.client.plots.files import MAX_ROWS
from credence.client.plots.picture import Line, Picture, number_text
from credence.exceptions import CredenceAPIError
from credence.types import Version
from tests.credence.running import environment

mpl.use("agg")


@pytest.fixture(autouse=True)
def _closed_figures() -> Iterator[None]:
    yield
    plt.close("all")


ROWS = [
    {"x0": 0.5, "x1": 1.0, "kind": "odd"},
    {"x0": None, "x1": 2.0, "kind": "even"},
    {"x0": 900.0, "x1": -900.0, "kind": "odd"},
]


@pytest.fixture(scope="module")
def model(client: Client, version: Version) -> TrainedModel:
    """Of the same rows, with enough held-out ones that importance is measured."""
    training: Any = {"epochs": 5, "validation_fraction": 0.2}
    data = version["dataset"]
    return client.train(
        data, target="y", model="pictured", network={"hidden": [8]}, training=training, pruning=[]
    )


def line_values(ax: Any) -> list[list[float]]:
    return [np.asarray(line.get_ydata(), dtype=float).tolist() for line in ax.lines]


def test_calibration_is_the_coverage_of_the_pit(model: TrainedModel) -> None:
    picture = scores.calibration(model.description, model.metrics)
    diagonal, coverage, dots = picture.marks
    rows = sum(model.metrics["pit"])
    at = scores.LEVELS.index(0.9)
    assert coverage.y[at] == pytest.approx(model.metrics["coverage"]["0.9"], abs=1 / rows)
    assert dots.error[at] == pytest.approx((dots.y[at] * (1 - dots.y[at]) / rows) ** 0.5)
    assert list(coverage.y) in line_values(model.plot_calibration())
    assert diagonal.dashed


def test_accuracy_by_confidence_is_that_of_the_bins() -> None:
    bins = [{"rows": 4, "confidence": 0.6, "accuracy": 0.5}]
    version: Any = {"model": "m", "version": 1, "task": "classification"}
    _, line, dots = scores.calibration(version, {"reliability": bins}).marks
    assert (list(line.x), list(line.y), list(dots.error)) == ([0.6], [0.5], [0.25])
    with pytest.raises(ValueError, match="no scores of calibration"):
        scores.calibration(version | {"task": "language_model"}, {})


def test_calibration_on_given_rows_is_that_of_an_evaluation(
    model: TrainedModel, version: Version
) -> None:
    given = model.evaluate(version["dataset"])
    expected = scores.calibration(model.description, given, "given rows")
    assert list(expected.marks[1].y) in line_values(model.plot_calibration(version["dataset"]))


def test_importance_is_sorted_with_its_errors(model: TrainedModel) -> None:
    (strips,) = scores.importance(model.description, "mean").marks
    found = {one["name"]: one for one in model.description["importance"]["features"]}
    assert set(strips.names) == {"x0", "x1", "kind"}
    assert list(strips.middle) == sorted((one["mean"] for one in found.values()), reverse=True)
    for name, middle, high in zip(strips.names, strips.middle, strips.high, strict=True):
        assert high - middle == pytest.approx(found[name]["mean_error"])
    none: Any = {**model.description, "importance": {}}
    with pytest.raises(ValueError, match="at least 8 held-out rows"):
        scores.importance(none)
    ax = model.plot_importance("epistemic")
    assert len(ax.get_yticks()) == 3
    with pytest.raises(ValueError, match="none of mean, aleatoric, epistemic"):
        model.plot_importance("noise")  # type: ignore[arg-type]


def test_strips_are_the_intervals_and_strange_rows_are_marked(model: TrainedModel) -> None:
    predicted = model.predict(ROWS, intervals=[0.5], seed=1)
    (strips,) = predictions.intervals(predicted, 0.5).marks
    lower, upper = predicted.interval(0.5)
    assert list(strips.low) == lower.tolist()
    assert list(strips.high) == upper.tolist()
    assert strips.marked == [False, False, True]
    figure = model.plot_intervals(ROWS, level=0.5, seed=1, backend="plotly")
    usual, unlike = figure.data
    assert list(unlike.y) == ["2"]
    np.testing.assert_allclose(np.add(usual.x, usual.error_x.array), upper[:2])
    assert len(model.plot_intervals(ROWS, most=2).get_yticks()) == 2
    with pytest.raises(ValueError, match="predict with intervals"):
        predictions.intervals(predicted, 0.8)


def test_a_band_goes_along_one_feature_and_holds_the_others(model: TrainedModel) -> None:
    rows = [*ROWS[:2], {"x0": 1.5, "x1": 3.0, "kind": "odd"}]
    ax = model.plot_band(rows, "x1", seed=1)
    line = next(one for one in ax.lines if len(one.get_xdata()) > 2)
    x = np.asarray(line.get_xdata(), dtype=float)
    assert (x.min(), x.max()) == (1.0, 3.0)
    held = [{"x0": 1.0, "x1": value, "kind": "odd"} for value in x]  # a median, the most frequent
    expected = model.predict(held, seed=1)
    np.testing.assert_allclose(np.asarray(line.get_ydata(), float), expected.mean, rtol=1e-6)
    assert "kind odd" in ax.get_title()
    names = [trace.name for trace in model.plot_band(rows, "x1", backend="plotly").data]
    assert "90% interval" in names
    with pytest.raises(ValueError, match="no feature of numbers; there are: x0, x1"):
        model.plot_band(rows, "kind")
    with pytest.raises(ValueError, match="along="):
        model.plot_band(rows)


def test_rows_may_be_a_file_that_the_service_reads(model: TrainedModel, tmp_path: Path) -> None:
    """With the semicolons and decimal commas of a German file, as `predict` reads it."""
    path, rows = tmp_path / "neu.csv", pd.DataFrame(ROWS[:2] * 15)
    rows["x1"] = np.linspace(1.0, 3.0, 30)
    rows.to_csv(path, sep=";", decimal=",", index=False)
    for given in (path, str(path)):
        band = model.plot_band(given, "x1", seed=1)
        assert line_values(band) == line_values(model.plot_band(rows, "x1", seed=1))
    assert line_values(model.plot_band(path, "x1", seed=1, delimiter=";")) == line_values(band)
    strips = model.plot_intervals(str(path), seed=1, backend="plotly")
    expected = model.plot_intervals(rows, seed=1, backend="plotly")
    np.testing.assert_allclose(strips.data[0].x, expected.data[0].x, rtol=1e-6)


def test_a_band_of_a_long_file_has_the_range_of_all_its_rows(
    model: TrainedModel, tmp_path: Path
) -> None:
    path = tmp_path / "long.csv"
    rows = pd.DataFrame(ROWS[:2] * (MAX_ROWS // 2) + [{"x0": 0.0, "x1": 7.5, "kind": "odd"}])
    rows.to_csv(path, index=False)
    (line,) = (one for one in model.plot_band(path, "x1").lines if len(one.get_xdata()) > 2)
    assert (min(line.get_xdata()), max(line.get_xdata())) == (1.0, 7.5)


DAYS, AHEAD = 60, 5


def history() -> pd.DataFrame:
    """Sales of 60 days, of which the weekend has more."""
    days = pd.date_range("2026-01-01", periods=DAYS, freq="D")
    noise = np.random.default_rng(0).normal(size=DAYS)
    return pd.DataFrame({"day": days, "sold": 20.0 + 5 * (days.dayofweek > 4) + noise})


@pytest.fixture(scope="module")
def forecaster(client: Client) -> TrainedModel:
    return client.train(
        history(),
        target="sold",
        model="daily",
        task="forecasting",
        forecast={"time": "day", "horizon": AHEAD, "classics": False},
        network={"hidden": [4]},
        training={"epochs": 2},
        pruning=[],
    )


def records() -> list[dict[str, Any]]:
    table = history()
    pairs = zip(table["day"], table["sold"], strict=True)
    return [{"day": day.isoformat(), "sold": sold} for day, sold in pairs]


@pytest.mark.parametrize("rows", [history(), records(), pl.from_pandas(history())])
def test_a_forecast_follows_the_newest_known_values(forecaster: TrainedModel, rows: Any) -> None:
    table = history()
    expected = forecaster.predict(table, horizon=AHEAD, intervals=[0.9], seed=1)
    lower, upper = expected.interval(0.9)
    steps = pd.date_range("2026-03-02", periods=AHEAD, freq="D")
    shown = table.tail(3 * AHEAD)
    ax = forecaster.plot_band(rows, horizon=AHEAD, seed=1)
    ax.figure.canvas.draw()
    drawn = {len(line.get_ydata()): line for line in ax.lines}
    line, known = drawn[AHEAD], drawn[3 * AHEAD]
    np.testing.assert_allclose(np.asarray(line.get_ydata(), float), expected.mean, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(known.get_ydata(), float), shown["sold"])
    days = [mdates.num2date(ax.convert_xunits(x)).date() for x in line.get_xdata()]
    assert days == [step.date() for step in steps]
    days = [mdates.num2date(ax.convert_xunits(x)).date() for x in known.get_xdata()]
    assert days == [day.date() for day in shown["day"]]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("day", "sold")

    figure = forecaster.plot_band(rows, horizon=AHEAD, seed=1, backend="plotly")
    below, above, *_, dots = figure.data
    assert (above.name, dots.name) == ("90% interval", "known values")
    np.testing.assert_allclose(below.y, lower, rtol=1e-5)
    np.testing.assert_allclose(above.y, upper, rtol=1e-5)
    assert pd.to_datetime(above.x).tolist() == steps.tolist()
    assert pd.to_datetime(dots.x).tolist() == shown["day"].tolist()


def test_a_history_may_be_a_file(forecaster: TrainedModel, tmp_path: Path) -> None:
    path, table = tmp_path / "history.csv", history()
    table.to_csv(path, index=False)
    ax, expected = (forecaster.plot_band(rows, seed=1) for rows in (str(path), table))
    for ours, theirs in zip(line_values(ax), line_values(expected), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    days = pd.date_range("2020-01-01", periods=MAX_ROWS + 1, freq="D")
    pd.DataFrame({"day": days, "sold": 20.0}).to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"history\.csv has 1,001 rows: .* give a frame"):
        forecaster.plot_band(path)


def test_times_that_cannot_be_drawn_are_named(forecaster: TrainedModel) -> None:
    german = [{"day": f"{day:%d.%m.%Y}", "sold": sold} for day, sold in history().to_numpy()]
    with pytest.raises((ValueError, CredenceAPIError), match=r"01\.|day"):
        forecaster.plot_band(german)


def test_a_band_of_several_series_is_refused(client: Client) -> None:
    several = pd.concat([history().assign(shop=shop) for shop in ("north", "south")])
    model = client.train(
        several,
        target="sold",
        model="daily-shops",
        task="forecasting",
        forecast={"time": "day", "key": "shop", "horizon": AHEAD, "classics": False},
        network={"hidden": [4]},
        training={"epochs": 2},
        pruning=[],
    )
    with pytest.raises(ValueError, match="several series: give the rows of one"):
        model.plot_band(several)
    assert model.plot_band(several[several["shop"] == "north"]).lines


def is_inside(text: Any, ax: Any) -> bool:
    """Whether nothing of a text is cut off at the sides of its figure."""
    ax.figure.canvas.draw()
    box, figure = text.get_window_extent(), ax.figure.bbox
    return bool(box.x0 >= 0 and box.x1 <= figure.width)


def test_a_title_names_the_first_typical_values_and_is_not_cut_off() -> None:
    values: dict[str, Any] = {
        "Datum": pd.Timestamp("2025-02-13"),
        "Bau": pd.Timestamp("2025-02-13T06:30"),
    }
    values |= {f"Merkmal {i}": text for i, text in enumerate(["Altbau, saniert " * 9] * 9)}
    rows: Any = {"Fläche": [1.0], "Preis": [1_234_567.0], **{n: [v] for n, v in values.items()}}
    text = predictions.typical_row(rows, "Fläche")
    named = "at Preis 1.235 million, Datum 2025-02-13, Bau 2025-02-13 06:30 and 9 more"
    assert " ".join(text.split()) == named
    del rows["Preis"], rows["Bau"]
    text = predictions.typical_row(rows, "Fläche")
    assert " ".join(text.split()).startswith("at Datum 2025-02-13, Merkmal 0 Altbau, saniert")
    assert text.endswith(" more")
    marks = [Line([0.0, 1.0], [0.0, 1.0], "mean")]
    ax = draw(Picture(f"Preis by Fläche: immobilien-muenchen version 1{text}", "", "", marks))
    assert is_inside(ax.title, ax)
    figure = draw(Picture(f"A{text}", "", "", marks), "plotly")
    assert figure.layout.title.text.count("<br>") == text.count("\n") >= 2
    assert predictions.typical_row({"Fläche": [1.0]}, "Fläche") == ""


def test_axes_say_the_target_the_level_and_the_unit(model: TrainedModel) -> None:
    ax = model.plot_intervals(ROWS, level=0.995)
    assert ax.get_xlabel() == "y: mean and 99.5% interval"
    assert "(units of y)" in model.plot_importance().get_xlabel()
    assert "(squared units of y)" in model.plot_importance("aleatoric").get_xlabel()


def test_numbers_of_an_axis_are_readable() -> None:
    feature = {"name": "Ein langer Name eines Merkmals", "epistemic": 1.1e8, "epistemic_error": 1e7}
    version: Any = {
        "model": "immobilienpreise-muenchen", "version": 3, "target": "Preis",
        "importance": {"features": [feature]},
    }  # fmt: skip
    ax = draw(scores.importance(version, "epistemic"))
    assert is_inside(ax.xaxis.label, ax)
    assert is_inside(ax.title, ax)
    labels = [text.get_text() for text in ax.get_xticklabels()]
    assert any(label.endswith(" million") for label in labels)
    assert ax.xaxis.get_offset_text().get_text() == ""  # 1e8
    classes = scores.importance(version | {"classes": ["a", "b"]}, "epistemic")
    assert classes.x.endswith("(nats)")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2013.0, "2013"), (12_500.0, "12,500"), (123_456.7, "123,500"), (-1.5e6, "-1.5 million"),
        (2e9, "2 billion"), (0.0123456, "0.01235"), (0.0, "0"), (1e20, "1e+20"),
    ],
)  # fmt: skip
def test_numbers_are_written_as_people_do(value: float, text: str) -> None:
    assert number_text(value, 4) == text


def test_a_wrong_backend_and_a_missing_package_are_named(model: TrainedModel) -> None:
    with pytest.raises(ValueError, match="neither 'matplotlib' nor 'plotly'"):
        model.plot_importance(backend="bokeh")  # type: ignore[arg-type]
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from credence.client.plots.drawing import draw\n"
        "from credence.client.plots.picture import Picture\n"
        "draw(Picture('', '', '', []), 'plotly')\n"
        "draw(Picture('', '', '', []))\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert "pip install matplotlib, or give backend='plotly'" in done.stderr


def test_a_picture_may_be_drawn_on_given_axes(model: TrainedModel) -> None:
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert model.plot_importance(ax=ax) is ax
    with pytest.raises(ValueError, match="leave it out with plotly"):
        model.plot_importance(ax=ax, backend="plotly")
