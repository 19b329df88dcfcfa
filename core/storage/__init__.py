"""Where published files live: whole or not at all, and never outside the store's root."""

import structlog

from core.exceptions import Unavailable
from core.settings import Settings
from core.storage.cache import Cache
from core.storage.directory import DirectoryStore
from core.storage.protocol import LEFTOVER_SECONDS, ArtifactStore

__all__ = ["LEFTOVER_SECONDS", "ArtifactStore", "DirectoryStore", "open_store"]

log = structlog.get_logger()


def open_store(settings: Settings) -> ArtifactStore:
    """The store that the settings name; one that does not answer yet is waited for in use."""
    store = _store(settings)
    try:
        store.remove_leftovers()
    except Unavailable as error:
        log.warning("leftovers in the artifact store stay for now", error=str(error))
    return store


def _store(settings: Settings) -> ArtifactStore:
    if settings.bucket is None:
        return DirectoryStore(settings.artifact_root)
    # what takes a quarter of a second to import is left out where nobody needs it
    from core.storage.bucket import Bucket  # noqa: PLC0415
    from core.storage.s3 import S3Store  # noqa: PLC0415

    cache = Cache(settings.data_dir / "cache", settings.store_cache_bytes)
    return S3Store(Bucket(*settings.bucket), cache)
