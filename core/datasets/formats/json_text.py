"""The values of a JSON file, one after the other, with their lines.

A file may be one document, an array whose elements are read one by one, or JSON lines.
"""

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from core.exceptions import NotParseable

CHUNK = 2**20  # characters
TAIL = 20  # characters at the end of a piece whose errors may only mean that more follows
BLANKS = re.compile(r"[ \t\r\n]*")
RECORDS = "send the records themselves from Python: credence.Client().upload(records, name)"
PYTHON = re.compile(r"'|None\b|True\b|False\b|nan\b|\(")


class _DuplicateKeyError(Exception):
    """An object has a key twice."""


class JsonText:
    """A JSON file that is read piece by piece.

    Raises:
        NotParseable: here and in all methods, for what is not JSON; the message names the line.
    """

    def __init__(self, path: Path, encoding: str | None = None) -> None:
        with path.open("rb") as file:
            head = file.read(4)
        found = encoding or json.detect_encoding(head)
        try:
            self.encoding = codecs.lookup(found).name
        except LookupError:
            raise NotParseable(f"there is no encoding {found!r}: give one such as utf-8") from None
        self._file = _open(path, "utf-8-sig" if self.encoding == "utf-8" else found)
        self._decoder = json.JSONDecoder(object_pairs_hook=_object)
        self._text, self._position, self._counted, self._line = "", 0, 0, 1
        self._is_all = False

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def next_sign(self) -> str:
        """The next character that is not blank; empty at the end of the file."""
        while True:
            match = BLANKS.match(self._text, self._position)
            self._position = match.end() if match else self._position
            if self._position < len(self._text) or self._is_all:
                return self._text[self._position : self._position + 1]
            self._grow()

    def elements(self) -> Iterator[tuple[int, Any]]:
        """The elements of the array that begins here, each with its line."""
        self._position += 1
        if self.next_sign() == "]":
            self._position += 1
            return
        while True:
            self.next_sign()
            yield self.value()
            match self.next_sign():
                case ",":
                    self._position += 1
                    if self.next_sign() == "]":
                        raise self._refusal("a comma before ] has nothing behind it: remove it")
                case "]":
                    self._position += 1
                    return
                case "":
                    raise self._refusal("the file ends inside an array")
                case sign:
                    raise self._refusal(f"there is {sign!r} where a comma or ] should be")

    def value(self) -> tuple[int, Any]:
        """The value that begins here, with its line."""
        while True:
            line = self._line_here()
            try:
                value, end = self._decoder.raw_decode(self._text, self._position)
            except json.JSONDecodeError as error:
                if self._is_all or self._is_final(error):
                    raise self._explained(error) from None
                self._grow()
                continue
            except _DuplicateKeyError as error:
                raise self._refusal(f"an object has the key {str(error)!r} twice") from None
            except RecursionError:
                raise self._refusal("objects or lists are too deep") from None
            except ValueError:
                raise self._refusal("a number has too many digits") from None
            if end < len(self._text) or self._is_all:
                self._position = end
                return line, value
            self._grow()

    def refusal(self, message: str) -> NotParseable:
        """An error in the line that is read now."""
        return self._refusal(message)

    def _grow(self) -> None:
        """Forget what was read, and read as much again as is left."""
        self._line_here()
        rest = self._text[self._position :]
        try:
            more = self._file.read(max(CHUNK, len(rest)))
        except UnicodeDecodeError as error:
            line = self._line + rest.count("\n") + error.object[: error.start].count(b"\n")
            raise NotParseable(
                f"line {line} has the byte 0x{error.object[error.start]:02x}, which is not "
                f"{self.encoding}: say encoding=latin-1, or what it is"
            ) from None
        self._is_all = not more
        self._text, self._position, self._counted = rest + more, 0, 0

    def _line_here(self) -> int:
        self._line += self._text.count("\n", self._counted, self._position)
        self._counted = self._position
        return self._line

    def _is_final(self, error: json.JSONDecodeError) -> bool:
        """Whether no text that may follow would make it right."""
        return not error.msg.startswith("Unterminated") and error.pos < len(self._text) - TAIL

    def _explained(self, error: json.JSONDecodeError) -> NotParseable:
        text, at = self._text, min(error.pos, len(self._text))
        before = text[:at].rstrip()
        if not text[at:].strip() or error.msg.startswith("Unterminated"):
            return self._refusal("the file ends inside a value, or a text is not closed", at)
        if before.endswith(",") and text[at] in "]}":
            message = f"a comma before {text[at]} has nothing behind it: remove it"
            return self._refusal(message, at)
        if PYTHON.match(text, at):
            shown = text[at : at + 10].split("\n")[0]
            message = (
                f"{shown!r} is how Python prints, not JSON: write it by json.dump, or {RECORDS}"
            )
            return self._refusal(message, at)
        return self._refusal(f"{error.msg[0].lower()}{error.msg[1:]}", at)

    def _refusal(self, message: str, at: int | None = None) -> NotParseable:
        line = self._line_here()
        if at is not None:
            line += self._text.count("\n", self._position, at)
        return NotParseable(f"line {line} is not JSON: {message}")


def _open(path: Path, encoding: str) -> TextIO:
    return path.open(encoding=encoding, newline="")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise _DuplicateKeyError(next(n for n in names if names.count(n) > 1)[:100])
    return found
