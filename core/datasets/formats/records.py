"""JSON: records in an array or in lines, or one object that holds columns or records."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from core.datasets.files.options import Reading, ReadingOptions
from core.datasets.files.source import Source, row_numbers
from core.datasets.findings.finding import Finding
from core.datasets.formats.json_columns import NO_RECORDS, Columns
from core.datasets.formats.json_text import JsonText
from core.exceptions import Invalid, NotParseable

Json = Any
Record = tuple[int, Mapping[str, Any]]
ROW_NAME = "row"  # of the keys of records that are held by name


def read(path: Path, max_bytes: int, options: ReadingOptions) -> Source:
    """Read a file, record by record where its form allows. To be run with limits.

    Raises:
        NotParseable: it is not JSON; the message names the line.
        Invalid: there are no records in it, or no columns.
    """
    with closing(JsonText(path, options.encoding)) as text:
        reading = Reading(encoding=text.encoding)
        columns, lines = Columns(), []
        records, findings = _records(text)
        for line, record in records:
            lines.append(line)
            columns.add(line, record)
    if not lines:
        raise Invalid([("/columns", NO_RECORDS)])
    table, mixed, left_out = columns.finish()
    has_lines = lines[0] > 0
    return Source(
        table=table,
        reading=reading,
        lines=(lambda rows: [lines[row] for row in rows]) if has_lines else row_numbers,
        mixed=mixed,
        findings=(*findings, *left_out),
    )


def _records(text: JsonText) -> tuple[Iterator[Record], list[Finding]]:
    """The records; those inside a document have line 0, because they have none of their own."""
    match text.next_sign():
        case "":
            raise NotParseable("the file is empty: give at least one record")
        case "[":
            return _of_elements(_only(text)), []
    line, first = text.value()
    if text.next_sign():
        return _of_elements(_lines(text, line, first)), []
    found, findings = _of_document(first)
    return ((0 if record is not first else line, record) for record in found), findings


def _only(text: JsonText) -> Iterator[tuple[int, Json]]:
    yield from text.elements()
    if text.next_sign():
        raise text.refusal("there is more behind the array")


def _lines(text: JsonText, line: int, first: Json) -> Iterator[tuple[int, Json]]:
    """Values behind each other; a comma between them may stand there, too."""
    yield line, first
    while text.next_sign():
        yield text.value()


def _of_elements(elements: Iterator[tuple[int, Json]]) -> Iterator[Record]:
    """Records of objects, of lists (as rows of a table), or of single values."""
    names: Sequence[str] | None = None
    kind: type | None = None
    for line, element in elements:
        kind = type(element) if kind is None else kind
        if type(element) is not kind and dict in (kind, type(element)):
            raise NotParseable(
                f"line {line}: there is {_said(element)} where the records before are "
                f"{_said(kind())}s: give objects only"
            )
        if isinstance(element, dict):
            yield line, element
        elif not isinstance(element, list):
            yield line, {"value": element}
        elif names is None and element and all(isinstance(cell, str) for cell in element):
            names = element  # the first row names the columns
        else:
            names = names or [f"column_{place}" for place in range(1, len(element) + 1)]
            if len(element) != len(names):
                raise NotParseable(
                    f"line {line}: the list has {len(element)} values and the first {len(names)}: "
                    "give all the same number"
                )
            yield line, dict(zip(names, element, strict=True))


def _of_document(document: Json) -> tuple[Iterator[Mapping[str, Any]], list[Finding]]:
    """The records of one object."""
    if not isinstance(document, dict):
        raise NotParseable(f"the file holds {_said(document)}: give records, or lists by name")
    if _is_split(document):
        names = [str(name) for name in document["columns"]]
        return (dict(zip(names, row, strict=False)) for row in document["data"]), []
    inner = document.get("columns")
    if isinstance(inner, dict) and inner and all(isinstance(v, list) for v in inner.values()):
        document = inner
    are_lists = bool(document) and all(isinstance(value, list) for value in document.values())
    if are_lists and (len(document) > 1 or not _has_records(next(iter(document.values())))):
        return _of_lists(document), []
    if document and all(isinstance(value, dict) for value in document.values()):
        return _of_objects(document), []
    holding = [name for name, value in document.items() if _has_records(value)]
    if len(holding) == 1:
        return iter(document[holding[0]]), _on_others(document, holding[0])
    if len(holding) > 1:
        raise NotParseable(
            f"several members hold records ({', '.join(map(repr, holding[:10]))}): upload each as "
            "a data set of its own"
        )
    return iter([document]), []


def _is_split(document: Mapping[str, Any]) -> bool:
    """Whether it is what pandas writes with orient="split"."""
    data = document.get("data")
    is_list = isinstance(document.get("columns"), list) and isinstance(data, list)
    return is_list and all(isinstance(row, list) for row in data or ())


def _has_records(value: Json) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)


def _of_lists(columns: Mapping[str, Sequence[Any]]) -> Iterator[Mapping[str, Any]]:
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name!r} {n}" for name, n in list(lengths.items())[:5])
        raise NotParseable(f"the lists have different numbers of values ({shown})")
    return (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


def _of_objects(document: Mapping[str, Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Objects by name: columns, as pandas writes a frame, or records by their key."""
    rows = {key: None for column in document.values() for key in column}
    if _are_numbers(rows) and not _are_numbers(document):
        return ({name: column.get(key) for name, column in document.items()} for key in rows)
    if _are_numbers(document):
        return iter(document.values())
    return ({ROW_NAME: key, **record} for key, record in document.items())


def _are_numbers(keys: Mapping[str, Any]) -> bool:
    return all(key.isdecimal() for key in keys)


def _on_others(document: Mapping[str, Any], name: str) -> list[Finding]:
    others = [other for other in document if other != name]
    if not others:
        return []
    return [
        Finding(
            code="nested",
            severity="info",
            message=f"the records are those of {name!r}; {', '.join(map(repr, others[:5]))} beside "
            "it was not read",
        )
    ]


def _said(value: Json) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a boolean"}
    return names.get(type(value), "a number" if value is not None else "null")
