"""Which encoding the bytes of a text file are in."""

import codecs
import re
from dataclasses import dataclass

from charset_normalizer import from_bytes

from core.datasets.formats.delimited import alphabets
from core.exceptions import Invalid

SAMPLE_BYTES = 2**16
UNUSABLE = frozenset(  # not what files are written in; some take quadratic time
    {"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape", "mbcs", "oem"}
)
KNOWN = "utf-8, utf-16, latin-1, cp1252, cp1250, cp1251, shift_jis, gb18030, mac-roman"
BOMS = (  # UTF-32 first: its mark begins with that of UTF-16
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
GUESSES = (  # encodings of one byte or two that files still come in
    *("cp1252", "cp1250", "cp1251", "koi8_r", "cp866", "cp1253", "cp1254"),
    *("cp1255", "cp1256", "cp1257", "shift_jis", "euc_jp", "gb18030", "big5", "euc_kr"),
)
MIXED = re.compile("[A-Za-z][\u0370-\u06ff\u0e00-\u0e7f]|[\u0370-\u06ff\u0e00-\u0e7f][A-Za-z]")
SIGN_IN_WORD = re.compile(r"(?<=[^\W\d_])[\x80-\xbf×÷Ÿ\u02c6\u02dc\u2000-\u2bff](?=[^\W\d_])")
LATIN = ("cp1252", "cp1250", "cp1254", "cp1257")


@dataclass(frozen=True)
class Encoding:
    """An encoding of a file.

    Args:
        name: as Python names it.
        bom_bytes: length of the byte-order mark.
        others: encodings that would do as well, where it is a guess.
        bare_cr: whether lines end with CR alone.
    """

    name: str
    bom_bytes: int = 0
    others: tuple[str, ...] = ()
    bare_cr: bool = False

    @property
    def is_utf8(self) -> bool:
        return self.name == "utf-8"


class Undecodable(Exception):
    """A byte that is not in the encoding.

    Args:
        position: in the file, counting from 0.
        line: counting from 1.
        wrong: the byte; empty if the decoder does not say.
    """

    def __init__(self, encoding: str, position: int, line: int, wrong: bytes) -> None:
        super().__init__(encoding, position, line)
        self.encoding, self.position, self.line, self.wrong = encoding, position, line, wrong

    def __str__(self) -> str:
        byte = f"byte 0x{self.wrong.hex()}" if self.wrong else "a byte"
        tried = "latin-1" if self.encoding == "cp1252" else "cp1252"
        return (
            f"{byte} at position {self.position} (line {self.line}) is not {self.encoding.upper()}:"
            f" give the file's encoding, such as encoding={tried}"
        )


def find_encoding(head: bytes, given: str | None) -> Encoding:
    """The encoding by what the caller says, the byte-order mark, zeros; else UTF-8.

    Args:
        head: the beginning of the file.

    Raises:
        Invalid: what the caller says is not an encoding.
    """
    marked = next((Encoding(name, len(bom)) for bom, name in BOMS if head.startswith(bom)), None)
    if given is not None:
        return _given(given, marked)
    return marked or Encoding(_wide(head) or "utf-8")


def _given(name: str, marked: Encoding | None) -> Encoding:
    try:
        known = codecs.lookup(name).name
        codecs.getincrementaldecoder(known)().decode(b"", final=True)
        "a".encode(known)  # not of bytes to bytes, such as base64
    except (LookupError, UnicodeError, TypeError, ValueError):
        known = ""
    if not known or known in UNUSABLE:
        raise Invalid([("encoding", f"{name!r} is not an encoding: give one such as {KNOWN}")])
    known = {"utf-8-sig": "utf-8", "ascii": "utf-8"}.get(known, known)
    if marked is not None and marked.name.startswith(known):
        return marked
    return Encoding({"utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(known, known))


def _wide(head: bytes) -> str | None:
    """UTF-16 or UTF-32 without a mark: line ends and digits have zeros, on one side."""
    zeros = [head[place::4].count(0) for place in range(4)]
    quarter = len(head) / 4
    if not any(zeros) or len(head) < 4:
        return None
    for name, places in (("utf-32-le", (1, 2, 3)), ("utf-32-be", (0, 1, 2))):
        if all(zeros[place] > 0.7 * quarter for place in places[1:]):
            return name if len(head) % 4 == 0 or len(head) >= SAMPLE_BYTES else None
    if head.count(0) < 2:
        return None
    even, odd = zeros[0] + zeros[2], zeros[1] + zeros[3]
    name = "utf-16-le" if odd > even else "utf-16-be"
    if min(even, odd) * 20 > max(even, odd) or max(even, odd) < len(head) / 50:
        return None
    try:
        head[: len(head) // 2 * 2].decode(name)
    except UnicodeDecodeError as error:
        return name if error.start >= len(head) - 4 else None
    return name


def guess_encoding(sample: bytes) -> Encoding:
    """The encoding of lines that are not UTF-8. Latin scripts are taken for Windows' cp1252."""
    if known := alphabets.guess(sample[:SAMPLE_BYTES]):
        return Encoding(known[0], others=(*known[1:3], "cp1252"))
    found = from_bytes(sample[:SAMPLE_BYTES], cp_isolation=list(GUESSES), enable_fallback=False)
    names = [match.encoding for match in found]
    likely = [name for name in names if not _is_odd(sample.decode(name, "ignore"))]
    best = likely[0] if likely else "cp1252"
    if best in LATIN:
        best = _latin(sample)
        names = ["cp1252", "cp1250", "cp850", "mac_roman"]
    return Encoding(best, others=tuple(name for name in names if name != best)[:4])


def _latin(sample: bytes) -> str:
    """Of the usual encodings of Latin scripts the first without signs inside words."""
    usual = ("cp1252", "cp1250", "cp850", "mac_roman")
    known = [name for name in usual if decodes(sample, name)]
    return min(
        known, key=lambda name: (len(SIGN_IN_WORD.findall(sample.decode(name))), known.index(name))
    )


def _is_odd(text: str) -> bool:
    """Whether words mix scripts, or letters are those that only wrong readings have in plenty."""
    letters = [one for one in text if one.isalpha() and not one.isascii()]
    narrow = sum("\uff61" <= one <= "\uff9f" for one in letters)
    return MIXED.search(text) is not None or 3 * narrow > len(letters)


def decodes(sample: bytes, name: str) -> bool:
    """Whether every byte is in the encoding."""
    try:
        sample.decode(name)
    except UnicodeDecodeError:
        return False
    return True
