"""Stored models answer what they answered when their golden answers were recorded.

`ask` asks as the service does, by compiled kernels and by torch alone; both must give the same
numbers. Series and texts have no kernels. `make` says how models and answers were made.

Tolerances. Networks compute in float32, whose rounding is 6e-8 of a number. A sum over the weights
of these small networks, passed through two layers, loses two digits; quantiles are found to some
1e-6 of the scale. So outputs agree to 1e-4 of each number, or to 1e-5 of the largest number beside
it where two of almost equal size were subtracted. Monte-Carlo errors of quantiles divide by a
density that is itself an estimate: 1e-3. Classes of equal probability stand in a set in any order.
"""

import json
from typing import Any

import numpy as np
import pytest

from models.artifact.files import read_model
from models.prediction.compiled.compiler import compiler
from tests.models.golden.make import ANSWERS, ARTIFACTS, CASES, ask, by

RELATIVE, ABSOLUTE = 1e-4, 1e-5
OF_ERRORS = 1e-3
OF_ALL = 1e-7  # of the largest number of a document whose members are differences of one another
OF_CONSTANTS = 2e-7  # error of a noise that is the same in all samples: rounding of float32
ZERO = 1e-12  # of what is 0 but for rounding, such as a cost that no information saves

# 38 of 40 draws lie far below the other two: between them F is 0.95, to 1e-14, for any number.
PLATEAUS = {
    ("swag", 2): (
        "/intervals/1/upper",
        "/quantiles/2/values",
        "/mc_errors/upper_0.9",
        "/mc_errors/quantile_0.95",
    )
}


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    assert compiler().wait()


@pytest.mark.parametrize("name", CASES)
def test_a_stored_model_answers_as_before(name: str) -> None:
    model = read_model(ARTIFACTS / name)
    backends = ("kernels", "torch") if model.has_independent_rows else ("torch",)
    wrong = []
    for number, line in enumerate(json.loads((ANSWERS / f"{name}.json").read_text())):
        for backend in backends:
            with by(backend):
                found = ask(model, line["request"])
            different = differences(found, line["answer"])
            known = PLATEAUS.get((name, number), ())
            different = [one for one in different if one.split(":")[0] not in known]
            wrong += [f"request {number} by {backend}{one}" for one in different]
    assert not wrong, "\n".join(wrong)


def differences(found: Any, expected: Any, path: str = "", beside: float = 0.0) -> list[str]:
    """Where two documents differ, as pointers with both values.

    Args:
        beside: the largest number of which those of the documents may be differences.
    """
    numbers = _numbers(expected)
    if numbers is not None:
        return _of_numbers(found, numbers, path, beside)
    match expected:
        case dict():
            if not isinstance(found, dict) or found.keys() != expected.keys():
                return [f"{path}: {found!r} has not the members of {expected!r}"]
            if path.endswith("/contributions"):
                beside = max(_largest(one) for one in expected.values())
            pairs = [(name, found[name], expected[name]) for name in expected]
        case list() if path.startswith("/sets") and path.endswith("/classes"):
            pairs = [(f"{i}", set(a), set(b)) for i, (a, b) in enumerate(_pairs(found, expected))]
        case list() if isinstance(found, list) and len(found) == len(expected):
            pairs = [(f"{i}", a, b) for i, (a, b) in enumerate(_pairs(found, expected))]
        case _:
            return [] if found == expected else [f"{path}: {found!r} is not {expected!r}"]
    each = (differences(a, b, f"{path}/{name}", beside) for name, a, b in pairs)
    return [text for texts in each for text in texts]


def _pairs(found: Any, expected: Any) -> Any:
    return zip(found, expected, strict=True)


def _of_numbers(found: Any, expected: np.ndarray, path: str, beside: float) -> list[str]:
    values = _numbers(found)
    if values is None or values.shape != expected.shape:
        return [f"{path}: {found!r} is not {expected!r}"]
    relative = OF_ERRORS if "mc_error" in path else RELATIVE
    absolute = ABSOLUTE * _largest(expected.tolist()) + OF_ALL * beside + ZERO
    absolute += OF_CONSTANTS if "mc_error" in path else 0
    close = np.isclose(values, expected, rtol=relative, atol=absolute, equal_nan=True)
    return [] if close.all() else [f"{path}: {values[~close][:3]} is not {expected[~close][:3]}"]


def _numbers(value: Any) -> np.ndarray | None:
    """Numbers in lists of equal lengths as an array; null is one that is not finite."""
    if isinstance(value, bool | dict | str | None) or value == []:
        return None
    try:
        found = np.array(value, dtype=object)
    except ValueError:  # lists of other lengths
        return None
    flat = found.ravel().tolist()
    if not all(one is None or type(one) in {int, float} for one in flat):
        return None
    return found.astype(float)


def _largest(value: Any) -> float:
    """The largest absolute number in a document."""
    numbers = _numbers(value)
    if numbers is not None:
        return float(np.abs(numbers[~np.isnan(numbers)]).max(initial=0.0))
    each = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return max(map(_largest, each), default=0.0)
