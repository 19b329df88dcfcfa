"""The functions of a request that are timed."""

from benchmarks.request_path import STAGES, WHOLE, functions


def test_each_function_is_there_and_each_stage_has_one() -> None:
    """They are found by name, so nothing else tells when one is renamed."""
    for owner, name, _ in functions():
        assert name in owner if isinstance(owner, dict) else callable(getattr(owner, name))
    stages = {stage for _, _, stage in functions()}
    assert stages | {"queue", "compute"} == {*STAGES, WHOLE}  # an answer has these two itself
