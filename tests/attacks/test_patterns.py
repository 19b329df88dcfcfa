"""Texts that a pattern with a power in its time would read for minutes to days.

Each is read in a child that the system ends after 30 s of processor time. Linear patterns need less
than a second of it, however busy the machine is.
"""

import resource
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from core.sources.patterns import pattern
from core.sources.uris import parse

CPU_SECONDS = 30
LONG = 300_000
READS = {
    "comments of SQL": "kind(b'/**/' * 15_000 + b'x')",
    "a name of XML": "kind(b'<' + b'a' * 65_000)",
    "blank lines before SQL": "kind(b'create x' + b'\\n' * 65_000)",
    "a line of dashes": "table(b'h\\n' + b'-' * 60_000 + b'x\\n')",
    "blanks within a line": "collapsed('a' + ' ' * LONG + 'b')",
    "tabs before a quote": (
        "list(without_blanks([b'\\t' * LONG + b'x'], Dialect(delimiter='\\t', padded=True)))"
    ),
    "commas where a date might be": "guess([',' * LONG, ' ,' * LONG], day_first=True)",
    "a cookie": "presented_key(scope('cookie', '=' * LONG + chr(34)))",
    "a path that might be a prediction's": "is_prediction('/a' + '/v2/models/' * LONG)",
    "cookies as routes read them": "cookies('a=', 'credence_sign_in=', 'credence_key=')",
    "stars of a source": "pattern(parse('file:///' + '*0' * 40 + 'x')).fullmatch('0-' * 2000)",
    "folders of a source": (
        "pattern(parse('file:///' + '**/*a/' * 20 + 'x')).fullmatch('a/' * 2000 + 'y')"
    ),
}
CHILD = """
import sys
from pathlib import Path
from starlette.requests import Request
from app.access.session import keep_own_cookies, presented_key
from core.datasets.files.kinds import kind_of_text
from core.datasets.formats.delimited.blanks import collapsed, without_blanks
from core.datasets.formats.delimited.dialect import Dialect
from core.datasets.formats.delimited.layout import _is_dashes
from core.datasets.understanding.dates.guess import guess
from core.exceptions import CredenceError
from core.sources.patterns import pattern
from core.sources.uris import parse
from credence.serving.connections import is_prediction

LONG = {long}
file = Path(sys.argv[1])

def kind(content):
    file.write_bytes(content)
    return kind_of_text(file)

def table(content):
    return [_is_dashes(line.decode()) for line in content.splitlines()]

def scope(name, value):
    return {{"type": "http", "headers": [(name.encode(), value.encode())]}}

def cookies(*names):
    long = chr(34) + chr(92) * LONG + chr(34)
    request = scope("cookie", "; ".join(name + long for name in names) + "; credence_key=k")
    keep_own_cookies(request)
    assert Request(request).cookies == {{"credence_key": "k"}}

try:
    {read}
except CredenceError:
    pass
"""


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))


@pytest.mark.parametrize("what", READS)
def test_the_time_is_linear(what: str, tmp_path: Path) -> None:
    code = CHILD.format(long=LONG, read=READS[what])
    command = [sys.executable, "-c", code, str(tmp_path / "file")]
    ended = subprocess.run(command, preexec_fn=limit, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:] or "the processor time was used up"


def glob(pattern: str, name: str) -> bool:
    """By the definition: a star is any text."""
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(glob(pattern[1:], name[i:]) for i in range(len(name) + 1))
    return bool(name) and pattern[0] in ("?", name[0]) and glob(pattern[1:], name[1:])


def below(segments: list[str], parts: list[str]) -> bool:
    """By the definition: `**` is any folders."""
    if not segments or not parts:
        return not segments and not parts
    if segments[0] == "**" and len(segments) > 1:
        return any(below(segments[1:], parts[i:]) for i in range(len(parts)))
    return glob(segments[0], parts[0]) and below(segments[1:], parts[1:])


def test_patterns_of_folders_match_what_they_mean() -> None:
    paths = [list(parts) for n in range(1, 6) for parts in product("ab", repeat=n)]
    wholes = [list(parts) for n in range(1, 6) for parts in product(["a", "*", "**"], repeat=n)]
    for segments in wholes:
        found = pattern(parse("file:///" + "/".join([*segments, "b"])))
        for parts in paths:
            expected = below([*segments, "b"], parts)
            assert (found.fullmatch("/".join(parts)) is not None) == expected, (segments, parts)
