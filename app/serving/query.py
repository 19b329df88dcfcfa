"""The options of a prediction as query parameters, for formats whose body has only rows."""

import re
from dataclasses import is_dataclass
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import jiter
from starlette.datastructures import QueryParams

from app.http.bodies import refuse_non_finite
from app.schemas.predictions import PredictParameters
from core.exceptions import Invalid
from core.validation import validate_again


def _type(annotation: Any) -> Any:
    """The type of an option's value, without its range; None in a union comes last."""
    if get_origin(annotation) in {Annotated, Union, UnionType}:
        return _type(get_args(annotation)[0])
    return get_origin(annotation) or annotation


_TYPES = {name: _type(field.annotation) for name, field in PredictParameters.model_fields.items()}
LISTS = frozenset(name for name, one in _TYPES.items() if one is tuple)
OBJECTS = frozenset(name for name, one in _TYPES.items() if is_dataclass(one))  # as JSON
TEXTS = frozenset({"version", *(name for name, one in _TYPES.items() if one in {str, Literal})})
BOOLEANS = {"true": True, "false": False}
INTEGER = re.compile(r"-?\d{1,30}")
NUMBER = re.compile(r"-?\d{1,30}(\.\d{1,30})?([eE][+-]?\d{1,4})?")


def read_options(query: QueryParams) -> PredictParameters:
    """The options, checked as those in a JSON body.

    The values of a list are separated by commas, or are several parameters of the same name.

    Raises:
        Invalid: an option is wrong; its path is the same as in a JSON body, such as `/samples`.
    """
    given: dict[str, list[str]] = {}
    for name, text in query.multi_items():
        given.setdefault(name, []).append(text)
    repeated = [name for name, texts in given.items() if len(texts) > 1 and name not in LISTS]
    if repeated:
        raise Invalid([(f"/{name}", "is given twice") for name in repeated])
    document = {name: _value(name, texts) for name, texts in given.items()}
    refuse_non_finite(document)
    return validate_again(PredictParameters, document)


def _value(name: str, texts: list[str]) -> Any:
    if name in LISTS:
        return [value for text in texts for value in value_of(name, text)]
    return texts[0] if name in TEXTS else value_of(name, texts[0])


def value_of(name: str, text: str) -> Any:
    """The value of an option that came as text: a list's values are separated by commas.

    Raises:
        Invalid: an object is not JSON.
    """
    if name in LISTS:
        return [scalar(part) for part in text.split(",") if part]
    if name not in OBJECTS:
        return scalar(text)
    try:  # as a body: no key twice, and lists in lists to a bounded depth
        return jiter.from_json(text.encode(), catch_duplicate_keys=True)
    except ValueError:
        raise Invalid([(f"/{name}", f"is {text[:100]!r}: give an object as JSON")]) from None


def scalar(text: str) -> str | bool | int | float:
    """The number or boolean in a text; else the text itself, which the schema refuses."""
    if text in BOOLEANS:
        return BOOLEANS[text]
    if INTEGER.fullmatch(text):
        return int(text)
    return float(text) if NUMBER.fullmatch(text) else text
