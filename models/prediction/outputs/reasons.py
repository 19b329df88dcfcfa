"""Why rows are unlike those of training."""

from dataclasses import dataclass
from typing import Any, Literal

from models.prediction.declared_outputs import ROWS, Output

REASONS = Output("reasons", "reason", ROWS, on_request=True)
"""The reasons of each row, the strongest first; none of rows like those of training."""

Code = Literal["out_of_range", "gap", "unseen_level", "missing_unseen", "unusual_combination"]
Level = str | bool
Value = float | int | str | bool | None
_SHOWN_TEXT = 40  # characters of a value in a sentence


@dataclass(frozen=True)
class Range:
    """The lowest and the highest value that training saw, as the caller would write them.

    Of a gap: the values at its lower and at its upper end.
    """

    lowest: float | int | str | None
    highest: float | int | str | None

    def document(self) -> dict[str, Any]:
        return {"lowest": self.lowest, "highest": self.highest}

    def __str__(self) -> str:
        return f"{shown(self.lowest)} to {shown(self.highest)}"


@dataclass(frozen=True)
class Levels:
    """The most frequent levels that training saw, and how many there were."""

    levels: tuple[Level, ...]
    count: int

    def document(self) -> dict[str, Any]:
        return {"levels": self.levels, "count": self.count}

    def __str__(self) -> str:
        first = ", ".join(map(shown, self.levels[:3]))
        more = self.count - len(self.levels[:3])
        return f"{first} and {more} more" if more > 0 else first or "no value"


Seen = Range | Levels


@dataclass(frozen=True)
class Reason:
    """One column of a row that is unlike training.

    Args:
        column: its name; None if the row as a whole is unusual.
        value: as the caller would write it; None if it is missing.
        seen: what training saw; None if there is nothing to compare with.
    """

    column: str | None
    code: Code
    value: Value
    seen: Seen | None

    def document(self) -> dict[str, Any]:
        seen = None if self.seen is None else self.seen.document()
        row = {"column": self.column, "code": self.code, "value": self.value, "seen": seen}
        return row | {"text": self.text}

    @property
    def text(self) -> str:
        """The reason in plain words."""
        match self.code:
            case "missing_unseen":
                return f"{self.column} is missing; training always had a value"
            case "gap" if isinstance(self.seen, Range):
                ends = f"{shown(self.seen.lowest)} and {shown(self.seen.highest)}"
                return f"{self.column} is {shown(self.value)}; training saw nothing between {ends}"
            case "unusual_combination" if self.column is None:
                return "its values are usual one by one, but not together"
            case "unusual_combination":
                return f"{self.column} is {shown(self.value)}, unusual with the other values"
        return f"{self.column} is {shown(self.value)}; training saw {self.seen or 'no value'}"


COMBINATION = Reason(None, "unusual_combination", None, None)
"""The reason of a row that no single column explains."""


def shown(value: Value) -> str:
    """A value in a sentence."""
    match value:
        case None:
            return "not a number"
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:.6g}"
        case str() if len(value) > _SHOWN_TEXT:
            return f"{value[:_SHOWN_TEXT]}…"
    return str(value)
