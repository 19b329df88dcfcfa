"""Artifact stores: whole or not at all, never outside the root; the same tests for each."""

import threading
from pathlib import Path

import pytest

from core.exceptions import NotFound, Unavailable
from core.storage import ArtifactStore, DirectoryStore


@pytest.fixture
def store(directory_store: DirectoryStore) -> DirectoryStore:
    return directory_store


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    (path / "inner").mkdir(parents=True)
    (path / "inner" / "weights").write_bytes(b"12")
    (path / "model.json").write_text("{}")
    return path


def test_directories_and_files_are_published(any_store: ArtifactStore, source: Path) -> None:
    any_store.check()
    any_store.remove_leftovers()
    any_store.put_directory("models/a/job-1", source)
    assert any_store.exists("models/a/job-1")
    assert (any_store.local_path("models/a/job-1") / "inner" / "weights").read_bytes() == b"12"
    (source / "empty").touch()
    any_store.put_file("empty", source / "empty")
    assert any_store.local_path("empty").read_bytes() == b""
    any_store.put_file("datasets/a.arrow", source / "model.json")
    any_store.move_file("datasets/b.arrow", source / "model.json")
    for name in ("a", "b"):
        assert any_store.local_path(f"datasets/{name}.arrow").read_text() == "{}"


def test_what_is_published_stays(any_store: ArtifactStore, source: Path) -> None:
    any_store.put_directory("a", source)
    with pytest.raises(FileExistsError):
        any_store.put_file("a", source / "model.json")
    assert (any_store.local_path("a") / "model.json").exists()


def test_what_is_deleted_may_be_replaced(any_store: ArtifactStore, source: Path) -> None:
    any_store.put_file("a/b", source / "model.json")
    assert any_store.local_path("a/b").read_text() == "{}"
    any_store.delete("a/b")
    any_store.delete("a/b")
    assert not any_store.exists("a/b")
    with pytest.raises(NotFound):
        any_store.local_path("a/b")
    any_store.put_file("a/b", source / "inner" / "weights")
    assert any_store.local_path("a/b").read_text() == "12"


def test_children_go_with_their_key(any_store: ArtifactStore, source: Path) -> None:
    for key in ("a/2", "a/10", "ab/3"):
        any_store.put_directory(key, source)
    assert any_store.children("a") == ["10", "2"]
    any_store.delete("a")
    assert any_store.children("a") == []
    assert any_store.exists("ab/3")


def test_keys_cannot_leave_the_root(any_store: ArtifactStore, source: Path) -> None:
    keys = ["../a", "a/../b", "/etc/passwd", "a//b", ".hidden", "a/.b", "a/", "a\x00b", "a\n"]
    for key in ["", *keys]:
        for use in (any_store.local_path, any_store.exists, any_store.delete, any_store.children):
            with pytest.raises(ValueError, match="key"):
                use(key)
        with pytest.raises(ValueError, match="key"):
            any_store.put_file(key, source / "model.json")


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
    with pytest.raises(Unavailable, match="Not a directory"):
        store.check()
    with pytest.raises(Unavailable):
        store.put_directory("a", source)


def test_an_absent_folder_is_no_loss(store: DirectoryStore, source: Path, tmp_path: Path) -> None:
    """A disk that is not mounted leaves no folder, or an empty one."""
    store.put_directory("models/a", source)
    with pytest.raises(NotFound):
        store.local_path("models/b")
    store.root.rename(tmp_path / "away")
    with pytest.raises(Unavailable, match="No such file"):
        store.local_path("models/a")
    store.root.mkdir()
    with pytest.raises(Unavailable, match="it is empty"):
        store.local_path("models/a")
