"""How the cells of a delimited text are separated and quoted."""

from dataclasses import dataclass

SPELLED = {"\\t": "\t", "tab": "\t", "space": " ", "comma": ",", "semicolon": ";", "pipe": "|"}


@dataclass(frozen=True)
class Dialect:
    """Delimiter and quote of a delimited text.

    Args:
        quote: around cells that hold delimiters; None: every quote is text.
        escape: before a quote inside quotes; None: the quote is doubled.
    """

    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None


def character(given: str) -> str:
    r"""The character that a caller means: also `\t` and `tab`."""
    return SPELLED.get(given.lower(), given)
