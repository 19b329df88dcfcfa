"""The artifact store: whole or not at all, never outside its root."""

import os
import threading
from pathlib import Path

import pytest

from core.exceptions import NotFound, Unavailable
from core.settings import Settings
from core.storage import LEFTOVER_SECONDS, DirectoryStore, open_store


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    (path / "inner").mkdir(parents=True)
    (path / "inner" / "weights").write_bytes(b"12")
    (path / "model.json").write_text("{}")
    return path


def test_a_directory_is_published_with_all_in_it(store: DirectoryStore, source: Path) -> None:
    store.put_directory("models/a/job-1", source)
    assert store.exists("models/a/job-1")
    assert (store.local_path("models/a/job-1") / "inner" / "weights").read_bytes() == b"12"
    assert (source / "model.json").exists(), "the source stays as it was"


def test_a_file_is_published(store: DirectoryStore, source: Path) -> None:
    store.put_file("datasets/a.arrow", source / "model.json")
    assert store.local_path("datasets/a.arrow").read_text() == "{}"


def test_what_is_published_stays(store: DirectoryStore, source: Path) -> None:
    store.put_directory("a", source)
    with pytest.raises(FileExistsError, match="is published already"):
        store.put_file("a", source / "model.json")
    assert (store.local_path("a") / "model.json").exists()


def test_deleting_twice_is_as_good_as_once(store: DirectoryStore, source: Path) -> None:
    store.put_directory("a/b", source)
    store.delete("a/b")
    store.delete("a/b")
    assert not store.exists("a/b")
    with pytest.raises(NotFound, match="there is no artifact 'a/b'"):
        store.local_path("a/b")
    assert list(store.root.glob(".incoming/*")) == []


@pytest.mark.parametrize(
    "key", ["../a", "a/../b", "/etc/passwd", "", "a//b", ".hidden", "a/.b", "a/", "a\x00b", "a\n"]
)
def test_keys_cannot_leave_the_root(store: DirectoryStore, source: Path, key: str) -> None:
    for use in (store.local_path, store.exists, store.delete):
        with pytest.raises(ValueError, match="is not an artifact key"):
            use(key)
    with pytest.raises(ValueError, match="is not an artifact key"):
        store.put_file(key, source / "model.json")


def test_an_interrupted_copy_publishes_nothing(store: DirectoryStore, source: Path) -> None:
    (source / "inner" / "weights").unlink()
    (source / "inner" / "weights").symlink_to(source / "nowhere")  # copying fails here
    with pytest.raises(Unavailable):
        store.put_directory("a", source)
    assert not store.exists("a")
    assert list(store.root.glob(".incoming/*")) == []


def test_readers_see_all_or_nothing(store: DirectoryStore, source: Path) -> None:
    """While one thread publishes, another never meets a part of what is published."""
    done = threading.Event()
    partial: list[set[str]] = []

    def look() -> None:
        while not done.is_set():
            for path in (store.root / "models").glob("*"):
                names = {str(inner.relative_to(path)) for inner in path.rglob("*")}
                if names != {"inner", "inner/weights", "model.json"}:
                    partial.append(names)

    reader = threading.Thread(target=look)
    reader.start()
    for i in range(30):
        store.put_directory(f"models/{i}", source)
    done.set()
    reader.join()
    assert partial == []


def test_a_store_that_cannot_be_written_says_so(tmp_path: Path, source: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = DirectoryStore(tmp_path / "file" / "artifacts")
    with pytest.raises(Unavailable, match="does not take files now: Not a directory"):
        store.check()
    with pytest.raises(Unavailable):
        store.put_directory("a", source)


def test_leftovers_of_killed_processes_are_removed_in_time(settings: Settings) -> None:
    incoming = settings.artifact_root / ".incoming"
    for name, age in (("old", LEFTOVER_SECONDS + 60), ("new", 60)):
        (incoming / name).mkdir(parents=True)
        moment = (incoming / name).stat().st_mtime - age
        os.utime(incoming / name, (moment, moment))
    open_store(settings).check()
    assert [path.name for path in incoming.iterdir()] == ["new"]
