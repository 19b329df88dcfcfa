"""Keys: made once, stored as a hash, revoked for good."""

import hashlib
from pathlib import Path

import pytest
import sqlalchemy as sa

from core.access.keys import Keys, Scope, digest, read_key_file
from core.database.database import Database
from core.database.schema import KeyRow
from core.exceptions import Conflict, InvalidSetting, NotFound


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
    assert (row.name, row.scope, row.revoked_at) == ("laptop", "predict", None)


def test_a_revoked_key_stays_in_the_list_alone(keys: Keys) -> None:
    first, second = (keys.create(name, Scope.TRAIN)[0] for name in ("first", "second"))
    assert keys.revoke(first.id).revoked_at is not None
    assert [key.id for key in keys.valid()] == [second.id]
    assert [key.id for key in keys.list()] == [first.id, second.id]
    with pytest.raises(Conflict):
        keys.revoke(first.id)
    with pytest.raises(NotFound):
        keys.revoke("key_none")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"0123456789abcdefghi\n",  # 19 characters
        b"correct horse battery staple",
        "schlüssel-schlüssel-schlüssel".encode(),
        b"\xff" * 30,
        None,
    ],
)
def test_a_file_that_holds_no_key_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "key"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidSetting) as refused:
        read_key_file(path)
    assert str(refused.value).startswith(f"CREDENCE_ADMIN_KEY_FILE={path}: ")
    assert "horse" not in str(refused.value)
    path.write_text("  0123456789abcdefghij\n")
    assert read_key_file(path) == "0123456789abcdefghij"
