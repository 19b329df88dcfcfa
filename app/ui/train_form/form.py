"""The form for a training: the given settings, and recommended values of all others.

The recommendations come from the code of `POST /train`. The form can start from any part of a body
of that route.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from app.job_submission import resolve_training
from app.schemas.training import TrainRequest
from app.ui.labels import SETTINGS
from app.ui.train_form.features import Feature, feature_list, feature_names
from app.ui.train_form.fields import KINDS, Choice, Field, as_json, pointer
from app.ui.train_form.fields import field as new_field
from app.ui.train_form.groups import Group, field_groups, top_fields
from app.ui.train_form.series import with_series
from app.ui.train_form.target import AboutTarget, about_target
from core.context import Context
from core.database.schema import Json
from core.datasets.dataset import Dataset
from core.exceptions import CredenceError, Invalid
from core.names import dotted_paths, model_name_of, nested
from core.validation import validate
from models.config import ModelConfig
from models.exceptions import InvalidData

NAMED = ("model", "dataset", "target")  # required by the route, so never recommended
WHOLE = (  # objects that are one setting
    "training.split", "forecast.time", "metadata", "features", "pruning",
)  # fmt: skip

_SETTING = re.compile(
    "|".join(re.escape(path) for path in sorted(SETTINGS, key=len, reverse=True) if "." in path)
)

Errors = list[tuple[str, str]]  # a JSON pointer and a message


@dataclass(frozen=True)
class Form:
    """The form. Without a target, it has only the fields for data set and target.

    Args:
        all_features: the recommended features as JSON.
        given: the settings of the request, by dotted path.
        about: what is said about the target.
    """

    dataset: Dataset
    target: Field
    top: Mapping[str, Field] = field(default_factory=dict)
    features: Sequence[Feature] = ()
    all_features: str = "null"
    groups: Sequence[Group] = ()
    errors: Errors = field(default_factory=list)
    given: Json = field(default_factory=dict)
    about: AboutTarget = field(default_factory=AboutTarget)

    @property
    def num_to_check(self) -> int:
        """The errors and warnings of the data set."""
        return sum(one.severity != "info" for one in self.dataset.findings)

    @property
    def fields(self) -> list[Field]:
        """All fields except those of the features."""
        return [self.target, *self.top.values(), *(f for g in self.groups for f in g.fields)]

    @property
    def rest(self) -> Json:
        """Given settings without a field, such as metadata. They are sent unchanged."""
        paths = {"features", *NAMED, *(f.path for f in self.fields)}
        return {path: value for path, value in self.given.items() if path not in paths}

    @property
    def problems(self) -> Errors:
        """Errors that no field shows."""
        shown = {error for f in self.fields if (error := f.error)}
        return [(path, message) for path, message in self.errors if message not in shown]

    def error_at(self, path: str) -> str | None:
        """The errors of a field."""
        return _error_at(path, self.errors)


def training_form(context: Context, wanted: Json) -> Form:
    """The form for a part of a request.

    Args:
        wanted: a part of a body of `POST /train`; only `dataset` is required.

    Raises:
        NotFound: there is no such data set.
    """
    dataset = context.datasets.get(str(wanted["dataset"]))
    columns = dataset.columns
    if "target" not in wanted and len(columns) == 1:  # a text
        wanted = wanted | {"target": columns[0].name}
    names: list[Choice] = [(as_json(c.name), f"{c.name} ({c.type})") for c in columns]
    target = replace(new_field("target", names), value=as_json(wanted.get("target")))
    if wanted.get("target") not in [column.name for column in columns]:
        return Form(dataset, target)
    wanted = {"model": model_name_of(dataset.name)} | with_series(context, dataset, wanted)
    config, errors = _config(context, dataset, wanted)
    errors = [(path, in_words(message)) for path, message in errors]
    given, filled = _settings(wanted), _settings(asdict(config))
    values = filled | given
    unchanged = {path: value for path, value in filled.items() if path not in given}
    defaults = unchanged | _defaults(context, given)

    def fill(one: Field) -> Field:
        known = one.path in defaults or one.path not in given
        return replace(
            one,
            value=as_json(values.get(one.path)),
            default=as_json(defaults.get(one.path)) if known else None,
            error=_error_at(one.path, errors),
        )

    groups = field_groups(config, dataset)
    return Form(
        dataset,
        replace(target, error=_error_at("target", errors)),
        {one.path: fill(one) for one in top_fields(config, dataset)},
        feature_list(dataset, config, values.get("features")),
        as_json(feature_names(defaults.get("features", values.get("features")), dataset)),
        [replace(group, fields=[fill(one) for one in group.fields]) for group in groups],
        errors,
        given,
        about_target(context, dataset, _as_given(config, given), given),
    )


def in_words(message: str) -> str:
    """The message with the labels of fields in place of the names of settings."""
    return _SETTING.sub(lambda found: f"“{SETTINGS[found[0]][0]}”", message)


def _config(context: Context, dataset: Dataset, wanted: Json) -> tuple[ModelConfig, Errors]:
    """The resolved configuration of the request, and no errors.

    If the request is wrong: the configuration of its main choices, and the errors.
    """
    main = nested({p: v for p, v in _settings(wanted).items() if p in (*NAMED, "task", *KINDS)})
    errors: Errors = []
    for body in (wanted, main):
        try:
            return resolve_training(context, validate(TrainRequest, body)).config, errors
        except Invalid as error:
            errors = errors or error.errors
        except InvalidData as error:
            errors = errors or [(error.path, error.message)]
    try:
        request = validate(TrainRequest, main)
    except Invalid:
        return ModelConfig(target=wanted["target"]), errors
    return request.config(dataset.columns, request.method), errors


def _defaults(context: Context, given: Json) -> Json:
    """The recommended value of each given setting; None where its recommendation is unknown."""
    found: Json = {}
    for path in given.keys() - set(NAMED):
        rest = nested({p: v for p, v in given.items() if p != path})
        try:
            config = resolve_training(context, validate(TrainRequest, rest)).config
        except (CredenceError, InvalidData):
            continue  # unknown: other given settings need this one
        found[path] = _settings(asdict(config)).get(path)
    return found


def _as_given(config: ModelConfig, given: Json) -> ModelConfig:
    """Target and task as the request gives them."""
    task = config.task if "task" in given else None
    is_series = any(path.startswith("forecast.") for path in given)
    return ModelConfig(
        target=config.target, task=task, forecast=config.forecast if is_series else None
    )


def _settings(values: Json) -> Json:
    """Values by dotted paths, without those that are null or NaN."""
    flat = dotted_paths(values, whole=WHOLE)
    return {p: v for p, v in flat.items() if v is not None and not _is_nan(v)}


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _error_at(path: str, errors: Errors) -> str | None:
    """The errors of a field and of everything inside its value."""
    at = pointer(path)
    found = [message for where, message in errors if where == at or where.startswith(f"{at}/")]
    return "; ".join(found) or None
