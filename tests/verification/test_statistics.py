"""The short form of `make verify-statistics`: every figure holds, or a version's note gives it."""

import pytest

from benchmarks.verification.__main__ import run, topics

# The longest takes a minute and a half of processor time, on a busy machine ten times as long.
pytestmark = [pytest.mark.training, pytest.mark.timeout(1_200)]


@pytest.mark.parametrize("topic", topics())
def test_what_is_stated_is_true(topic: str) -> None:
    failed = [check for check in run(topic, "short") if check.verdict == "fails"]
    assert not failed
