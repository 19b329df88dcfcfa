"""What each feature contributes to the predicted mean, and to both uncertainties."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from models.prediction.declared_outputs import CLASSES, FEATURE, ROWS, Output

PARTS = ("mean", "aleatoric", "epistemic")


def _outputs() -> Iterator[Output]:
    """JSON has all classes, tables and tensors the predicted one, as `label_contribution`."""
    asked = {"option": "explain"}
    in_json: dict[str, Any] = {"column": None, **asked}
    yield Output("features", "name", ROWS, "contributions.features", **in_json)
    for end, place in (("", "contributions"), ("_error", "contributions.standard_error")):
        for part in PARTS:
            yield Output(f"{part}_contribution{end}", "of it", ROWS, f"{place}.{part}", **in_json)
    yield Output("base", "of each part", ROWS, "contributions.base", **in_json)
    in_tables: dict[str, Any] = {"member": None, "along": FEATURE, **asked}
    tensors = []
    for task in ROWS:
        for part in PARTS:
            before = "" if part == "mean" else f"{part}_"
            of = "label" if part == "mean" and task in CLASSES else part
            name, column = f"{of}_contribution", f"{before}contribution"
            yield Output(name, "of it", (task,), column=column, tensor=f"{column}s", **in_tables)
            error, column = f"{name}_error", f"standard_error_{column}"
            yield Output(error, "of it", (task,), column=column, tensor=None, **in_tables)
            if part == "mean":
                name, unit = f"{name}_error", "of it"
                tensor: dict[str, Any] = {"column": None, "tensor": "contribution_errors"}
                tensors.append(Output(name, unit, (task,), **in_tables, **tensor))
    yield from tensors


OUTPUTS = tuple(_outputs())
"""Shapley values of the features (`models.explanation.explainer`) with their standard errors.

Numbers: of the mean in units of the target, of both variances in squared units. Classes: of
all probabilities, of the expected entropy (aleatoric) and of the mutual information (epistemic)
in nats. base + Σ contributions over the features = the prediction's own mean, variance or entropy;
the base is the mean of each part over the background rows, of probabilities one per class.
"""


def contributions(
    values: Float[np.ndarray, "rows features quantities"],
    errors: Float[np.ndarray, "rows features quantities"],
    label: Int[np.ndarray, "rows"] | None,
) -> dict[str, np.ndarray]:
    """The values of the outputs, from quantities in the order mean, aleatoric, epistemic.

    Args:
        label: the number of each row's predicted class, if the mean are probabilities.
    """
    places: tuple[Any, ...] = (0 if label is None else slice(-2), -2, -1)
    named = {}
    for end, each in (("", values), ("_error", errors)):
        for part, place in zip(PARTS, places, strict=True):
            named[f"{part}_contribution{end}"] = each[..., place]
        if label is not None:
            of_label = np.take_along_axis(each[..., :-2], label[:, None, None], axis=2)
            named[f"label_contribution{end}"] = of_label[..., 0]
    return named
