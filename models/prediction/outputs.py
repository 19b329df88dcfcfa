"""The outputs of predictions: their names, units and tasks. Every format renders these tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

NUMBERS = ("regression", "forecasting")
CLASSES = ("classification",)
ROWS = (*NUMBERS, *CLASSES)
TEXTS = ("language_model",)


@dataclass(frozen=True)
class Output:
    """One output of a prediction.

    Args:
        name: of the column in tables; for values per class, "_" and the class are appended.
        member: path in JSON; "variance.total" is `total` within `variance`.
        unit: of the values.
        tasks: tasks whose tables have the column. JSON has the member whenever there are values.
        values: reads the values of a prediction; None if not requested or not available.
        tensor: name in the Open Inference Protocol, if it is not `name`.
        per_class: whether a row has a value for each class.
        on_request: whether the Open Inference Protocol returns it only if requested by name.
        is_nullable: whether JSON has null if there are no values.
    """

    name: str
    member: str
    unit: str
    tasks: Sequence[str]
    values: Callable[[Any], Any]
    tensor: str | None = None
    per_class: bool = False
    on_request: bool = False
    is_nullable: bool = False


def part(field: str, name: str) -> Callable[[Any], Any]:
    """A function that reads one array of a prediction's mapping, such as its total variance."""

    def read(prediction: Any) -> Any:
        found: Mapping[str, Any] | None = getattr(prediction, field)
        return None if found is None else found[name]

    return read


ROW_OUTPUTS = (
    Output("label", "labels", "class", CLASSES, attrgetter("labels"), "labels", on_request=True),
    Output("", "classes", "class", (), attrgetter("classes")),
    Output(
        "probability",
        "probabilities",
        "probability",
        CLASSES,
        attrgetter("probabilities"),
        "probabilities",
        per_class=True,
    ),
    Output("series", "series", "key", ("forecasting",), attrgetter("series")),
    Output("step", "steps", "steps", ("forecasting",), attrgetter("steps")),
    Output("time", "times", "time", ("forecasting",), attrgetter("times")),
    Output("", "paths", "paths per weight draw", (), attrgetter("paths")),
    Output("mean", "mean", "target", NUMBERS, attrgetter("mean")),
    Output("median", "median", "target", NUMBERS, attrgetter("median"), on_request=True),
    *(
        Output(
            f"{name}_variance",
            f"variance.{name}",
            "target squared",
            NUMBERS,
            part("variance", name),
        )
        for name in ("aleatoric", "epistemic", "total")
    ),
    Output("", "intervals", "target", (), attrgetter("intervals")),
    Output("mc_error", "mc_error", "target", NUMBERS, attrgetter("mc_error"), is_nullable=True),
    Output("", "mc_errors", "of the output", (), attrgetter("mc_errors")),
    Output("predictive_entropy", "entropy.total", "nats", CLASSES, part("entropy", "total")),
    Output("expected_entropy", "entropy.aleatoric", "nats", CLASSES, part("entropy", "aleatoric")),
    Output(
        "mutual_information", "entropy.epistemic", "nats", CLASSES, part("entropy", "epistemic")
    ),
    Output("mc_error", "mc_error", "probability", CLASSES, attrgetter("mc_error"), per_class=True),
    Output(
        "out_of_distribution",
        "out_of_distribution",
        "true or false",
        ROWS,
        attrgetter("out_of_distribution"),
        on_request=True,
    ),
    Output(
        "ood_score",
        "ood_score",
        "of the score",
        ROWS,
        attrgetter("ood_score"),
        None,
        on_request=True,
    ),
    Output(
        "abstained", "abstained", "true or false", ROWS, attrgetter("abstained"), on_request=True
    ),
    Output(
        "draws",
        "draws",
        "target or probability",
        ROWS,
        attrgetter("draws"),
        "samples",
        on_request=True,
    ),
)
"""In the order of JSON and of tables. `RowPrediction.columns` adds the columns of the intervals."""
