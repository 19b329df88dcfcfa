"""Settings as fields of a form. Choices and limits come from the types of the configuration."""

import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal, Union, get_args, get_origin

import orjson
from annotated_types import Interval

from app.ui.labels import METHODS, NETWORKS, SETTINGS
from core.database.schema import Json
from models.config import MethodConfig, NetworkConfig

Control = Literal["choice", "number", "numbers", "list", "text"]  # numbers: one or several
Choice = tuple[str, str]  # a value as JSON, and its label
_YES_NO = (("true", "yes"), ("false", "no"))
_PRIORS = {"gaussian": "Gaussian", "scale_mixture": "mixture of two Gaussians"}
KINDS = {"method.kind": "bbb", "network.kind": "mlp", "method.prior.kind": "gaussian"}
"""Choices that decide which other settings exist, and their defaults in the API."""
_WITHOUT_FIELD = ("network.parts",)  # settings of several levels


@dataclass(frozen=True, kw_only=True)
class Field:
    """One setting. Values are JSON.

    Args:
        path: the dotted path of the setting, as on the command line.
        default: the recommended value; None if unknown.
    """

    path: str
    label: str
    hint: str
    control: Control
    value: str = "null"
    default: str | None = None
    choices: Sequence[Choice] = ()
    least: float | None = None
    most: float | None = None
    step: str = "any"
    error: str | None = None

    @property
    def pointer(self) -> str:
        return pointer(self.path)

    @property
    def id(self) -> str:
        return self.path.replace(".", "-")

    @property
    def shown(self) -> str:
        """The value as text."""
        return shown(self.value)

    @property
    def recommended(self) -> str | None:
        """The recommended value as text, if the value differs from it."""
        is_other = self.default not in (None, "null", self.value)
        return shown(str(self.default)) if is_other else None

    @property
    def implied(self) -> str | None:
        return KINDS.get(self.path)


def pointer(path: str) -> str:
    """`training.epochs` → `/training/epochs`"""
    return "/" + path.replace(".", "/")


def shown(value: str) -> str:
    """JSON for people: lists without brackets, texts without quotes, null as an empty text."""
    return _plain(orjson.loads(value))


def _plain(found: object) -> str:
    match found:
        case None:
            return ""
        case list():
            return ", ".join(map(_plain, found))
        case dict():
            return ", ".join(f"{key} {_plain(value)}" for key, value in found.items())
        case bool():
            return "yes" if found else "no"
        case float():
            return f"{found:.10g}"
    return str(found)


def fields_of(config: object, prefix: str) -> Iterator[Field]:
    """A field per setting of a configuration, including nested ones."""
    for own in fields(config):  # type: ignore[arg-type]
        path, value = f"{prefix}.{own.name}", getattr(config, own.name)
        if path in KINDS:
            yield field(path, choices=_kinds(path))
        elif is_dataclass(value) and path not in ("training.split", "forecast.time"):
            yield from fields_of(value, path)
        elif own.name != "kind" and path not in _WITHOUT_FIELD:
            yield _typed(path, own.type)


def field(path: str, choices: Sequence[Choice] = (), control: Control = "choice") -> Field:
    """The field of a path, with its label and hint."""
    label, hint = SETTINGS.get(path, (path.rpartition(".")[2].replace("_", " ").capitalize(), ""))
    return Field(path=path, label=label, hint=hint, control=control, choices=choices)


def as_json(value: object) -> str:
    return orjson.dumps(value).decode()


def _typed(path: str, type_: Any) -> Field:
    options = [t for t in _options(type_) if t is not type(None)]
    if all(get_origin(_bare(t)) is Literal for t in options):
        names = [name for t in options for name in get_args(_bare(t))]
        return field(path, [(as_json(name), name.replace("_", " ")) for name in names])
    if options == [bool]:
        return field(path, _YES_NO)
    if len(options) == 1 and (number := _number(path, options[0])):
        return number
    if any(get_origin(_bare(t)) is tuple for t in options):
        has_number = any(_number(path, t) for t in options)
        return field(path, control="numbers" if has_number else "list")
    return field(path, control="text")


def _options(type_: Any) -> list[Any]:
    if get_origin(type_) in (Union, types.UnionType):
        return [option for part in get_args(type_) for option in _options(part)]
    if get_origin(bare := _bare(type_)) in (Union, types.UnionType):  # which names its tags
        return _options(bare)
    return [type_]


def _bare(type_: Any) -> Any:
    return get_args(type_)[0] if hasattr(type_, "__metadata__") else type_


def _number(path: str, type_: Any) -> Field | None:
    bare = _bare(type_)
    if bare not in (int, float):
        return None
    number = replace(field(path, control="number"), step="1" if bare is int else "any")
    bounds = next((b for b in getattr(type_, "__metadata__", ()) if isinstance(b, Interval)), None)
    if bounds is None:
        return number
    return replace(number, least=bounds.ge, most=bounds.le)  # type: ignore[arg-type]


def _kinds(path: str) -> list[Choice]:
    names: dict[str, Json | Any] = {
        "method.kind": {kind: METHODS[kind][0] for kind in tags(MethodConfig)},
        "network.kind": {kind: NETWORKS[kind] for kind in tags(NetworkConfig)},
        "method.prior.kind": _PRIORS,
    }
    return [(as_json(kind), name) for kind, name in names[path].items()]


def tags(union: Any) -> list[str]:
    """The kinds of a union of configurations."""
    return [get_args(member)[1].tag for member in get_args(get_args(union)[0])]
