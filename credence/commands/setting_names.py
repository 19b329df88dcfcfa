"""`--set` and other settings, checked by name before anything is uploaded."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, get_args, get_origin, get_type_hints, is_typeddict

import typer

from credence.commands.near import nearest
from credence.model_name import problem
from credence.train_settings import TrainBody


def check_settings(request: Mapping[str, Any], body: Any = TrainBody) -> None:
    """Refuse a name, or a word, that is surely a slip of another one.

    What is like nothing known is left to the service, which may be newer.

    Raises:
        typer.BadParameter: the message names the setting and the nearest right one.
    """
    for what, wrong, known in _unknown(request, body):
        if (near := nearest(wrong, known)) is not None:
            raise typer.BadParameter(f"{what} {wrong!r}: did you mean {near!r}?")


def check_names(request: Mapping[str, Any]) -> None:
    """Refuse a model or an alias whose name the service would refuse after the upload.

    Raises:
        typer.BadParameter: the message has a name that is right.
    """
    for what in ("model", "alias"):
        name = request.get(what)
        if isinstance(name, str) and (wrong := problem(name)) is not None:
            raise typer.BadParameter(f"{what} {wrong}")


def _unknown(value: Any, type_: Any, path: str = "") -> Iterator[tuple[str, str, list[str]]]:
    """Names and words that the type does not have: what they are, they, and those that it has."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _unknown(item, type_, path)
    elif isinstance(value, Mapping):
        members = [get_type_hints(one) for one in _parts(type_) if is_typeddict(one)]
        if not members:
            return
        known = {name: hint for member in members for name, hint in member.items()}
        for name, inner in value.items():
            if name not in known:
                yield f"{path}: unknown setting".removeprefix(": "), name, list(known)
            else:
                yield from _unknown(inner, known[name], f"{path}.{name}".lstrip("."))
    elif isinstance(value, str):
        words = [w for one in _parts(type_) if get_origin(one) is Literal for w in get_args(one)]
        if words and str not in _parts(type_) and value not in words:
            yield f"{path}: unknown value", value, words


def _parts(type_: Any) -> list[Any]:
    """The types of a union, and of the items of a list."""
    if get_origin(type_) is None or get_origin(type_) is Literal:
        return [type_]
    return [part for one in get_args(type_) for part in _parts(one)]
