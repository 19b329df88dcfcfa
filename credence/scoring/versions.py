"""Versions of models in a service, and their archives, which stay on disk once downloaded."""

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from credence import DEFAULT_URL
from credence.client import Client

MODELS = "models:/"
FORMS = (
    "a path of an archive or a folder, models:/NAME, models:/NAME/VERSION-OR-ALIAS, or "
    "http://HOST/models/NAME/versions/VERSION-OR-ALIAS"
)

_MODEL = re.compile(r"models:/(?P<name>[^/@]+)(?:[/@](?P<version>[^/@]+))?")
_PATH = re.compile(r"(?P<base>.*)/models/(?P<name>[^/]+)(?:/(?:versions/)?(?P<version>[^/]+))?/?")


@dataclass(frozen=True)
class VersionPlace:
    """A version of a model in the service at `url`.

    Attributes:
        version: number or alias; None for the newest.
        key: not shown, and never sent to another process: that one has `CREDENCE_KEY`.
    """

    url: str
    name: str
    version: str | None

    def archive(self, key: str | None = None) -> Path:
        """The version's archive, downloaded unless it is on disk.

        Raises:
            CredenceAPIError, ServiceUnreachable: see `Client`.
        """
        return self.resolved(key)[1]

    def resolved(self, key: str | None = None) -> tuple["VersionPlace", Path]:
        """The place with its number instead of an alias, and the archive."""
        with Client(self.url, key=key, progress=False) as client:
            about = client.model(self.name, self.version).description
            number = str(about["version"])
            made = f"{self.url} {about['created_at']} {about['job']}"  # a new service counts anew
            folder = hashlib.sha256(made.encode()).hexdigest()[:16]
            file = cache_folder() / folder / f"{self.name}-{number}.tar"
            if not file.exists():
                file.parent.mkdir(parents=True, exist_ok=True)
                client.export_version(self.name, number, file)
        return VersionPlace(self.url, self.name, number), file


def place_of(text: str, url: str | None) -> VersionPlace | None:
    """The version that a text names; None if the text is neither `models:/…` nor a URL.

    Args:
        url: of the service that `models:/…` is of; by default `CREDENCE_URL`.

    Raises:
        ValueError: the text has another form.
    """
    if text.startswith(MODELS):
        found = _MODEL.fullmatch(text)
        base = (url or os.environ.get("CREDENCE_URL") or DEFAULT_URL).rstrip("/")
    elif text.startswith(("http://", "https://")):
        parts = urlsplit(text)
        found = _PATH.fullmatch(parts.path)
        base = f"{parts.scheme}://{parts.netloc}{found['base'] if found else ''}"
    else:
        return None
    if found is None:
        raise ValueError(f"{text!r} names no model: give {FORMS}")
    version = found["version"]
    return VersionPlace(base, unquote(found["name"]), version and unquote(version))


def cache_folder() -> Path:
    """The folder of downloaded archives, in the user's cache: `XDG_CACHE_HOME`, or ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "credence" / "models"
