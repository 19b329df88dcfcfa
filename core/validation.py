"""Converts pydantic's errors to one message per field, with a JSON pointer into the request.

Pydantic puts names of union branches into locations ("prior", "GaussianPriorConfig", "sigma"), and
reports errors of every branch. This module removes the names, and the errors of branches whose
`kind` differs from the request's.
"""

import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from core.exceptions import Invalid, TooLarge
from core.known_fields import DISCRIMINATOR, meant_field
from core.names import MODEL_NAME, name_advice
from models.messages import nearest_name

Location = tuple[int | str, ...]
Model = TypeVar("Model", bound=BaseModel)

MAX_ERRORS = 100  # in one response
MAX_COUNTED = 2000  # more errors are not looked at: pydantic makes objects of all of them
MAX_VALUES = 2**18  # in a document: pydantic needs a kilobyte per wrong value
MAX_KNOWN, MAX_KNOWN_LENGTH = 256, 2048  # documents that are validated once, and their length
MAX_NAME_LENGTH = 64  # of a name that is compared with known ones: no field's is longer
MESSAGES = {
    "missing": "required",
    "extra_forbidden": "unknown field",
    "unexpected_keyword_argument": "unknown field",
    "none_required": "is not available yet: leave it out, or null",
}
OBJECT_TYPES = {
    "dataclass_type",
    "model_type",
    "model_attributes_type",
    "dict_type",
    "union_tag_not_found",
}
UNKNOWN_FIELD = {"extra_forbidden", "unexpected_keyword_argument"}
NAMES_A_FIELD = {"missing", *UNKNOWN_FIELD}
QUOTED = re.compile("'([^']*)'")  # a name in pydantic's list of those that it expects


def validate(model: type[Model], document: dict[str, Any]) -> Model:
    """Read an object strictly: "5" is not a number, true is not 1, unknown fields are errors.

    Raises:
        TooLarge: the object has more than `MAX_VALUES` values.
        Invalid: with pointer and message of each wrong field.
    """
    if (count := _num_values(document)) > MAX_VALUES:
        raise TooLarge(
            f"the document has {count} values beside its data: give at most {MAX_VALUES}"
        )
    return _validated(model, json.dumps(document), document)


def validate_again(model: type[Model], document: dict[str, Any]) -> Model:
    """As `validate`; small documents that are equal may give the same object.

    Clients repeat their options in each request. An object of `model` must be frozen.
    """
    text = json.dumps(document)
    if len(text) > MAX_KNOWN_LENGTH:
        return validate(model, document)
    return cast(Model, _validated_once(model, text))


@lru_cache(maxsize=MAX_KNOWN)
def _validated_once(model: type[BaseModel], text: str) -> BaseModel:
    return _validated(model, text, json.loads(text))


def _validated(model: type[Model], text: str, document: dict[str, Any]) -> Model:
    try:
        return model.model_validate_json(text, strict=True, context=document)
    except ValidationError as error:
        if (count := error.error_count()) > MAX_COUNTED:
            raise Invalid(
                [("", f"{count} of its values are wrong: try one of them alone")]
            ) from None
        first = error.errors(include_url=False)[:MAX_ERRORS]
        raise Invalid(field_errors(first, document, model)) from None


def _num_values(value: object) -> int:
    """The number of values and names. A column of inline data counts once."""
    if isinstance(value, dict):
        own = (
            len(v) if name == "columns" and isinstance(v, dict) else _num_values(v)
            for name, v in value.items()
        )
        return sum(own, start=len(value))
    if isinstance(value, list):
        return len(value) + sum(
            _num_values(item) for item in value if isinstance(item, dict | list)
        )
    return 1


def field_errors(
    errors: Sequence[ErrorDetails], document: object, model: type[BaseModel]
) -> list[tuple[str, str]]:
    """Pointer and message per field; several messages about one field are joined by "or".

    The field, or the value, that was probably meant follows.
    """
    messages: dict[str, list[str]] = {}
    meant: dict[str, str] = {}
    for path, error in _of_deepest_branches(_of_matching_kinds(errors, document), document):
        message = describe(error)
        if message not in messages.setdefault(path, []):
            messages[path].append(message)
        if near := _meant(error, document, model):
            meant[path] = near
    return [(path, _either(each) + meant.get(path, "")) for path, each in messages.items()]


