"""The form for a training: what was asked for so far, everything else as recommended.

It is made of the body of `POST /train`, by the steps of that route. So it cannot recommend anything
that the route would not do, and any part of such a body can be opened as a form.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from app.http.validation import validate
from app.schemas.training import TrainRequest
from app.submission import resolve_training
from app.ui.fields import KINDS, Choice, Field, as_json, fields_of, pointer
from app.ui.fields import field as new_field
from app.ui.labels import TASKS
from core.context import Context
from core.database.schema import Json
from core.datasets.datasets import Dataset
from core.exceptions import CredenceError, Invalid
from core.names import model_name_of
from models.config import ForecastConfig, LanguageConfig, ModelConfig, OutOfDistributionConfig
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile, convertible

NAMED = ("model", "dataset", "target")  # what the route needs: nothing of it is recommended
WHOLE = ("training.split", "metadata", "features", "pruning")
FEATURE_TYPES = ("number", "category", "boolean", "datetime", "tensor")
_TASKS = {"number": ("regression", "classification", "forecasting"), "text": ("language_model",)}
_HELD_OUT = ("split", "validation_fraction", "calibration_fraction", "stopping_fraction")

_TOLD = 4  # settings of a group that is not open

Leaves = dict[str, object]
Errors = list[tuple[str, str]]


@dataclass(frozen=True)
class Group:
    """Settings that belong together, under a title; `name` is the element's id."""

    name: str
    title: str
    fields: Sequence[Field]

    @property
    def summary(self) -> str:
        """What is chosen, for who does not open it."""
        told = [f"{f.label.lower()} {f.shown}" for f in self.fields if f.shown]
        return " · ".join(told[:_TOLD]) + (" …" if len(told) > _TOLD else "")

    @property
    def has_error(self) -> bool:
        return any(f.error for f in self.fields)


@dataclass(frozen=True)
class Feature:
    """A column that may be learned from, and the types that it can be read as."""

    name: str
    type: str
    stored: str
    is_chosen: bool
    types: Sequence[str]


@dataclass(frozen=True)
class Form:
    """All of the page. Without a target there is nothing to recommend yet."""

    dataset: Dataset
    target: Field
    top: Mapping[str, Field] = field(default_factory=dict)
    features: Sequence[Feature] = ()
    all_features: str = "null"
    groups: Sequence[Group] = ()
    errors: Errors = field(default_factory=list)
    given: Leaves = field(default_factory=dict)

    @property
    def rest(self) -> Leaves:
        """What was given and has no field, such as metadata: it goes along."""
        fields_ = {*self.top, "features", *NAMED, *(f.path for g in self.groups for f in g.fields)}
        return {path: value for path, value in self.given.items() if path not in fields_}

    @property
    def problems(self) -> Errors:
        """What stands at no field."""
        every = [self.target, *self.top.values(), *(f for g in self.groups for f in g.fields)]
        at_fields = {error for f in every if (error := f.error)}
        return [(path, told) for path, told in self.errors if told not in at_fields]

    def error_at(self, path: str) -> str | None:
        return _error_at(path, self.errors)


def training_form(context: Context, wanted: Json) -> Form:
    """The form for a body that may lack anything but a data set.

    Raises:
        NotFound: there is no such data set.
    """
    dataset = context.datasets.get(str(wanted["dataset"]))
    columns = dataset.columns
    names: list[Choice] = [(as_json(c.name), f"{c.name} ({c.type})") for c in columns]
    target = replace(new_field("target", names), value=as_json(wanted.get("target")))
    if "target" not in wanted and len(columns) == 1:  # a text
        wanted = wanted | {"target": columns[0].name}
        target = replace(target, value=as_json(columns[0].name))
    if wanted.get("target") not in [column.name for column in columns]:
        return Form(dataset, target)
    wanted = {"model": model_name_of(dataset.name)} | wanted
    config, errors = _config(context, dataset, wanted)
    return _filled(context, dataset, wanted, config, errors, target)


