"""What is left of an answer once it is short."""

from credence.agents.brief import scores


def test_coverages_say_of_which_intervals_they_are() -> None:
    metrics = {"rmse": 1.5, "coverage": {"0.9": 0.87}, "conformal_coverage": {"0.9": 0.91}}
    assert scores(metrics) == {
        "rmse": 1.5,
        "coverage_of_90_percent_conformal_intervals": 0.91,
        "coverage_of_90_percent_credible_intervals": 0.87,
    }
    assert scores({"rmse": 1.5, "coverage": {}, "conformal_coverage": None}) == {"rmse": 1.5}
