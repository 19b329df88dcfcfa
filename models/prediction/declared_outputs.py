"""How outputs are declared, and the outputs of every prediction.

`models.prediction.outputs` declares those that an option asks for beside what computes them. Every
format renders these declarations.

A prediction has values by the name of their output. Their first axis are the rows; `along` says
what a second one counts. JSON (`core.predictions.document`), Arrow, Parquet and CSV
(`core.predictions.prediction_table`) and the tensors of the Open Inference Protocol
(`app.serving.inference_protocol.outputs`) follow the declarations and know no output by name.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Any, ClassVar

import numpy as np

from models.features.columns import level_text
from models.prediction.options import KINDS, IntervalKind

REGRESSION, FORECASTING, CLASSIFICATION = "regression", "forecasting", "classification"
FORECASTS, CLASSES = (FORECASTING,), (CLASSIFICATION,)
NUMBERS = (REGRESSION, FORECASTING)
ROWS = (*NUMBERS, *CLASSES)
TEXTS = ("language_model",)


@dataclass(frozen=True, eq=False)
class Axis:
    """What an output has values for, beside rows.

    Args:
        name: of a coordinate in JSON.
        records: whether JSON has an object per coordinate; else arrays, rows × coordinates.
        columns: whether tables have a column per coordinate; else one column of lists.
        flat: whether JSON has a single list, row after row.
        first: whether JSON and tensors have this axis before the rows.
    """

    name: str
    records: bool = False
    columns: bool = True
    flat: bool = False
    first: bool = False

    def text(self, at: Any) -> str:
        """A coordinate in the name of a column."""
        return str(float(at)) if self.records else level_text(at)


LEVEL, SET_LEVEL = Axis("level", records=True), Axis("level", records=True)
THRESHOLD, P = Axis("threshold", records=True), Axis("p", records=True)
ATOM = Axis("value", records=True)
CLASS, FEATURE = Axis("class"), Axis("feature")
POINT, NEWEST = Axis("point", columns=False), Axis("step", columns=False, flat=True)
SAMPLE = Axis("sample", columns=False, first=True)


@dataclass(frozen=True, eq=False)
class Output:
    """One output of a prediction.

    Args:
        name: of the values in a prediction. The same values may stand at several places of a
            format: then several outputs have the name.
        unit: of the values.
        tasks: of the models that have the output.
        member: path in JSON, by default the name; in each object of `records` if that is given.
            None: JSON does not have it.
        column: in tables, by default the name; coordinates are appended. None: no column.
        tensor: in the Open Inference Protocol, by default as `column`. Outputs with the same
            tensor are along its last axis. None: no tensor.
        error: the name of its Monte-Carlo error, by default as `column`.
        records: path in JSON of the list with an object per coordinate.
        kind: `kind` in these objects.
        together: outputs along the same axis whose columns come coordinate by coordinate.
        option: that asks for it; empty if every prediction has it.
        on_request: whether the Open Inference Protocol returns it only if it is requested by name.
        is_nullable: whether JSON has null, or an empty list of records, if there are no values.
    """

    name: str
    unit: str
    tasks: Sequence[str]
    member: str | Sequence[str] | None = ""
    column: str | None = ""
    tensor: str | None = ""
    error: str = ""
    along: Axis | None = None
    records: str = ""
    kind: IntervalKind | None = None
    together: str = ""
    option: str = ""
    on_request: bool = False
    is_nullable: bool = False

    def __post_init__(self) -> None:
        column = self.name if self.column == "" else self.column
        for name, default in (
            ("member", self.name),
            ("column", column),
            ("tensor", column),
            ("error", column or self.name),
        ):
            if getattr(self, name) == "":
                object.__setattr__(self, name, default)

    @cached_property
    def path(self) -> Sequence[str]:
        """Of `member`."""
        return self.member.split(".") if isinstance(self.member, str) else self.member or ()


@dataclass(frozen=True, eq=False)
class Part:
    """Outputs of something else than the predicted rows, such as the sums over them.

    Args:
        name: in a prediction.
        member: path in JSON.
        prefix: begins the names of its columns, tensors and errors.
        outputs: what it has.
        option: that asks for it.
        repeats: whether tables have each of its rows as often as fits, one after the other; else
            all of them in turn.
    """

    name: str
    member: str
    prefix: str
    outputs: tuple[Output, ...]
    option: str = ""
    repeats: bool = False
    is_nullable: ClassVar[bool] = False

    def in_rows(self, values: Any, rows: int) -> Any:
        """Values for each of so many rows of a table."""
        if len(values) == rows:
            return values
        if self.repeats:
            return np.repeat(values, rows // len(values), axis=0)
        return np.resize(values, (rows, *values.shape[1:]))


Declared = tuple[Output | Part, ...]
Coordinates = Mapping[Axis, Sequence[Any]]
UNCERTAINTIES = ("total", "aleatoric", "epistemic")
ENTROPIES = ("predictive_entropy", "expected_entropy", "mutual_information")


def bound_names(kind: IntervalKind) -> tuple[str, str]:
    """The names of the outputs that are the bounds of intervals."""
    before = "" if kind == "credible" else f"{kind}_"
    return f"{before}lower", f"{before}upper"


def closed_name(kind: IntervalKind) -> str:
    """The name of the output that says that bounds which are whole numbers are included."""
    return f"{kind}_closed"


def bounds(tasks: Sequence[str], kinds: Sequence[IntervalKind] = KINDS) -> Iterator[Output]:
    """The outputs of intervals."""
    place: dict[str, Any] = {"along": LEVEL, "records": "intervals"}
    for kind in kinds:
        if kind == "adaptive":
            yield Output("adapted_level", "probability", tasks, column=None, kind=kind, **place)
        for name, end in zip(bound_names(kind), ("lower", "upper"), strict=True):
            yield Output(
                name,
                "target",
                tasks,
                end,
                tensor="quantiles" if kind == "credible" else f"{kind}_quantiles",
                kind=kind,
                on_request=True,
                is_nullable=True,
                **place,
            )
        closed = {"member": "closed", "column": None, "kind": kind} | place
        yield Output(closed_name(kind), "true or false", tasks, **closed)


MC_ERRORS = Output("mc_errors", "of the output", ROWS, column=None)
"""The errors of all outputs by name, if they were requested."""


def _of_rows() -> Iterator[Output]:
    """In the order of JSON and of tables; where these differ, an output stands twice."""
    yield Output("label", "class", CLASSES, "labels", tensor="labels", on_request=True)
    yield Output("classes", "class", CLASSES, column=None)
    names: dict[str, Any] = {
        "column": "probability",
        "tensor": "probabilities",
        "error": "probabilities",
    }
    yield Output("mean", "probability", CLASSES, "probabilities", along=CLASS, **names)
    yield Output("series", "key", FORECASTS)
    yield Output("step", "steps", FORECASTS, "steps")
    yield Output("time", "time", FORECASTS, "times")
    yield Output("paths", "paths per weight draw", FORECASTS, column=None)
    yield Output("mean", "target", NUMBERS)
    yield Output("mean", "probability", CLASSES, column=None)
    yield Output("median", "target", NUMBERS, on_request=True)
    for kind in ("aleatoric", "epistemic", "total"):
        name, member = f"{kind}_variance", f"variance.{kind}"
        yield Output(name, "target squared", NUMBERS, member)
        yield Output(name, "probability squared", CLASSES, member, column=None)
    yield Output("mc_error", "target", NUMBERS, member=None, is_nullable=True)
    yield from bounds(NUMBERS)
    none: dict[str, Any] = {"column": None, "is_nullable": True}
    yield Output("lower", "probability", CLASSES, along=LEVEL, records="intervals", **none)
    yield Output("mc_error", "of the mean", ROWS, **none)
    yield MC_ERRORS
    for kind, name in zip(UNCERTAINTIES, ENTROPIES, strict=True):
        yield Output(name, "nats", CLASSES, f"entropy.{kind}")
    yield Output("mc_error", "probability", CLASSES, member=None, along=CLASS, is_nullable=True)
    yield Output("out_of_distribution", "true or false", ROWS, on_request=True)
    yield Output("ood_score", "of the score", ROWS, on_request=True)
    yield Output("abstained", "true or false", ROWS, on_request=True)
    yield Output(
        "draws", "target or probability", ROWS, tensor="samples", along=SAMPLE, on_request=True
    )


ROW_OUTPUTS: tuple[Output, ...] = tuple(_of_rows())
TEXT_OUTPUTS = (
    Output("log_likelihood", "nats", TEXTS),
    Output("perplexity", "per token", TEXTS),
    Output("token_log_likelihoods", "nats", TEXTS),
    Output("next_tokens", "probability", TEXTS),
    *(Output(f"{kind}_entropy", "nats", TEXTS, f"entropy.{kind}") for kind in UNCERTAINTIES),
)


@lru_cache(maxsize=256)  # every answer reads them
def of_task(outputs: Declared, task: str) -> Sequence[Output]:
    """The outputs of models of a task, without those of parts."""
    return [output for output in outputs if isinstance(output, Output) and task in output.tasks]


@lru_cache(maxsize=256)
def first_by_name(outputs: Declared, task: str) -> Mapping[str, Output]:
    """The first output of each name, which says what its errors are called."""
    by_name: dict[str, Output] = {}
    for output in of_task(outputs, task):
        by_name.setdefault(output.name, output)
    return by_name


def in_columns(
    outputs: Iterable[Output], coordinates: Coordinates, *, errors: bool = False
) -> Iterator[tuple[str, Output, int | None]]:
    """The columns of outputs: name, output, and the number of the coordinate if it has one.

    Args:
        errors: of their Monte-Carlo errors, which are not divided by classes.
    """
    for (axis, *_), some in groupby(outputs, _columns_together):
        group = list(some)
        names = [output.error if errors else str(output.column) for output in group]
        if axis is None or not (axis.records if errors else axis.columns):
            yield from ((name, output, None) for name, output in zip(names, group, strict=True))
            continue
        for i, at in enumerate(coordinates.get(axis, ())):
            text = axis.text(at)
            yield from ((f"{n}_{text}", output, i) for n, output in zip(names, group, strict=True))


def _columns_together(output: Output) -> tuple[Axis | None, object, str]:
    is_alone = output.along is None or not output.along.records
    return output.along, id(output) if is_alone else output.kind, output.together


def by_error_name(
    values: Mapping[str, Any], outputs: Declared, task: str, coordinates: Coordinates
) -> dict[str, Any]:
    """Values by the names that their errors have, in the order of `values`."""
    declared = first_by_name(outputs, task)
    columns = in_columns((declared[name] for name in values), coordinates, errors=True)
    return {name: at(values[output.name], i) for name, output, i in columns}


def at(values: Any, number: int | None) -> Any:
    """The values of a coordinate; for None those of all."""
    return values if number is None or isinstance(values, list) else values[:, number]
