"""What is special about a store in a bucket: many objects, a cache, a server that may be away."""

import json
import os
from pathlib import Path

import pytest

from core.exceptions import NotFound, Unavailable
from core.storage import cache as cache_module
from core.storage import s3
from core.storage.bucket import PART_BYTES, Bucket
from core.storage.cache import Cache
from core.storage.s3 import S3Store
from models.exceptions import CorruptArtifact
from tests.core.conftest import BUCKETS, at_once
from tests.core.s3 import BUCKET, KEY, SECRET, S3Server
from tests.waiting import free_port

TOKEN = "0123456789abcdef01234567"


@pytest.fixture(params=BUCKETS)
def bucket(request: pytest.FixtureRequest) -> Bucket:
    server: S3Server = request.getfixturevalue(request.param)
    return server.new_bucket()


@pytest.fixture
def store(bucket: Bucket, tmp_path: Path) -> S3Store:
    return S3Store(bucket, Cache(tmp_path / "cache", 2**30))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.mkdir()
    for name in "abc":
        (path / name).write_text(name)
    return path


def names(bucket: Bucket) -> list[str]:
    return [name for name, _ in bucket.list("")]


def test_a_file_of_several_parts_comes_back_whole(store: S3Store, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(os.urandom(2 * PART_BYTES + 17))
    store.put_file("large", tmp_path / "large")
    assert store.local_path("large").read_bytes() == (tmp_path / "large").read_bytes()


def test_an_upload_that_breaks_off_publishes_nothing(
    store: S3Store, bucket: Bucket, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last file is not there any more when its turn comes."""
    uploaded = bucket.upload

    def upload(name: str, path: Path) -> None:
        if path.name == "c":
            path.unlink()
        uploaded(name, path)

    monkeypatch.setattr(bucket, "upload", upload)
    with pytest.raises(FileNotFoundError):
        store.put_directory("models/a", source)
    assert not store.exists("models/a")
    assert [name.split("/")[0] for name in names(bucket)] == [".incoming"]


def test_what_a_dead_upload_has_left_is_swept_in_time(
    store: S3Store, bucket: Bucket, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put_directory("models/a", source)
    whole = names(bucket)
    bucket.upload(f"models/a/.{TOKEN}/a", source / "a")
    bucket.upload(f"models/b/.{TOKEN}/a", source / "a")
    for number, key in enumerate((b"models/a", b"models/b")):
        bucket.put(f".incoming/{number}", key)
    assert not store.exists("models/b")
    store.remove_leftovers()
    assert len(names(bucket)) == len(whole) + 4, "it may still be at work"
    monkeypatch.setattr(s3, "LEFTOVER_SECONDS", -3600)
    store.remove_leftovers()
    assert names(bucket) == whole


def test_damage_is_not_given(store: S3Store, bucket: Bucket, source: Path, tmp_path: Path) -> None:
    store.put_directory("models/a", source)
    [damaged] = [name for name in names(bucket) if name.endswith("/b")]
    bucket.put(damaged, b"x")
    with pytest.raises(CorruptArtifact, match="b has 1 bytes"):
        store.local_path("models/a")
    assert list((tmp_path / "cache").glob("[!.]*")) == []
    bucket.delete([damaged])
    with pytest.raises(NotFound):
        store.local_path("models/a")


@pytest.mark.parametrize(
    ("token", "name"), [(TOKEN, "../a"), (TOKEN, "/etc/passwd"), ("../../outside", "a")]
)
def test_descriptions_lead_nowhere(store: S3Store, bucket: Bucket, token: str, name: str) -> None:
    file = {"name": name, "size": 1, "sha256": ""}
    content = {"token": token, "is_directory": True, "files": [file]}
    for text in (json.dumps(content), "half a li"):
        bucket.put("a/.published", text.encode())
        with pytest.raises(CorruptArtifact):
            store.local_path("a")


@pytest.mark.stack
def test_of_several_that_publish_at_once_one_wins(moto_store: S3Store, source: Path) -> None:
    """Where the server knows conditions; others let the last one win, whole."""

    def publish(_: int) -> bool:
        try:
            moto_store.put_directory("models/a", source)
        except FileExistsError:
            return False
        return True

    assert sum(at_once(publish, 4)) == 1
    assert sorted(path.name for path in moto_store.local_path("models/a").iterdir()) == [*"abc"]


@pytest.fixture
def environment(rclone: S3Server, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Of a process that may use rclone's server; a test spoils it."""
    for name, value in rclone.environment.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def elsewhere(name: str = BUCKET) -> S3Store:
    return S3Store(Bucket(name, ""), Cache(Path("unused"), 0))


@pytest.mark.stack
def test_missing_buckets_are_told(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="has no bucket 'missing'"):
        elsewhere("missing").exists("a")
    environment.setenv("AWS_SECRET_ACCESS_KEY", "another-secret")
    with pytest.raises(Unavailable, match="refuses the credentials") as refused:
        elsewhere().check()
    assert "another-secret" not in str(refused.value)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        environment.delenv(name)
    environment.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    with pytest.raises(Unavailable, match="needs credentials: set AWS_ACCESS_KEY_ID"):
        elsewhere().check()
    lines = ["[default]", f"aws_access_key_id = {KEY}", f"aws_secret_access_key = {SECRET}"]
    (tmp_path / "credentials").write_text("\n".join(lines))
    elsewhere().check()


@pytest.mark.stack
def test_an_absent_server_is_unavailable(environment: pytest.MonkeyPatch, source: Path) -> None:
    environment.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{free_port()}")
    with pytest.raises(Unavailable, match=r"http://127.0.0.1:\d+"):
        elsewhere().put_file("a", source / "a")


def test_the_cache_keeps_the_last_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "GRACE_SECONDS", 0.0)
    cache, filled = Cache(tmp_path, 250), list[str]()
    for moment, name in enumerate("abacb", 1):  # b was not used for longest when c comes

        def fill(path: Path, name: str = name) -> None:
            filled.append(name)
            path.write_bytes(bytes(100))

        os.utime(cache.get(name, fill), (moment, moment))
    assert filled == ["a", "b", "c", "b"]
    assert sorted(path.name for path in tmp_path.glob("[!.]*")) == ["b", "c"]
