"""Parses large JSON in parts, so that the event loop and the engine go on in between.

A parser keeps the interpreter to itself until it ends: 0.1 s for 10 MB. Here each list and object
of more than `PART_BYTES` is parsed some elements at a time, in their own brackets, and joined. In
the text around it, `["mark 7"]` stands in its place, which is parsed like any other list. By JSON's
grammar, the whole is valid if and only if all parts are, none of several is empty, and no key is in
two of them. So a wrong division may refuse a body, and never accepts one that is not JSON.
"""

import secrets
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jiter
import numpy as np

PART_BYTES = 2**15  # take about 0.3 ms
MAX_DEPTH = 200  # jiter's limit
QUOTE, BACKSLASH, COMMA = b'"\\,'
STEPS = np.zeros(256, np.int8)  # what a byte adds to the depth
STEPS[list(b"[{")], STEPS[list(b"]}")] = 1, -1


def parse_in_parts(body: bytes) -> Any:
    """The value of a JSON text, as `jiter.from_json` gives it with `catch_duplicate_keys`.

    Raises:
        ValueError: it is not JSON, or has a key twice.
    """
    return _Parser(body, _Outline.of(body)).value(0, len(body))


@dataclass(frozen=True)
class _Container:
    """A large list or object: its first byte, the one after its last, and its depth from 1."""

    start: int
    stop: int
    depth: int


@dataclass
class _Outline:
    """Where the text can be divided.

    Args:
        containers: the large ones, by `start`.
        commas: by the depth of their container some of its commas, about one in `PART_BYTES`.
    """

    containers: list[_Container] = field(default_factory=list)
    commas: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    _open: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, body: bytes) -> "_Outline":
        outline, text = cls(), np.frombuffer(body, np.uint8)
        for start, brackets, commas in _outside_strings(text):
            steps = STEPS[text[start + brackets]]
            outline._keep_commas(start, brackets, commas, steps)
            outline._keep_brackets(start, brackets, steps)
        if outline._open:
            raise ValueError("EOF while parsing: a bracket is not closed")
        outline.containers.sort(key=lambda one: one.start)
        return outline

    def _keep_commas(
        self, start: int, brackets: np.ndarray, commas: np.ndarray, steps: np.ndarray
    ) -> None:
        """Keep the last comma of each depth."""
        depth = np.concatenate([[0], np.cumsum(steps, dtype=np.int64)]) + len(self._open)
        number = np.searchsorted(commas, brackets)  # of commas before each bracket
        ends, begins = np.append(number, len(commas)), np.concatenate([[0], number])
        depth, last = depth[ends > begins][::-1], commas[ends[ends > begins] - 1][::-1]
        depths, first = np.unique(depth, return_index=True)
        for each, comma in zip(depths.tolist(), (start + last[first]).tolist(), strict=True):
            self.commas[each].append(comma)

    def _keep_brackets(self, start: int, brackets: np.ndarray, steps: np.ndarray) -> None:
        """Go on with the brackets whose other one is not among these."""
        if not len(brackets):
            return
        depth = np.cumsum(steps, dtype=np.int64)
        if depth.max() + len(self._open) > MAX_DEPTH:
            raise ValueError("recursion limit exceeded")
        before = np.minimum.accumulate(np.concatenate([[0], depth[:-1]]))
        after = np.minimum.accumulate(depth[::-1])[::-1]
        for at in brackets[(steps < 0) & (depth < before)].tolist():
            self._close(start + at)
        self._open += (start + brackets[(steps > 0) & (depth <= after)]).tolist()

    def _close(self, at: int) -> None:
        if not self._open:
            raise ValueError("trailing characters: a bracket is closed that was not opened")
        start = self._open.pop()
        if at - start >= PART_BYTES:
            self.containers.append(_Container(start, at + 1, len(self._open) + 1))


