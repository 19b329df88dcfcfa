"""The lines of a file that are not ASCII, near a byte that is not UTF-8."""

from pathlib import Path

from core.datasets.formats.delimited.encodings import Undecodable

REGION_BYTES = 2**16


def marked_lines(path: Path, undecodable: Undecodable) -> list[tuple[int, bytes]]:
    """Lines with bytes above 0x7f from the line of the first wrong byte on, with their numbers."""
    before = min(undecodable.position, REGION_BYTES)
    with path.open("rb") as file:
        file.seek(undecodable.position - before)
        region = file.read(before + REGION_BYTES)
    start = max(region.rfind(b"\n", 0, before), region.rfind(b"\r", 0, before)) + 1
    lines = region[start:].split(b"\n")
    return [
        (undecodable.line + place, line) for place, line in enumerate(lines) if not line.isascii()
    ]


def is_mostly_utf8(path: Path, lines: list[tuple[int, bytes]]) -> bool:
    """Whether most characters outside ASCII are valid UTF-8, so that the rest is damage."""
    with path.open("rb") as file:
        start = file.read(REGION_BYTES)
    sample = start + b"".join(b"\n" + line for _, line in lines if line not in start)
    wrong = sample.decode("utf-8", "replace").count("\ufffd")
    right = sum(ord(one) > 127 for one in sample.decode("utf-8", "ignore"))
    return right >= 2 * wrong
