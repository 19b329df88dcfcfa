"""URLs of databases, brokers and artifact stores: which are valid, and their parts."""

import re
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

POSTGRESQL = ("postgresql", "postgres", "postgresql+psycopg")
BROKERS = ("filesystem", "redis", "rediss", "redis+socket")

DATABASE_EXAMPLE = "sqlite:////path/to/file.db or postgresql://user:password@host:5432/name"
BROKER_EXAMPLE = "filesystem:// or redis://host:6379/0"
ISSUER_EXAMPLE = "https://login.example.com/realm"
DOCS_EXAMPLE = "https://docs.example.org/credence/"
STORE_EXAMPLE = "file:///path/to/directory or s3://bucket/prefix"

_URL = re.compile(r"(?P<scheme>[^:/]+://)(?P<authority>[^/?#]*)(?P<rest>.*)", re.DOTALL)
_PASSWORD_PARAMETER = re.compile(r"(?i)[?&]password=")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"(/[A-Za-z0-9_][A-Za-z0-9._-]*)*/?")


def check_database_url(url: str) -> str:
    """Return the URL, or raise `ValueError` with what would be right."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise ValueError(f"give {DATABASE_EXAMPLE}") from error
    if parsed.drivername == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise ValueError("service and worker share the database: give sqlite:////path/to/file.db")
    if parsed.drivername not in ("sqlite", *POSTGRESQL):
        raise ValueError(f"give {DATABASE_EXAMPLE}")
    return url


def with_driver(database_url: str) -> str:
    """The database's URL with the driver that this project installs."""
    scheme, rest = database_url.split("://", 1)
    return f"postgresql+psycopg://{rest}" if scheme in POSTGRESQL else database_url


def with_password(url: str, password: str) -> str:
    """The URL of a server with a password added.

    Raises:
        ValueError: the URL has a password already.
    """
    match = _URL.fullmatch(url)
    if match is None:
        raise ValueError("give scheme://user@host/name")
    user, _, host = match["authority"].rpartition("@")
    if ":" in user or _PASSWORD_PARAMETER.search(match["rest"]):
        raise ValueError("has a password already: give it in the URL or in the file, not in both")
    return f"{match['scheme']}{user}:{quote(password, safe='')}@{host}{match['rest']}"


def check_broker_url(url: str) -> str:
    """Return the URL, or raise `ValueError` with what would be right."""
    if _scheme(url, BROKER_EXAMPLE) not in BROKERS:
        raise ValueError(f"give {BROKER_EXAMPLE}")
    return url


def check_artifact_url(url: str) -> str:
    """Return the URL, or raise `ValueError` with what would be right."""
    scheme, parts = _scheme(url, STORE_EXAMPLE), urlsplit(url)
    if scheme == "s3":
        return _check_bucket_url(url)
    if scheme != "file" or parts.netloc or parts.path in ("", "/"):
        raise ValueError(f"give {STORE_EXAMPLE}")
    return url


def _check_bucket_url(url: str) -> str:
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise ValueError("credentials do not belong here: set AWS_ACCESS_KEY_ID or give a role")
    plain = not (parts.query or parts.fragment)
    if not (plain and _BUCKET.fullmatch(parts.netloc) and _PREFIX.fullmatch(parts.path)):
        raise ValueError("give s3://bucket/prefix, of letters, digits, '.', '-' and '_'")
    return url


def to_bucket(artifact_url: str) -> tuple[str, str]:
    """Bucket and prefix of an `s3://` URL."""
    parts = urlsplit(artifact_url)
    return parts.netloc, parts.path.strip("/")


def to_directory(artifact_url: str) -> Path:
    """The directory of a `file://` URL."""
    return Path(unquote(urlsplit(artifact_url).path)).resolve()


def check_issuer(url: str) -> str:
    """The URL of a sign-on provider. Over plain HTTP it must be on this machine: keys come from it.

    Raises:
        ValueError: it is something else.
    """
    parts, scheme = urlsplit(url), _scheme(url, ISSUER_EXAMPLE)
    is_local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if not parts.hostname or scheme not in (("http", "https") if is_local else ("https",)):
        raise ValueError(f"give {ISSUER_EXAMPLE}")
    if "@" in parts.netloc or parts.fragment:
        raise ValueError(f"has a user name or a fragment: give {ISSUER_EXAMPLE}")
    return url


def check_docs_url(url: str) -> str:
    """The folder of the documentation's pages, with a final slash.

    Raises:
        ValueError: it is something else.
    """
    parts, scheme = urlsplit(url), _scheme(url, DOCS_EXAMPLE)
    if not parts.hostname or scheme not in ("http", "https"):
        raise ValueError(f"give {DOCS_EXAMPLE}")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError(f"has a user name, a query or a fragment: give {DOCS_EXAMPLE}")
    return url.rstrip("/") + "/"


def mask(value: str) -> str:
    """The text without possible passwords: from the first `:` after the scheme to the last `@`."""
    value = re.sub(r"^((?:[\w+.-]+:/+)?+[^:@/]*):.*@", r"\1:***@", value)
    return re.sub(r"(?i)(password=)[^&]*", r"\1***", value)


def _scheme(url: str, example: str) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises `ValueError` if it is not a number up to 65535
    except ValueError as error:
        raise ValueError(f"{error}: give {example}") from error
    return parts.scheme if "://" in url else ""