def _outside_strings(text: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Parts of the text: the place of each, and in it the brackets and commas outside strings."""
    in_string = is_escaped = False
    for start in range(0, len(text), PART_BYTES):
        part = text[start : start + PART_BYTES]
        quotes, is_escaped = _quotes(part, is_escaped)
        brackets, commas = np.flatnonzero(STEPS[part]), np.flatnonzero(part == COMMA)
        if len(quotes) or in_string:
            brackets, commas = (
                found[(np.searchsorted(quotes, found) % 2 == 1) == in_string]
                for found in (brackets, commas)
            )
        in_string ^= bool(len(quotes) % 2)
        yield start, brackets, commas


def _quotes(part: np.ndarray, is_escaped: bool) -> tuple[np.ndarray, bool]:
    """The places of quotes that begin or end a string, and whether the next byte is escaped.

    Args:
        is_escaped: whether a backslash before this part escapes its first byte.
    """
    quotes, slashes = np.flatnonzero(part == QUOTE), np.flatnonzero(part == BACKSLASH)
    if is_escaped:
        quotes, slashes = quotes[quotes > 0], slashes[slashes > 0]
    if not len(slashes):
        return quotes, False
    number = np.arange(len(slashes))
    begins = np.concatenate([[True], np.diff(slashes) != 1])
    in_run = number - np.maximum.accumulate(np.where(begins, number, 0))
    escaped = slashes[in_run % 2 == 0] + 1  # the second of two stands for itself
    return np.setdiff1d(quotes, escaped, assume_unique=True), bool(escaped[-1] == len(part))


@dataclass(frozen=True)
class _Parser:
    """Parses ranges of the text; a mark that nobody can guess stands for a container."""

    body: bytes
    outline: _Outline
    mark: str = field(default_factory=lambda: secrets.token_hex(16))

    def value(self, start: int, stop: int, ends: tuple[bytes, bytes] = (b"", b"")) -> Any:
        """The value of the text between two places, with large containers of its own.

        Args:
            ends: brackets to put around it.
        """
        containers, pieces, at = self._within(start, stop), [ends[0]], start
        for number, one in enumerate(containers):
            pieces += [self.body[at : one.start], b'["%s %d"]' % (self.mark.encode(), number)]
            at = one.stop
        text = b"".join([*pieces, self.body[at:stop], ends[1]])
        found = jiter.from_json(text, catch_duplicate_keys=True)
        return self._filled(found, containers) if containers else found

    def _within(self, start: int, stop: int) -> list[_Container]:
        """The outermost containers in a range."""
        of_all, found = self.outline.containers, []
        at = bisect_left(of_all, start, key=lambda one: one.start)
        while at < len(of_all) and of_all[at].start < stop:
            found.append(of_all[at])
            at = bisect_left(of_all, of_all[at].stop, key=lambda one: one.start)
        return found

    def _filled(self, value: Any, containers: list[_Container]) -> Any:
        """A parsed value with the containers that its marks stand for."""
        match value:
            case [str(text)] if text.startswith(self.mark):
                return self._joined(containers[int(text.split()[1])])
            case list():
                return [self._filled(one, containers) for one in value]
            case dict():
                return {name: self._filled(one, containers) for name, one in value.items()}
            case _:
                return value

    def _joined(self, one: _Container) -> Any:
        """A container, from its parts."""
        ends = self.body[one.start : one.start + 1], self.body[one.stop - 1 : one.stop]
        commas = self.outline.commas.get(one.depth, [])
        own = commas[bisect_right(commas, one.start) : bisect_left(commas, one.stop)]
        starts, stops = [one.start + 1, *(comma + 1 for comma in own)], [*own, one.stop - 1]
        whole: Any = [] if ends[0] == b"[" else {}
        for start, stop in zip(starts, stops, strict=True):
            part = self.value(start, stop, ends)
            if not part and own:
                raise ValueError(f"trailing comma near byte {stop}")
            if isinstance(whole, list):
                whole += part
            elif whole.keys().isdisjoint(part):
                whole |= part
            else:
                raise ValueError(f"Detected duplicate key {min(whole.keys() & part)!r}")
        return whole
