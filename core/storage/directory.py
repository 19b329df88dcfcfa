"""A store in a local directory. Files are written to `.incoming`, then renamed."""

import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from core.exceptions import NotFound, Unavailable
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
        try:
            path.stat()
        except (FileNotFoundError, NotADirectoryError):
            self._check_folder()
            raise NotFound("artifact", key) from None
        except OSError as error:
            raise _unreadable(error.strerror or type(error).__name__) from error
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

    def _check_folder(self) -> None:
        """Tell a deleted artifact from a disk that is not mounted, which hides all of them."""
        try:
            empty = all(path.name.startswith(".") for path in self.root.iterdir())
        except OSError as error:
            raise _unreadable(error.strerror or type(error).__name__) from error
        if empty:
            raise _unreadable("it is empty")

    def _path(self, key: str) -> Path:
        return self.root / check_key(key)


def _unreadable(reason: str) -> Unavailable:
    return Unavailable(f"the artifact store cannot be read now: {reason}")
