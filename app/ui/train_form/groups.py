"""The settings of a training form, in groups."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from app.ui.labels import TASKS
from app.ui.train_form.fields import Field, as_json, field, fields_of
from core.datasets.dataset import Dataset
from models.config import (
    ForecastConfig,
    LanguageConfig,
    ModelConfig,
    OutOfDistributionConfig,
    ZonedTime,
)
from models.features.columns import ColumnProfile
from models.features.row_groups import TYPES
from models.tabular.row_recipe import SHAPES

_TASKS = {"number": ("regression", "classification", "forecasting"), "text": ("language_model",)}
_HELD_OUT = (
    "split", "groups", "validation_fraction", "calibration_fraction", "stopping_fraction",
)  # fmt: skip
_COLUMN_TYPES = {
    "forecast.time": ("datetime", "number"),
    "forecast.key": ("category", "number"),
    "weight": ("number",),
    "training.groups": TYPES,
}
_MOST_SHOWN = 4  # settings in the summary of a closed group


@dataclass(frozen=True)
class Group:
    """Settings under a common title. `name` is the id of the element."""

    name: str
    title: str
    fields: Sequence[Field]

    @property
    def summary(self) -> str:
        """The first values, shown while the group is closed."""
        shown = [f"{f.label.lower()} {f.shown}" for f in self.fields if f.shown]
        return " · ".join(shown[:_MOST_SHOWN]) + (" …" if len(shown) > _MOST_SHOWN else "")

    @property
    def has_error(self) -> bool:
        return any(f.error for f in self.fields)


def top_fields(config: ModelConfig, dataset: Dataset) -> list[Field]:
    """The main choices: task, name, alias and method."""
    type_ = next(c.type for c in dataset.columns if c.name == config.target)
    tasks = [(as_json(task), TASKS[task]) for task in _TASKS.get(type_, ("classification",))]
    method = next(f for f in fields_of(config.method, "method") if f.path == "method.kind")
    text = [field(path, control="text") for path in ("model", "alias")]
    return [field("task", tasks), *text, method]


def field_groups(config: ModelConfig, dataset: Dataset) -> Iterator[Group]:
    """All other settings of the configuration."""
    columns = [c for c in dataset.columns if c.name != config.target]
    if config.task == "forecasting":
        forecast = config.forecast or ForecastConfig()
        found = [_of_columns(f, columns) for f in fields_of(forecast, "forecast")]
        yield Group("series", "Series", [_with_zone(f, forecast) for f in found])
    if config.task == "language_model":
        language = fields_of(config.language or LanguageConfig(), "language")
        yield Group("text", "Text", list(language))
    yield Group("network", "Network", list(fields_of(config.network, "network")))
    own = [f for f in fields_of(config.method, "method") if f.path != "method.kind"]
    if own:
        yield Group("method", "Settings of the method", own)
    training = list(fields_of(config.training, "training"))
    if config.task != "classification":
        training = [f for f in training if f.path != "training.class_weight"]
    if config.task != "regression":
        training = [f for f in training if f.path != "training.groups"]
    held_out = [f for f in training if f.path.removeprefix("training.") in _HELD_OUT]
    yield Group("training", "Fitting", [f for f in training if f not in held_out])
    yield Group("held-out", "Held-out rows", [_held_out(f, columns) for f in held_out])
    yield Group("more", "Noise, row weights, variants", list(_others(config, columns)))


def _of_columns(one: Field, columns: Sequence[ColumnProfile]) -> Field:
    """The field; if its value is a column, with a choice of columns."""
    if one.path not in _COLUMN_TYPES:
        return one
    names = [c.name for c in columns if c.type in _COLUMN_TYPES[one.path]]
    return field(one.path, [(as_json(name), name) for name in names])


def _with_zone(one: Field, forecast: ForecastConfig) -> Field:
    """The field; that of the time also has the choice of the given column and time zone."""
    time = forecast.time
    if one.path != "forecast.time" or not isinstance(time, ZonedTime):
        return one
    zoned = (as_json(asdict(time)), f"{time.column} ({time.zone})")
    return field(one.path, [*one.choices, zoned])


def _held_out(one: Field, columns: Sequence[ColumnProfile]) -> Field:
    """The field; for the split and the groups, with a choice of columns."""
    if one.path != "training.split":
        return _of_columns(one, columns)
    choices = [(as_json("random"), "random rows"), (as_json("last"), "the last rows")]
    times = [c.name for c in columns if c.type in ("datetime", "number")]
    groups = [c.name for c in columns if c.type in ("category", "number", "boolean")]
    choices += [(as_json({"time": name}), f"the latest rows by {name}") for name in times]
    choices += [(as_json({"by": name}), f"random, grouped by {name}") for name in groups]
    return field(one.path, choices)


def _others(config: ModelConfig, columns: Sequence[ColumnProfile]) -> Iterator[Field]:
    if config.task in ("regression", "forecasting"):
        names = ["heteroscedastic", "homoscedastic"]
        names += SHAPES if config.task == "regression" else ()
        yield field("likelihood", [(as_json(name), name) for name in names])
    if config.task in ("regression", "classification"):
        yield replace(field("members", control="number"), step="1", least=1, most=32)
        yield _of_columns(field("weight"), columns)
        yield from fields_of(config.inputs, "inputs")
    yield field("pruning", control="list")
    if config.task != "language_model":
        limit = config.out_of_distribution or OutOfDistributionConfig()
        yield from fields_of(limit, "out_of_distribution")
