"""How a data set's file was read: in a sentence, and as fields that set it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, get_type_hints

import orjson
from pydantic.fields import FieldInfo

from core.datasets.dataset import Dataset, given_fields
from core.datasets.files.opening import LABELS as FORMATS
from core.datasets.files.options import MAX_SKIP, Reading, ReadingOptions
from models.messages import counted

LABELS: Mapping[str, str] = {
    "delimiter": "Delimiter",
    "quote": "Quotes",
    "encoding": "Encoding",
    "decimal": "Decimal mark",
    "header": "Header",
    "skip": "Lines to skip",
    "comment": "Comment lines begin with",
    "index": "Index column",
    "sheet": "Sheet",
}
SAID: Mapping[str, str] = {**LABELS, "unique_rows": "Rows that equal an earlier one left out"}
_SIGNS: Mapping[str, str] = {
    ",": "comma",
    ";": "semicolon",
    "\t": "tab",
    "|": "vertical bar",
    " ": "space",
    ":": "colon",
}
_CHOICES: Mapping[str, Sequence[tuple[Any, str]]] = {
    "delimiter": list(_SIGNS.items()),
    "quote": [('"', 'double: "'), ("'", "single: '")],
    "decimal": [(".", "point: 1.5"), (",", "comma: 1,5")],
    "header": [(True, "yes"), (False, "no")],
    "index": [(True, "yes"), (False, "no")],
}
_TIMES: Mapping[str, str] = {
    "%d": "DD",
    "%m": "MM",
    "%Y": "YYYY",
    "%y": "YY",
    "%b": "Mon",
    "%B": "Month",
    "%H": "hh",
    "%I": "hh",
    "%M": "mm",
    "%S": "ss",
    "%f": "ffffff",
    "%p": "AM/PM",
    "%z": "±hh:mm",
}
_OF_TEXT = tuple(name for name in LABELS if name != "sheet")
_OF_WORKBOOKS = ("sheet", "header", "skip", "index")


@dataclass(frozen=True, kw_only=True)
class OptionField:
    """A field of one reading option.

    Args:
        choices: JSON values and labels; empty for a text or a number.
        value: what was found out, as JSON for a choice and as text otherwise.
    """

    name: str
    label: str
    hint: str
    choices: Sequence[tuple[str, str]] = ()
    value: str = ""
    most: int | None = None  # of a number


def upload_fields() -> list[OptionField]:
    """A field of every option, without values."""
    return [_field(name, None) for name in LABELS]


def reading_fields(reading: Reading) -> list[OptionField]:
    """The fields of the options that a file of this kind has, with what was found out.

    Empty for a format that leaves nothing to find out, such as Parquet.
    """
    if reading.delimiter is not None:
        names = _OF_TEXT
    elif reading.sheet is not None:
        names = _OF_WORKBOOKS
    else:
        names = tuple(name for name in LABELS if getattr(reading, name) is not None)
    return [_field(name, getattr(reading, name)) for name in names]


def reading_sentence(dataset: Dataset) -> str:
    """How the file was read, for people."""
    reading = dataset.reading
    first = f"Read as {FORMATS.get(dataset.format, dataset.format)}{_where(reading)}"
    clauses = list(_clauses(reading))
    return f"{first}: {', '.join(clauses)}." if clauses else f"{first}."


def option_words(options: ReadingOptions | Mapping[str, Any]) -> list[str]:
    """Options that were said, such as `delimiter: semicolon`."""
    said = options if isinstance(options, Mapping) else given_fields(options)
    return [f"{SAID[name].lower()}: {_word(name, value)}" for name, value in said.items()]


def written(format_: str) -> str:
    """The format of a column for people: `%d.%m.%Y` is DD.MM.YYYY."""
    return re.sub(r"%[a-zA-Z]", lambda sign: _TIMES.get(sign[0], sign[0]), format_)


def _where(reading: Reading) -> str:
    found = f", sheet “{reading.sheet}”" if reading.sheet else ""
    if reading.encoding:
        shown = reading.encoding
        found += f" in {shown.upper() if shown.lower().startswith('utf') else shown}"
    if reading.member:
        return f"{found}, from {reading.member} in a {reading.packing} file"
    return f"{found}, unpacked from {reading.packing}" if reading.packing else found


def _clauses(reading: Reading) -> Iterator[str]:
    if reading.delimiter:
        yield f"{_sign(reading.delimiter)} between cells"
    if reading.decimal:
        yield f"decimal {'comma' if reading.decimal == ',' else 'point'}"
    if reading.header is not None:
        yield f"column names {'in the first line' if reading.header else 'made up, no header'}"
    if reading.skip:
        yield f"{reading.skip} {'line' if reading.skip == 1 else 'lines'} above skipped"
    if reading.comment:
        yield f"lines that begin with {reading.comment} skipped"
    if reading.index:
        yield "the first column only numbers the rows and is left out"
    if reading.repeated_rows is not None:
        number = counted(reading.repeated_rows, "row")
        yield f"{number} left out because they equal an earlier one"


def _sign(character: str) -> str:
    name = _SIGNS.get(character)
    return f"a {name}" if name else f"“{character}”"


def _word(name: str, value: object) -> str:
    if name == "delimiter":
        return _SIGNS.get(str(value), str(value))
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _field(name: str, value: object) -> OptionField:
    choices = [(_json(choice), label) for choice, label in _CHOICES.get(name, ())]
    if choices and value is not None and _json(value) not in dict(choices):
        choices.append((_json(value), str(value)))
    shown = "" if value is None else _json(value) if choices else str(value)
    most = MAX_SKIP if name == "skip" else None
    return OptionField(
        name=name, label=LABELS[name], hint=_HINTS[name], choices=choices, value=shown, most=most
    )


def _json(value: object) -> str:
    return orjson.dumps(value).decode()


def _hints() -> dict[str, str]:
    """The descriptions of the options, as OpenAPI has them."""
    hints = get_type_hints(ReadingOptions, include_extras=True)
    found = {}
    for one in fields(ReadingOptions):
        notes = getattr(hints[one.name], "__metadata__", ())
        told = [n.description for n in notes if isinstance(n, FieldInfo) and n.description]
        found[one.name] = told[0] if told else ""
    return found


_HINTS = _hints()
