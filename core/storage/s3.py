"""A store in a bucket. An artifact exists once its description (`.published`) exists.

    KEY/.TOKEN/NAME   a file of an artifact; each upload has its own token
    KEY/.published    the list of the artifact's files; written last, deleted first
    .incoming/TOKEN   a note: the key that a process is uploading or deleting

A process that is killed leaves its note. `remove_leftovers` looks only at keys with a note.
"""

import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from core.exceptions import NotFound
from core.storage import publication
from core.storage.bucket import Bucket
from core.storage.cache import Cache
from core.storage.protocol import LEFTOVER_SECONDS, check_key, published_already
from core.storage.publication import File, Publication

_MARKER = "/.published"
_NOTES = ".incoming/"
_DATA = re.compile(r"(?P<key>.+?)/\.(?P<token>[0-9a-f]{24})/.+")


class S3Store:
    """See `ArtifactStore`. Readers get copies from a cache on this machine."""

    def __init__(self, bucket: Bucket, cache: Cache) -> None:
        self._bucket = bucket
        self._cache = cache

    def put_file(self, key: str, source: Path) -> None:
        self._publish(check_key(key), source)

    move_file = put_file

    def put_directory(self, key: str, source: Path) -> None:
        self._publish(check_key(key), source)

    def local_path(self, key: str) -> Path:
        published = self._find(key)
        if published is None:
            raise NotFound("artifact", key)
        return self._cache.get(published.token, lambda path: self._download(key, published, path))

    def exists(self, key: str) -> bool:
        return self._find(key) is not None

    def children(self, key: str) -> Sequence[str]:
        start = f"{check_key(key)}/"
        names = (name.removeprefix(start) for name, _ in self._bucket.list(start))
        keys = {name.removesuffix(_MARKER) for name in names if name.endswith(_MARKER)}
        return sorted({name.partition("/")[0] for name in keys})

    def delete(self, key: str) -> None:
        names = [name for name, _ in self._bucket.list(f"{check_key(key)}/")]
        if names:
            with self._noted(key):
                self._bucket.delete([name for name in names if name.endswith(_MARKER)])
                self._bucket.delete([name for name in names if not name.endswith(_MARKER)])

    def check(self) -> None:
        self._bucket.put(".check", b"")

    def free_bytes(self) -> int | None:
        return None

    def remove_leftovers(self) -> None:
        self._cache.remove_leftovers()
        for note, written_at in list(self._bucket.list(_NOTES)):
            if _is_old(written_at) and (key := self._bucket.get(note)) is not None:
                self._remove_unpublished(key.decode())
                self._bucket.delete([note])

    def _publish(self, key: str, source: Path) -> None:
        if self.exists(key):
            raise published_already(key)
        published = publication.describe(source)
        objects = {file: _object(key, published, file) for file in published.files}
        with self._noted(key):
            try:
                for file, name in objects.items():
                    self._bucket.upload(name, published.path(source, file))
                if not self._bucket.create(key + _MARKER, published.to_json()):
                    raise published_already(key)
            except BaseException:
                self._bucket.delete(list(objects.values()))
                raise

    def _find(self, key: str) -> Publication | None:
        content = self._bucket.get(check_key(key) + _MARKER)
        return None if content is None else publication.read(content)

    def _download(self, key: str, published: Publication, path: Path) -> None:
        for file in published.files:
            local = published.path(path, file)
            local.parent.mkdir(parents=True, exist_ok=True)
            if not self._bucket.download(_object(key, published, file), local):
                raise NotFound("artifact", key)  # removed meanwhile
        published.check(path)

    @contextmanager
    def _noted(self, key: str) -> Iterator[None]:
        """Keep a note for `remove_leftovers` until the block succeeds."""
        note = _NOTES + secrets.token_hex(12)
        self._bucket.put(note, key.encode())
        yield
        self._bucket.delete([note])

    def _remove_unpublished(self, key: str) -> None:
        """Delete old files at `key` and below that do not belong to a published artifact."""
        objects = [
            (name, match)
            for name, written_at in self._bucket.list(f"{key}/")
            if _is_old(written_at) and (match := _DATA.fullmatch(name))
        ]
        found = {key: self._find(key) for key in {match["key"] for _, match in objects}}
        tokens = {key: published and published.token for key, published in found.items()}
        self._bucket.delete([n for n, match in objects if tokens[match["key"]] != match["token"]])


def _object(key: str, published: Publication, file: File) -> str:
    return f"{key}/.{published.token}/{file.name}"


def _is_old(written_at: datetime) -> bool:
    return datetime.now(UTC) - written_at > timedelta(seconds=LEFTOVER_SECONDS)