def _config(context: Context, dataset: Dataset, wanted: Json) -> tuple[ModelConfig, Errors]:
    """What the request comes to; if it is wrong, what its main choices come to, and why."""
    errors: Errors = []
    for body in (wanted, _main_choices(wanted)):
        try:
            return resolve_training(context, validate(TrainRequest, body)).config, errors
        except (Invalid, InvalidData) as error:
            errors = errors or _told(error)
    try:
        request = validate(TrainRequest, _main_choices(wanted))
    except Invalid:
        return ModelConfig(target=wanted["target"]), errors
    return request.config(dataset.columns, request.method), errors


def _main_choices(wanted: Json) -> Json:
    kept = leaves(wanted)
    return nested({p: v for p, v in kept.items() if p in (*NAMED, "task", *KINDS)})


def _told(error: Invalid | InvalidData) -> Errors:
    return error.errors if isinstance(error, Invalid) else [(error.path, error.message)]


def _filled(  # noqa: PLR0917 - what the parts of a form have in common
    context: Context,
    dataset: Dataset,
    wanted: Json,
    config: ModelConfig,
    errors: Errors,
    target: Field,
) -> Form:
    given = leaves(wanted)
    defaults = _defaults(context, wanted, given, leaves(asdict(config)))
    values = leaves(asdict(config)) | given

    def set_(one: Field) -> Field:
        default = defaults.get(one.path, None if one.path in given else values.get(one.path))
        known = one.path in defaults or one.path not in given
        return replace(
            one,
            value=as_json(values.get(one.path)),
            default=as_json(default) if known else None,
            error=_error_at(one.path, errors),
        )

    stored = next(c for c in dataset.columns if c.name == config.target)
    groups = [Group(n, t, [set_(f) for f in fs]) for n, t, fs in _groups(config, dataset, stored)]
    top = [_task_field(stored), new_field("model", control="text"), _alias()]
    return Form(
        dataset,
        replace(target, error=_error_at("target", errors)),
        {one.path: set_(one) for one in (*top, *_method_field(config))},
        _features(dataset, config, values.get("features")),
        as_json(_feature_names(defaults.get("features", values.get("features")), dataset)),
        groups,
        errors,
        given,
    )


def _defaults(context: Context, wanted: Json, given: Leaves, filled: Leaves) -> Leaves:
    """Of what was given, what it would be otherwise, where something is recommended."""
    found: Leaves = {}
    for path in given:
        if path in NAMED:
            continue
        rest = nested({p: v for p, v in given.items() if p != path})
        try:
            found[path] = leaves(
                asdict(resolve_training(context, validate(TrainRequest, rest)).config)
            ).get(path)
        except (CredenceError, InvalidData):
            continue  # what was given besides needs it
    return found


def _groups(
    config: ModelConfig, dataset: Dataset, target: ColumnProfile
) -> Iterator[tuple[str, str, list[Field]]]:
    """Name, title and fields of each."""
    columns = [c for c in dataset.columns if c.name != target.name]
    training = list(fields_of(config.training, "training"))
    if config.task == "forecasting":
        forecast = fields_of(config.forecast or ForecastConfig(), "forecast")
        yield "series", "Series", [_of_columns(f, columns) for f in forecast]
    if config.task == "language_model":
        language = fields_of(config.language or LanguageConfig(), "language")
        yield "text", "Text", list(language)
    yield "network", "Network", list(fields_of(config.network, "network"))
    own = [f for f in fields_of(config.method, "method") if f.path != "method.kind"]
    if own:
        yield "method", "The method's own settings", own
    held_out = [f for f in training if f.path.removeprefix("training.") in _HELD_OUT]
    fitting = [f for f in training if f not in held_out]
    yield "training", "Fitting", fitting
    yield "held-out", "Rows held out", [_split(f, columns) for f in held_out]
    yield "more", "Noise, weights, variants", list(_others(config, columns))


def _of_columns(one: Field, columns: Sequence[ColumnProfile]) -> Field:
    if one.path not in ("forecast.time", "forecast.key"):
        return one
    kinds = ("datetime", "number") if one.path == "forecast.time" else ("category", "number")
    return new_field(one.path, [(as_json(c.name), c.name) for c in columns if c.type in kinds])


