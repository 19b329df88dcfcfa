"""Folders and buckets get files whole or not at all, and no link leads out of them."""

import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from core.destinations.bucket import BucketFolder, Keys
from core.destinations.folder import LocalFolder
from core.destinations.place import Place
from core.exceptions import Invalid, Unavailable
from core.offline.destination import Destination
from core.offline.opening import Target, open_destination
from core.settings import load_settings
from tests.core.s3 import SECRET


@pytest.fixture(params=["folder", pytest.param("bucket", marks=pytest.mark.stack)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "folder":
        return LocalFolder(tmp_path, ("new", "inner"))
    keys: Keys = request.getfixturevalue("keys")
    return BucketFolder("lake", f"{tmp_path.name}/inner", keys)


def write(place: Place, name: str, content: bytes) -> None:
    with place.writing(name) as file:
        file.write(content)


def fail(place: Place, name: str) -> None:
    with place.writing(name) as file:
        file.write(b"half")
        assert name not in place.names()
        raise KeyError


def test_a_file_is_there_whole_or_not_at_all(place: Place) -> None:
    assert place.names() == set()
    with pytest.raises(KeyError):
        fail(place, "part-1")
    assert place.names() == set()
    write(place, "part-1", b"old")
    write(pickle.loads(pickle.dumps(place)), "part-1", b"whole")  # as a worker gets it
    assert place.names() == {"part-1"}
    with place.opened("part-1") as file:
        assert file.read() == b"whole"
    with pytest.raises(FileNotFoundError), place.opened("none"):
        pass


def test_no_link_is_followed(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    outside.mkdir()
    root.mkdir()
    (outside / "mine").write_text("kept")
    (root / "link").symlink_to(outside)
    for below in (("link",), ("link", "new")):
        with pytest.raises(Invalid, match="root/link"):
            write(LocalFolder(root, below), "part-1", b"x")
    (root / "mine").symlink_to(outside / "mine")
    place = LocalFolder(root)
    with pytest.raises(Invalid, match="root/mine"), place.opened("mine"):
        pass
    write(place, "mine", b"replaced")  # the link itself
    assert (outside / "mine").read_text() == "kept"
    (root / "_delta_log").symlink_to(outside)
    with pytest.raises(Invalid, match="_delta_log"):
        place.table()
    os.mkfifo(root / "pipe")
    with pytest.raises(Invalid, match="pipe"), place.opened("pipe"):
        pass


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".part-00001.parquet.0123").write_text("half")
    (tmp_path / ".other").write_text("kept")
    LocalFolder(tmp_path).clear()
    assert LocalFolder(tmp_path).names() == {".other"}


@pytest.mark.stack
def test_a_bucket_that_refuses_or_is_away_is_named(keys: Keys) -> None:
    with pytest.raises(Invalid, match=r"s3://none/a: the bucket refuses"):
        write(BucketFolder("none", "a", keys), "part-1", b"x")
    away = BucketFolder("lake", "a", Keys("k", SECRET, endpoint="http://127.0.0.1:9"))
    with pytest.raises(Unavailable, match=r"s3://lake/a: ") as found:
        away.names()
    assert SECRET not in f"{found.value}{away!r}"


Open = Callable[..., Target]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    secrets = tmp_path / "secrets.toml"
    secrets.write_text(
        '[lake]\nkind = "s3"\naccess_key = "k"\nsecret_key = "hidden"\nregion = "eu-west-1"\n'
        '[shop]\nkind = "sqlite"\npath = "/srv/shop.db"\n'
    )
    settings = load_settings(
        data_dir=tmp_path / "data",
        source_secrets_file=secrets,
        destinations=f"file://{tmp_path}/out/, s3://lake/scored/",
    )

    def open_(uri: str, **more: str) -> Target:
        given = Destination.model_validate({"uri": uri, **more})
        return open_destination(given, settings, "ann", tmp_path)

    return open_


def test_a_bucket_is_opened_with_the_secret_and_never_at_the_stores_endpoint(opened: Open) -> None:
    place = opened("s3://lake/scored/today", secret="lake").place
    assert isinstance(place, BucketFolder)
    assert (place.bucket, place.folder) == ("lake", "scored/today")
    assert place.keys.access_key == "k"
    assert place.keys.endpoint == "https://s3.eu-west-1.amazonaws.com"
    assert "hidden" not in repr(place)
