"""The right word for a wrong one, in the messages of the command line."""

import difflib
import re
from collections.abc import Iterable
from typing import Any

import typer
from typer.core import TyperGroup

_WRONG_CHOICE = re.compile(r"(?:Value error, )?('(.*)' is not (?:one of )?('.*'))\.?", re.DOTALL)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like `word`, whatever its case; None if none is like it."""
    folded = {one.casefold(): one for one in known}
    near = difflib.get_close_matches(word.casefold(), list(folded), n=1)
    return folded[near[0]] if near else None


class SuggestingGroup(TyperGroup):
    """Commands whose errors about a wrong choice end with the nearest right one.

    Unknown commands and options have such a hint already.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command.

        Raises:
            typer.BadParameter: as the command, with a hint.
        """
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            if found := _WRONG_CHOICE.fullmatch(error.message):
                near = nearest(found[2], re.findall("'([^']*)'", found[3]))
                error.message = found[1] + ("" if near is None else f": did you mean {near!r}?")
            raise
