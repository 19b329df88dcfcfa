"""Stores of artifacts. An artifact is published completely or not at all."""

import structlog

from core.exceptions import Unavailable
from core.settings import Settings
from core.storage.cache import Cache
from core.storage.directory import DirectoryStore
from core.storage.protocol import LEFTOVER_SECONDS, ArtifactStore

__all__ = ["LEFTOVER_SECONDS", "ArtifactStore", "DirectoryStore", "open_store"]

log = structlog.get_logger()


def open_store(settings: Settings) -> ArtifactStore:
    """The store of the settings. It need not be available yet."""
    store = _store(settings)
    try:
        store.remove_leftovers()
    except Unavailable as error:
        log.warning("leftovers in the artifact store stay for now", error=str(error))
    return store


def _store(settings: Settings) -> ArtifactStore:
    if settings.bucket is None:
        return DirectoryStore(settings.artifact_root)
    # imported here, because boto3 takes a quarter of a second
    from core.storage.bucket import Bucket  # noqa: PLC0415
    from core.storage.s3 import S3Store  # noqa: PLC0415

    cache = Cache(settings.data_dir / "cache", settings.store_cache_bytes)
    return S3Store(Bucket(*settings.bucket), cache)
