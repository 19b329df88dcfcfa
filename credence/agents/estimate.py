"""A rough time of a training, for an agent that asks before it starts one.

Nobody knows it in advance: a fit ends when held-out rows get no better. The constants follow the
measured trainings in docs/quality.md (standard effort, numbers, one core): 35 s with 2,000 rows,
97 s with 12,000. Other efforts are in proportion to the fits and steps that they allow
(`models/tabular/candidates.py`, `models/tabular/race_recipe.py`).
"""

from typing import Literal

from credence.types import Dataset

Effort = Literal["quick", "standard", "thorough"]

FIXED_SECONDS = 5.0  # reading, simple methods, measuring
SECONDS, ROWS, POWER = 35.0, 2_000, 0.57  # 35 s with 2,000 rows; 0.57 = ln(97 / 35) / ln(12 / 2)
USUAL_COLUMNS = 20  # up to here more columns hardly take longer
SHARE = {"quick": 0.3, "standard": 1.0, "thorough": 5.0}
SINGLE = 1.0  # of a fit without a race, which may take more steps than a candidate
ERROR = 3.0  # the time may be so many times shorter or longer


def training_seconds(dataset: Dataset, effort: Effort) -> tuple[int, int]:
    """The seconds of a training on an idle core, between these."""
    return _between(FIXED_SECONDS + SHARE[effort] * _seconds(dataset))


def comparison_seconds(dataset: Dataset, methods: int) -> tuple[int, int]:
    """The seconds of a comparison of so many methods by one worker, between these."""
    return _between(methods * (FIXED_SECONDS + SINGLE * _seconds(dataset)))


def _seconds(dataset: Dataset) -> float:
    columns = dataset.get("num_columns", len(dataset["columns"]))
    wide = max(1.0, columns / USUAL_COLUMNS) ** 0.5
    return SECONDS * wide * float((dataset["rows"] / ROWS) ** POWER)


def _between(seconds: float) -> tuple[int, int]:
    return max(1, round(seconds / ERROR)), round(seconds * ERROR)