def _meant(error: ErrorDetails, document: object, model: type[BaseModel]) -> str:
    """What follows a message about an unknown name: the nearest known one, if any is near."""
    kind, context = error["type"], error.get("ctx", {})
    if kind in UNKNOWN_FIELD:
        name: object = error["loc"][-1]
    elif kind == "literal_error":
        name, known = error["input"], context["expected"]
    elif kind == "union_tag_invalid":
        name, known = context["tag"], context["expected_tags"]
    else:
        return ""
    if not isinstance(name, str) or len(name) > MAX_NAME_LENGTH:
        return ""
    if kind in UNKNOWN_FIELD:
        near = meant_field(model, _known(error, document), document)
        return f" {name!r}: did you mean {near!r}?" if near else ""
    near = nearest_name(name, QUOTED.findall(known))
    return f"; did you mean {near!r}?" if near else ""


def pointer(location: Iterable[int | str]) -> str:
    """A JSON pointer, RFC 6901: ("network", "hidden", 0) → "/network/hidden/0"."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in location)


def _known(error: ErrorDetails, document: object) -> list[int | str]:
    """The location without the names of union branches, which are not in the document."""
    known: list[int | str] = []
    here = document
    last = len(error["loc"]) - 1
    for i, part in enumerate(error["loc"]):
        if _holds(here, part):
            here = here[part]  # type: ignore[index]
            known.append(part)
        elif i == last and error["type"] in NAMES_A_FIELD:
            known.append(part)
    if error["type"] == "union_tag_invalid":
        known.append(DISCRIMINATOR)
    return known


def _holds(here: object, part: int | str) -> bool:
    if isinstance(here, dict):
        return part in here
    return isinstance(here, list) and isinstance(part, int) and part < len(here)


def _of_matching_kinds(errors: Sequence[ErrorDetails], document: object) -> list[ErrorDetails]:
    """The errors of branches whose `kind` is the request's; if no branch has it, that error."""
    rejected = {error["loc"][:-1] for error in errors if _is_other_kind(error, document)}
    matching = [e for e in errors if not any(e["loc"][: len(r)] == r for r in rejected)]
    unions = {branch[:-1] for branch in rejected}
    matched = {union for union in unions if any(e["loc"][: len(union)] == union for e in matching)}
    unknown_kind = [
        e for e in errors if _is_other_kind(e, document) and e["loc"][:-2] not in matched
    ]
    return matching + unknown_kind


def _of_deepest_branches(
    errors: Sequence[ErrorDetails], document: object
) -> list[tuple[str, ErrorDetails]]:
    """The errors with their pointers.

    If a branch of a union has errors inside a value, the request uses that branch. So errors of
    other branches about the type of the value are left out.
    """
    known = [_known(error, document) for error in errors]
    paths = [pointer(location) for location in known]
    return [
        (path, error)
        for path, location, error in zip(paths, known, errors, strict=True)
        if len(location) == len(error["loc"])
        or not any(other.startswith(f"{path}/") for other in paths)
    ]


def _is_other_kind(error: ErrorDetails, document: object) -> bool:
    """Whether a union's branch was rejected because the document has another `kind`."""
    location = error["loc"]
    is_kind = error["type"] == "literal_error" and location[-1] == DISCRIMINATOR
    return is_kind and len(_known(error, document)) < len(location)


def describe(error: ErrorDetails) -> str:
    """The message of an error, without the value that was sent unless it is a name."""
    kind = error["type"]
    if kind in MESSAGES:
        return MESSAGES[kind]
    if kind in OBJECT_TYPES:
        return "must be an object"
    if kind == "union_tag_invalid":
        return f"must be one of {error['ctx']['expected_tags']}"
    if kind == "string_pattern_mismatch" and error["ctx"]["pattern"] == f"^{MODEL_NAME}$":
        return name_advice(error["input"])
    return error["msg"].removeprefix("Value error, ").replace("Input should be", "must be", 1)


def _either(messages: Sequence[str]) -> str:
    """`must be an object`, `must be 'random'` → `must be an object or 'random'`."""
    first, *others = messages
    return " or ".join([first, *(message.removeprefix("must be ") for message in others)])