def _split(one: Field, columns: Sequence[ColumnProfile]) -> Field:
    if one.path != "training.split":
        return one
    choices = [(as_json("random"), "rows at random"), (as_json("last"), "the last rows")]
    times = [c.name for c in columns if c.type in ("datetime", "number")]
    groups = [c.name for c in columns if c.type in ("category", "number", "boolean")]
    choices += [(as_json({"time": name}), f"the latest by {name}") for name in times]
    choices += [(as_json({"by": name}), f"at random, equal {name} together") for name in groups]
    return new_field(one.path, choices)


def _others(config: ModelConfig, columns: Sequence[ColumnProfile]) -> Iterator[Field]:
    if config.task in ("regression", "forecasting"):
        names = ("heteroscedastic", "homoscedastic")
        yield new_field("likelihood", [(as_json(name), name) for name in names])
    if config.task in ("regression", "classification"):
        numbers = [c for c in columns if c.type == "number"]
        yield new_field("weight", [(as_json(c.name), c.name) for c in numbers])
    yield new_field("pruning", control="list")
    if config.task != "language_model":
        yield from fields_of(
            config.out_of_distribution or OutOfDistributionConfig(), "out_of_distribution"
        )


def _task_field(target: ColumnProfile) -> Field:
    tasks = _TASKS.get(target.type, ("classification",))
    return new_field("task", [(as_json(task), TASKS[task]) for task in tasks])


def _alias() -> Field:
    return new_field("alias", control="text")


def _method_field(config: ModelConfig) -> Iterator[Field]:
    return (f for f in fields_of(config.method, "method") if f.path == "method.kind")


def _features(dataset: Dataset, config: ModelConfig, value: object) -> list[Feature]:
    """All columns that could be one, those that are with the type that they are read as.

    None while it is not settled which are; a forecast looks at its series alone unless told.
    """
    if value is None and config.task != "forecasting":
        return []
    chosen = _feature_types(value, dataset)
    others = (c for c in dataset.columns if c.name != config.target and c.type != "text")
    return [
        Feature(
            c.name,
            chosen.get(c.name, c.type),
            c.type,
            c.name in chosen,
            [t for t in FEATURE_TYPES if convertible(c.type, t)],
        )
        for c in others
    ]


def _feature_types(value: object, dataset: Dataset) -> dict[str, str]:
    """By name, of a list of names and of objects; what is neither is somebody's mistake."""
    stored = {c.name: c.type for c in dataset.columns}
    found = [f if isinstance(f, dict) else {"name": f} for f in value or []]  # type: ignore[attr-defined]
    return {
        str(f.get("name")): str(f.get("type", stored.get(str(f.get("name")), "number")))
        for f in found
    }


def _feature_names(value: object, dataset: Dataset) -> list[object]:
    """As short as the request may say it: names, and objects where a type is not the column's."""
    stored = {c.name: c.type for c in dataset.columns}
    types = _feature_types(value, dataset)
    return [
        name if type_ == stored.get(name) else {"name": name, "type": type_}
        for name, type_ in types.items()
    ]


def _error_at(path: str, errors: Errors) -> str | None:
    """Of the field or of something within it."""
    at = pointer(path)
    told = [message for where, message in errors if where == at or where.startswith(f"{at}/")]
    return "; ".join(told) or None


def leaves(values: Json, prefix: str = "") -> Leaves:
    """By dotted paths, what a field of the form has as its value; null is none."""
    flat: Leaves = {}
    for name, value in values.items():
        path = f"{prefix}{name}"
        if isinstance(value, dict) and path not in WHOLE:
            flat |= leaves(value, f"{path}.")
        elif value is not None and not (isinstance(value, float) and math.isnan(value)):
            flat[path] = value
    return flat


def nested(flat: Leaves) -> Json:
    """The other way round."""
    found: Json = {}
    for path, value in flat.items():
        *parents, last = path.split(".")
        here = found
        for parent in parents:
            here = here.setdefault(parent, {})
        here[last] = value
    return found
