"""The time between two checkpoints, with a clock that only this test moves."""

from itertools import pairwise

import numpy as np
import pytest

from models.training.checkpoints import CheckpointSpacing, interval

DAY = 86_400.0


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def train(
    cost: float, seconds: float, longest: float = DAY, batch_seconds: float = 0.01
) -> list[tuple[float, float]]:
    """Begin and end of each checkpoint of a training."""
    clock = Clock()
    spacing, found = CheckpointSpacing(longest, clock), []
    begun = clock.now
    while clock.now - begun < seconds:
        clock.now += batch_seconds
        if spacing.is_due():
            start = clock.now - begun
            with spacing.measured():
                clock.now += cost
            found.append((start, clock.now - begun))
    return found


@pytest.mark.parametrize("cost", [0.0, 0.001, 0.2, 0.7])
def test_the_first_checkpoint_comes_after_five_seconds(cost: float) -> None:
    assert train(cost, 60)[0][0] == pytest.approx(5.0, abs=0.02)


@pytest.mark.parametrize("cost", [0.0, 0.01, 0.1, 0.5, 0.7])
def test_a_process_killed_at_any_moment_repeats_ten_seconds_or_five_percent(cost: float) -> None:
    """The work since the last checkpoint that is complete, at its worst: before the next one is."""
    found = train(cost, 2000)
    for (begun, _), (_, complete) in pairwise(found):
        assert complete - begun <= max(10.0, 0.05 * complete)


def test_in_a_long_training_checkpoints_take_one_percent_of_the_time() -> None:
    for cost in (0.05, 0.5, 2.0):
        found = train(cost, 5 * 3600, batch_seconds=1.0)
        hour = [begun for begun, _ in found if begun > 4 * 3600]
        share = cost * len(hour) / 3600
        assert share <= 0.0105, cost
    begins = [begun for begun, _ in train(0.5, 3600, batch_seconds=0.2)]
    assert np.diff(begins)[-1] == pytest.approx(50.5, abs=0.4)  # two mini-batches


def test_the_setting_is_the_longest_time_whatever_the_rest_says() -> None:
    assert interval(0.0, 0.0, 0.3) == 0.3
    assert interval(100.0, DAY, 300.0) == 300.0
    assert len(train(0.01, 10, longest=0.5)) == pytest.approx(10 / 0.52, abs=1)
