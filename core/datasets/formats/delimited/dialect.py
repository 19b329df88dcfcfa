"""How the cells of a delimited text are separated and quoted."""

from dataclasses import dataclass

SPELLED = {"\\t": "\t", "tab": "\t", "space": " ", "comma": ",", "semicolon": ";", "pipe": "|"}


@dataclass(frozen=True)
class Dialect:
    """Delimiter and quote of a delimited text.

    Args:
        quote: around cells that hold delimiters; None: every quote is text.
        escape: before a quote inside quotes; None: the quote is doubled.
        runs: whether several blanks or tabs are one delimiter, as in aligned columns.
        padded: whether blanks may stand between a delimiter and a quote.
        copied: whether cells have PostgreSQL's backslash escapes, as its COPY and MySQL write.
    """

    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    runs: bool = False
    padded: bool = False
    copied: bool = False


def character(given: str) -> str:
    r"""The character that a caller means: also `\t` and `tab`."""
    return SPELLED.get(given.lower(), given)
