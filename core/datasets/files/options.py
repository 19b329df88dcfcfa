"""How a file is read. Each option is declared once: its range, its meaning."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Interval, Len
from pydantic import Field

MAX_SKIP = 1_000_000

# Signs are ASCII, as Arrow takes them.
Character = Annotated[str, Field(pattern=r"^[\t -~]$")]
Delimiter = Annotated[str, Field(pattern=r"^([\t -~]|\\t|tab|space)$")]
Quote = Annotated[str, Field(pattern=r"^([\t -~]|none)$")]


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """How the caller says that a file is written. What is null or left out is found out."""

    delimiter: Annotated[
        Delimiter | None, Field(description="between the cells of a line: , ; | or tab (also \\t)")
    ] = None
    quote: Annotated[
        Quote | None, Field(description="around cells that hold delimiters; none: quotes are text")
    ] = None
    encoding: Annotated[
        Annotated[str, Len(1, 40)] | None, Field(description="such as utf-8, latin-1, utf-16")
    ] = None
    decimal: Annotated[
        Literal[".", ","] | None, Field(description="the decimal mark of the numbers")
    ] = None
    header: Annotated[
        bool | None, Field(description="whether the first line names the columns")
    ] = None
    skip: Annotated[
        Annotated[int, Interval(ge=0, le=MAX_SKIP)] | None,
        Field(description="how many lines are above the header, or above the first row"),
    ] = None
    comment: Annotated[
        Character | None, Field(description="what comment lines begin with, such as #")
    ] = None
    index: Annotated[
        bool | None, Field(description="whether the first column only numbers or names the rows")
    ] = None
    sheet: Annotated[
        Annotated[str, Len(1, 256)] | None,
        Field(description="of a workbook; default: the first with a table"),
    ] = None


@dataclass(frozen=True, kw_only=True)
class DatasetOptions(ReadingOptions):
    """How a data set is made from a file. Rows to predict have no such options: all stay."""

    unique_rows: Annotated[
        bool | None,
        Field(description="true: rows that equal an earlier row are left out; default: they stay"),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Reading(ReadingOptions):
    """How a file was read. None means that its format has no such thing.

    Args:
        packing: the compression that was undone: gzip, zstd, bz2 or zip.
        member: the name of the file in a zip archive.
        repeated_rows: the number of rows that were left out because they equal an earlier one;
            None if they stay.
    """

    packing: str | None = None
    member: str | None = None
    repeated_rows: int | None = None
