"""The pages of a forecast: steps ahead that are filled in, reasons in a line, true values."""

from app.ui.future_rows import future_rows

MONTHS, HORIZON = 60, 4


def test_steps_follow_the_last_time_and_repeat_the_last_season() -> None:
    forecast = {"time": "t", "key": None, "static": None, "past": [], "season": 2, "horizon": 3}
    about = {"forecast": forecast, "target": "y", "features": [{"name": "p"}, {"name": "t"}]}
    history = [{"t": 10.0 * i, "y": 1.0, "p": i} for i in range(4)]
    assert future_rows(history, about) == [
        {"t": 40.0, "p": 2}, {"t": 50.0, "p": 3}, {"t": 60.0, "p": 2},
    ]  # fmt: skip
    begun = [*history, {"t": 40.0, "y": None, "p": 9}]  # a step ahead that the data has
    assert [row["t"] for row in future_rows(begun, about)] == [50.0, 60.0]
    assert future_rows(history, about | {"features": [{"name": "t"}]}) == []
    assert future_rows(history[:1], about) == []
