"""A store in a local directory. Files are written to `.incoming`, then renamed."""

import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from core.exceptions import NotFound
from core.storage.protocol import check_key, published_already
from core.storage.staging import Staging, flush, flush_directory


class DirectoryStore:
    """See `ArtifactStore`. The key is the path of the file or directory."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._staging = Staging(self.root / ".incoming", "the artifact store")

    def put_file(self, key: str, source: Path) -> None:
        self._publish(key, lambda staged: shutil.copyfile(source, staged))

    def move_file(self, key: str, source: Path) -> None:
        self._publish(key, lambda staged: shutil.move(source, staged))

    def put_directory(self, key: str, source: Path) -> None:
        self._publish(key, lambda staged: shutil.copytree(source, staged))

    def local_path(self, key: str) -> Path:
        path = self._path(key)
        if not path.exists():
            raise NotFound("artifact", key)
        return path

    def exists(self, key: str) -> bool:
        return self._path(key).exists()

    def children(self, key: str) -> Sequence[str]:
        try:
            return sorted(path.name for path in self._path(key).iterdir())
        except FileNotFoundError:
            return []

    def delete(self, key: str) -> None:
        """Rename first, so that readers do not see a half-deleted artifact."""
        path = self._path(key)
        with self._staging.path() as doomed, suppress(FileNotFoundError):
            path.rename(doomed)

    def check(self) -> None:
        with self._staging.path() as probe:
            probe.touch()

    def free_bytes(self) -> int | None:
        return shutil.disk_usage(self.root).free if self.root.exists() else None

    def remove_leftovers(self) -> None:
        self._staging.remove_leftovers()

    def _publish(self, key: str, write_to: Callable[[Path], object]) -> None:
        path = self._path(key)
        with self._staging.path() as staged:
            write_to(staged)
            flush(staged)
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():
                raise published_already(key)
            staged.rename(path)
            flush_directory(path.parent)

    def _path(self, key: str) -> Path:
        return self.root / check_key(key)
