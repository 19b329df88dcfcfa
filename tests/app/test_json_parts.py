"""Large JSON in parts: the same values and the same refusals as by the parser at once."""

import json
import random
from typing import Any

import jiter
import pytest

from app.http import json_parts
from app.http.json_parts import parse_in_parts

TEXTS = ("", "a", 'say "no"', "back\\slash\\", "[1, 2]", "{,}", "\\\\", "é€😀", '",')


def both(body: bytes) -> tuple[Any, Any]:
    """What the parser finds at once, and in parts; None for a refusal."""
    found = []
    for parse in (lambda b: jiter.from_json(b, catch_duplicate_keys=True), parse_in_parts):
        try:
            found.append(json.dumps(parse(body)))
        except ValueError:
            found.append(None)
    return found[0], found[1]


def some_value(draw: random.Random, depth: int) -> Any:
    kind = draw.randrange(6 if depth else 4)
    if kind == 4:
        return [some_value(draw, depth - 1) for _ in range(draw.randrange(9))]
    if kind == 5:
        names = [draw.choice(TEXTS) + str(i) for i in range(draw.randrange(9))]
        return {name: some_value(draw, depth - 1) for name in names}
    return (draw.choice(TEXTS), draw.random(), draw.randrange(-9, 99), None)[kind]


@pytest.fixture(autouse=True, params=[1, 7, 64])
def part_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_parts, "PART_BYTES", request.param)


@pytest.mark.parametrize("seed", range(3))
def test_values_and_refusals_are_those_of_the_parser(seed: int) -> None:
    """Of valid texts, and of each with a byte less, more or another."""
    draw = random.Random(seed)
    for _ in range(5):
        value = some_value(draw, 5)
        body = json.dumps(value, ensure_ascii=draw.random() < 0.5, indent=draw.choice([None, 1]))
        text = body.encode()
        at_once, in_parts = both(text)
        assert at_once is not None
        assert in_parts == at_once
        for _ in range(8):
            at, byte = draw.randrange(len(text)), draw.choice(b'[]{},:"\\ 01a')
            for wrong in (
                text[:at] + text[at + 1 :],
                text[:at] + bytes([byte]) + text[at:],
                text[:at] + bytes([byte]) + text[at + 1 :],
            ):
                at_once, in_parts = both(wrong)
                assert in_parts == at_once, wrong


def test_what_a_careless_division_would_take_is_refused() -> None:
    for wrong in (
        b"[1, 2, ]", b"[, 1, 2]", b"[1, , 2]", b'{"a": 1, "b": 2, "a": 3}', b'{["a", "a"]: 1}',
        b"[[1, 2}, 3]", b"[" * 300 + b"]" * 300, b'[1, 2]  "', b"",
    ):  # fmt: skip
        assert both(wrong) == (None, None), wrong
