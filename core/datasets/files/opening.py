"""From an uploaded file and its media type to a file that is unpacked and known."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from core.datasets.files.kinds import begins_json, kind_of_bytes, kind_of_text, read_head
from core.datasets.files.options import ReadingOptions
from core.datasets.files.source import Reader, Source
from core.datasets.files.unpacking import unpacked
from core.datasets.findings.finding import Finding
from core.datasets.formats import FOUND_OUT, Format, declared_format, format_named, is_form
from core.exceptions import NotParseable, UnsupportedFormat

TEXTS = ("csv", "tsv", "text", "jsonl", "records")
JSON = ("jsonl", "records")
WORKBOOKS = ("excel", "opendocument")
LABELS = {
    "csv": "CSV",
    "tsv": "tab-separated values",
    "text": "plain text",
    "jsonl": "JSON lines",
    "records": "JSON",
    "excel": "an Excel workbook",
    "opendocument": "an OpenDocument spreadsheet",
    "parquet": "Parquet",
    "arrow": "an Arrow stream",
    "feather": "an Arrow file (Feather)",
    "orc": "ORC",
    "npz": "NumPy arrays",
}


@dataclass(frozen=True)
class Opened:
    """A file without its packing, and its format.

    Args:
        findings: on what it was found to be.
    """

    path: Path
    format: Format
    packing: str | None = None
    member: str | None = None
    findings: tuple[Finding, ...] = ()

    def read(self, max_bytes: int, options: ReadingOptions, reader: Reader | None = None) -> Source:
        """The columns, with what was done to the file before they were read.

        Args:
            reader: in place of the format's.
        """
        source = (reader or self.format.read)(self.path, max_bytes, options)
        return replace(
            source,
            reading=replace(source.reading, packing=self.packing, member=self.member),
            findings=(*self.findings, *source.findings),
        )


@contextmanager
def opened(
    path: Path, media_type: str, max_bytes: int, scratch: Path | None = None
) -> Iterator[Opened]:
    """An upload, ready to be read. What its bytes plainly are goes before its media type.

    Raises:
        UnsupportedFormat: the media type or the file's kind is not read.
        NotParseable, TooLarge: see `unpacked`.
    """
    declared = declared_format(media_type)
    with unpacked(path, max_bytes, scratch) as file:
        name = _find_out(file.path, declared, media_type)
        findings = [*_on_type(declared, name, media_type), *_on_others(file.member, file.beside)]
        yield Opened(file.path, format_named(name), file.packing, file.member, tuple(findings))


@contextmanager
def reopened(
    path: Path, format_: str, max_bytes: int, scratch: Path | None = None
) -> Iterator[Opened]:
    """A stored upload whose format is known, ready to be read again."""
    with unpacked(path, max_bytes, scratch) as file:
        yield Opened(file.path, format_named(format_), file.packing, file.member)


def _find_out(path: Path, declared: str, media_type: str) -> str:
    found = kind_of_bytes(path)
    if found is not None:
        return found
    if declared == "text":
        return "text"
    if declared not in (*TEXTS, *WORKBOOKS, FOUND_OUT):
        return declared  # its reader says what is wrong
    text = declared if declared in JSON and begins_json(path) else kind_of_text(path)
    if text is None:
        if declared == FOUND_OUT:
            raise UnsupportedFormat(
                "the file has none of the formats that are read: "
                f"{', '.join(LABELS[name] for name in LABELS)}; in Python, "
                "credence.Client().upload(frame, name) sends any table"
            )
        return declared
    _check_line_breaks(path, media_type)
    if declared in TEXTS and (declared in JSON) == (text in JSON):
        return declared
    return text


def _check_line_breaks(path: Path, media_type: str) -> None:
    """Raise `NotParseable` for what `curl --data` makes of a text file: one line."""
    if is_form(media_type) and not any(mark in read_head(path).strip() for mark in b"\r\n{["):
        raise NotParseable(
            "the file has no line breaks: `curl --data` and `-d` remove them. Send it by "
            "`curl --data-binary @FILE`, with a Content-Type"
        )


def _on_type(declared: str, name: str, media_type: str) -> Iterator[Finding]:
    if declared not in (FOUND_OUT, name):
        yield Finding(
            code="file_type",
            severity="info",
            message=f"the file was sent as {media_type.partition(';')[0].strip()[:80]} but is "
            f"{LABELS[name]}, and was read as such",
        )


def _on_others(member: str | None, beside: tuple[str, ...]) -> Iterator[Finding]:
    if beside:
        others = ", ".join(repr(name[:100]) for name in beside[:5])
        yield Finding(
            code="file_type",
            severity="info",
            message=f"{member!r} was read; the archive also holds {others}",
        )
