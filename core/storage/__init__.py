"""Where published files live: whole or not at all, and never outside the store's root."""

from core.storage.directory import DirectoryStore
from core.storage.opening import open_store
from core.storage.protocol import LEFTOVER_SECONDS, ArtifactStore

__all__ = ["LEFTOVER_SECONDS", "ArtifactStore", "DirectoryStore", "open_store"]
