"""Passwords that come in files, as orchestrators mount them, so that no URL carries a secret."""

import re
from pathlib import Path
from urllib.parse import quote

_URL = re.compile(r"(?P<scheme>[^:/]+://)(?P<authority>[^/?#]*)(?P<rest>.*)", re.DOTALL)
_PASSWORD_PARAMETER = re.compile(r"(?i)[?&]password=")


def read_secret(path: Path) -> str:
    """The content of a file without the white space around it.

    Raises:
        ValueError: when there is none to read; the message says what would be right.
    """
    try:
        secret = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise ValueError(f"cannot be read ({reason}): give a file that holds the secret") from error
    if not secret:
        raise ValueError("is empty: give a file that holds the secret")
    return secret


def with_password(url: str, password: str) -> str:
    """The URL of a server with a password put in.

    Raises:
        ValueError: when it has one already.
    """
    match = _URL.fullmatch(url)
    if match is None:
        raise ValueError("give scheme://user@host/name")
    user, _, host = match["authority"].rpartition("@")
    if ":" in user or _PASSWORD_PARAMETER.search(match["rest"]):
        raise ValueError("has a password already: give it in the URL or in the file, not in both")
    return f"{match['scheme']}{user}:{quote(password, safe='')}@{host}{match['rest']}"
