"""The pictures of a version as its methods."""

from typing import TYPE_CHECKING, Any, Literal, Unpack

from credence.client.job_calls import evaluation
from credence.client.operations import Operation, method
from credence.client.plots.drawing import Backend, draw
from credence.types import PredictSettings, Version

if TYPE_CHECKING:
    from credence.client.calls import Calls


class Plots:
    """Pictures with matplotlib (`ax` draws on given axes) or `backend="plotly"`.

    They return matplotlib's axes or plotly's figure, and raise ModuleNotFoundError, which names the
    package, if it is not installed.
    """

    description: Version
    _calls: "Calls"

    @method
    def plot_calibration(
        self, data: Any = None, *, backend: Backend = "matplotlib", ax: Any = None
    ) -> Operation[Any]:
        """Coverage by level of the intervals, or accuracy by confidence, beside the diagonal.

        Args:
            data: labelled rows in any form that `Client.train` takes, which a job then evaluates;
                by default the held-out rows of training.

        Raises:
            ValueError: the model has no scores of calibration.
            JobFailed: the evaluation failed or was cancelled.
        """
        from credence.client.plots.scores import calibration  # noqa: PLC0415

        if data is None:
            picture = calibration(self.description, self.description["metrics"])
        else:
            metrics = yield from evaluation(self._calls, self.description, data)
            picture = calibration(self.description, metrics, "given rows")
        return draw(picture, backend, ax)

    @method
    def plot_importance(
        self,
        part: Literal["mean", "aleatoric", "epistemic"] = "mean",
        *,
        most: int = 20,
        backend: Backend = "matplotlib",
        ax: Any = None,
    ) -> Operation[Any]:
        """How much each feature changes the mean, or a part of the variance, with errors.

        Raises:
            ValueError: importance was not measured.
        """
        from credence.client.plots.scores import importance  # noqa: PLC0415

        yield from ()  # asks nothing, but is awaited as the others are
        return draw(importance(self.description, part, most), backend, ax)

    @method
    def plot_intervals(
        self,
        rows: Any,
        *,
        level: float = 0.9,
        most: int = 30,
        backend: Backend = "matplotlib",
        ax: Any = None,
        **settings: Unpack[PredictSettings],
    ) -> Operation[Any]:
        """A strip per row: mean and interval; of a classifier the probability of the label.

        Args:
            rows: as of `predict`; the first `most` are shown.
            settings: as of `predict`.
        """
        from credence.client.plots.predictions import intervals  # noqa: PLC0415
        from credence.client.rows import predict_rows  # noqa: PLC0415

        options = PredictSettings(**settings)
        options.setdefault("intervals", [level])
        prediction = yield from predict_rows(self._calls, self.description, rows, options)
        target = self.description["target"]
        return draw(intervals(prediction, level, most, target), backend, ax)

    @method
    def plot_band(
        self,
        rows: Any,
        along: str | None = None,
        *,
        level: float = 0.9,
        future: Any = None,
        backend: Backend = "matplotlib",
        ax: Any = None,
        **settings: Unpack[PredictSettings],
    ) -> Operation[Any]:
        """The mean with its interval, and its epistemic part, along a feature.

        Of a table the other features have typical values: medians, and the most frequent of other
        values. Of a forecast the band is along the time, after the known values.

        Args:
            rows: those that the range and the typical values are taken from, or the history of one
                series, as of `predict`. A file is uploaded as a data set; typical values are those
                of its first 1,000 rows.
            along: a feature of numbers; None for a forecast.
            future: covariates of a forecast's steps, as of `predict`.
            settings: as of `predict`.

        Raises:
            ValueError: `along` is no feature of numbers, the history has several series, or the
                model predicts no numbers.
        """
        from credence.client.plots import bands  # noqa: PLC0415

        options = PredictSettings(**settings)
        options.setdefault("intervals", [level])
        calls, about = self._calls, self.description
        if about["task"] == "forecasting":
            picture = yield from bands.of_forecast(calls, about, rows, future, level, options)
        else:
            picture = yield from bands.of_table(calls, about, rows, along, level, options)
        return draw(picture, backend, ax)
