"""Keys: made once, stored as a hash, revoked for good."""

import hashlib
from pathlib import Path

import pytest
import sqlalchemy as sa

from core.access.keys import Keys, Scope, digest, read_key_file
from core.database.database import Database
from core.database.schema import KeyRow
from core.exceptions import Conflict, Invalid, InvalidSetting, NotFound


@pytest.fixture
def keys(database: Database) -> Keys:
    return Keys(database)


def test_a_key_is_random_and_only_its_hash_is_stored(keys: Keys, database: Database) -> None:
    key, text = keys.create("laptop", Scope.PREDICT)
    assert text.startswith("cred_")
    assert len(text) == len("cred_") + 43  # 32 bytes in base64 without padding
    assert keys.create("laptop", Scope.PREDICT)[1] != text
    with database.read() as session:
        row = session.execute(sa.select(KeyRow.__table__).where(KeyRow.id == key.id)).one()
    assert row.sha256 == hashlib.sha256(text.encode()).hexdigest() == digest(text).hex()
    assert text not in str(row)
    assert (row.name, row.scope, row.last_used_at, row.revoked_at) == (
        "laptop", "predict", None, None,
    )  # fmt: skip


def test_a_revoked_key_stays_in_the_list_alone(keys: Keys) -> None:
    first, second = (keys.create(name, Scope.TRAIN)[0] for name in ("first", "second"))
    revoked = keys.revoke(first.id)
    assert revoked.revoked_at is not None
    assert [key.id for key in keys.valid()] == [second.id]
    assert [key.id for key in keys.list()] == [first.id, second.id]
    with pytest.raises(Conflict, match=f"key {first.id} was revoked at"):
        keys.revoke(first.id)
    with pytest.raises(NotFound, match="there is no key 'key_none'"):
        keys.revoke("key_none")


def test_use_is_noted(keys: Keys) -> None:
    used, unused = (keys.create(name, Scope.ADMIN)[0] for name in ("used", "unused"))
    keys.touch({used.id})
    last = {key.id: key.last_used_at for key in keys.list()}
    assert last[used.id] is not None
    assert last[unused.id] is None


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 257])
def test_a_name_is_checked(keys: Keys, name: str) -> None:
    with pytest.raises(Invalid):
        keys.create(name, Scope.PREDICT)


def test_each_scope_includes_those_before_it() -> None:
    allowed = {(a.value, b.value) for a in Scope for b in Scope if a.includes(b)}
    assert allowed == {
        ("predict", "predict"), ("train", "predict"), ("train", "train"),
        ("admin", "predict"), ("admin", "train"), ("admin", "admin"),
    }  # fmt: skip


def test_the_key_in_a_file_is_stripped(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("  0123456789abcdefghij\n")
    assert read_key_file(path) == "0123456789abcdefghij"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"0123456789abcdefghi\n", "holds 19 characters: a key has at least 20"),
        (b"correct horse battery staple", "holds a space"),
        ("schlüssel-schlüssel-schlüssel".encode(), "beyond ASCII"),
        (b"\xff" * 30, "cannot be read .it is not text"),
    ],
)
def test_a_file_that_holds_no_key_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    with pytest.raises(InvalidSetting, match=message) as refused:
        read_key_file(path)
    assert str(refused.value).startswith(f"CREDENCE_ADMIN_KEY_FILE={path}: ")
    assert "horse" not in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match=r"missing: cannot be read .No such file"):
        read_key_file(tmp_path / "missing")
